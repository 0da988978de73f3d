"""Construction of the generator that the options of test.py select."""

from collections.abc import Callable

from transformers import GenerationConfig

from cocos.config.eval_config import EvalConfig
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model, model_line, resolve_dtype
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tokenizer import eos_token_ids, load_tokenizer


def open_generator(args: EvalConfig, say: Callable[[str], None] = print) -> Generator:
    """Load the model or connect to the endpoint that the options name, and print what is used.

    Args:
        args: The options of test.py.
        say: Prints a line; on ranks other than 0 it does nothing.

    Raises:
        ValueError: The checkpoint, a package or an API key is missing, a file of weights is damaged, or vLLM
            cannot load the model.

    """
    if not args.model_name_or_path:
        # --answers supplies every completion, so this generator is never called.
        return ScriptedGenerator(lambda prompt: "")
    if args.generator == "api":
        return open_endpoint(args, say)
    tokenizer = load_tokenizer(args.model_name_or_path)
    if args.generator == "vllm":
        from cocos.generation.vllm_offline import VLLMGenerator

        eos_ids = eos_token_ids(_load_generation_config(args.model_name_or_path), tokenizer)
        dtype = resolve_dtype(args.dtype)
        say(f"{args.model_name_or_path} in vLLM in {dtype}")
        return VLLMGenerator(args.model_name_or_path, tokenizer, eos_ids, dtype, args.max_completion_length)
    model = load_model(args.model_name_or_path, args.dtype, args.attn_implementation)
    say(model_line(args.model_name_or_path, model))
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.batch_size)


def open_endpoint(args: EvalConfig, say: Callable[[str], None], key: str = "") -> Generator:
    """Return a generator for the endpoint that the options name.

    Args:
        args: The options of test.py.
        say: Prints a line with the endpoint and the number of keys.
        key: API key; "": those in the environment variable `--api_key_env`.

    Raises:
        ValueError: A package is missing, or OpenAI's endpoint has no key.

    """
    try:  # the packages of an optional extra
        from cocos.generation.api_keys import read_keys
        from cocos.generation.endpoint import EndpointGenerator
        from cocos.generation.retry import RetryPolicy
    except ImportError as error:
        raise ValueError(f'--generator api needs {error.name}: pip install "cocos-lab[api]"') from None
    keys = [key] if key else read_keys(args.api_key_env)
    if not keys and args.base_url is None:
        raise ValueError(
            f"no key in {args.api_key_env}, neither in the environment nor in .env; set it in one of them"
        )
    say(
        f"{args.model_name_or_path} at {args.base_url or 'OpenAI'}, {len(keys) or 'no'} API "
        f"key{'s' * (len(keys) != 1)}, {args.concurrency} requests at a time"
    )
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
