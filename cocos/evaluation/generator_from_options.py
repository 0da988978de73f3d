"""Construction of the generator that the options of test.py select."""

from transformers import GenerationConfig

from cocos.config.eval_config import EvalConfig
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tokenizer import eos_token_ids, load_tokenizer


def open_generator(args: EvalConfig) -> Generator:
    """Load the model or connect to the endpoint that the options name, and print what is used.

    Raises:
        ValueError: The checkpoint, a package or an API key is missing.

    """
    if not args.model_name_or_path:
        # --answers supplies every completion, so this generator is never called.
        return ScriptedGenerator(lambda prompt: "")
    if args.generator == "api":
        return _open_endpoint(args)
    tokenizer = load_tokenizer(args.model_name_or_path)
    if args.generator == "vllm":
        from cocos.generation.vllm_offline import VLLMGenerator

        eos_ids = eos_token_ids(_load_generation_config(args.model_name_or_path), tokenizer)
        return VLLMGenerator(
            args.model_name_or_path, tokenizer, eos_ids, args.dtype, args.max_completion_length
        )
    model = load_model(args.model_name_or_path, args.dtype, args.attn_implementation)
    print(f"model on {model.device} in {model.dtype}, attention {model.config._attn_implementation}")
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.batch_size)


def _open_endpoint(args: EvalConfig) -> Generator:
    try:  # the packages of an optional extra
        from cocos.generation.api_keys import read_keys
        from cocos.generation.endpoint import EndpointGenerator
        from cocos.generation.retry import RetryPolicy
    except ImportError as error:
        raise ValueError(f'--generator api needs {error.name}: pip install "cocos-lab[api]"') from None
    keys = read_keys(args.api_key_env)
    if not keys and args.base_url is None:
        raise ValueError(
            f"no key in {args.api_key_env}, neither in the environment nor in .env; set it in one of them"
        )
    print(f"requesting {args.model_name_or_path} from {args.base_url or 'OpenAI'} with {len(keys)} API keys")
    return EndpointGenerator(
        args.model_name_or_path,
        args.base_url,
        keys or ["none"],  # the client needs a key even if a local server ignores it
        args.max_completion_length,
        args.concurrency,
        args.request_timeout_s,
        RetryPolicy(args.max_retries),
    )


def _load_generation_config(name_or_path: str) -> GenerationConfig | None:
    """Load the generation config of a checkpoint, or return None if it has none."""
    try:
        return GenerationConfig.from_pretrained(name_or_path)
    except OSError:
        return None
