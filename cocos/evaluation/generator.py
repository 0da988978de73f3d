"""From the options of an evaluation to the generator that they name."""

from transformers import GenerationConfig

from cocos.config import EvalConfig
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tokenizer import end_ids, load_tokenizer


def open_generator(args: EvalConfig) -> Generator:
    """The generator that the options ask for; says what it runs on.

    Raises:
        ValueError: The checkpoint, a package or a key is missing.

    """
    if not args.model_name_or_path:
        return ScriptedGenerator(lambda prompt: "")  # every answer is given
    if args.generator == "api":
        return _open_endpoint(args)
    tokenizer = load_tokenizer(args.model_name_or_path)
    if args.generator == "vllm":
        from cocos.generation.vllm_offline import VLLMGenerator

        eos_ids = end_ids(_generation_config(args.model_name_or_path), tokenizer)
        sizes = (args.dtype, args.max_completion_length)
        return VLLMGenerator(args.model_name_or_path, tokenizer, eos_ids, *sizes)
    model = load_model(args.model_name_or_path, args.dtype, args.attn_implementation)
    print(f"model on {model.device} in {model.dtype}, attention {model.config._attn_implementation}")
    return HuggingFaceGenerator(
        model, tokenizer, args.max_completion_length, args.batch_size
    )


def _open_endpoint(args: EvalConfig) -> Generator:
    try:
        from cocos.generation.api_keys import read_keys
        from cocos.generation.endpoint import EndpointGenerator, Retries
    except ImportError as error:
        raise ValueError(f'--generator api needs {error.name}: pip install "cocos-lab[api]"') from None
    keys = read_keys(args.api_key_env)
    if not keys and args.base_url is None:
        raise ValueError(
            f"no key in {args.api_key_env}, neither in the environment nor in .env; set it there"
        )
    print(f"asking {args.base_url or 'OpenAI'} for {args.model_name_or_path}, {len(keys)} keys")
    return EndpointGenerator(
        args.model_name_or_path,
        args.base_url,
        keys or ["none"],  # a server of one's own often asks for none
        args.max_completion_length,
        args.concurrency,
        args.request_timeout_s,
        Retries(args.max_retries),
    )


def _generation_config(name_or_path: str) -> GenerationConfig | None:
    """That of a checkpoint whose model is not loaded here; None where it has none."""
    try:
        return GenerationConfig.from_pretrained(name_or_path)
    except OSError:
        return None
