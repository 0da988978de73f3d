"""Construction of the generator and of the player (turn loop or agent) that the options of test.py select."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocos.assembly.rules import make_rules
from cocos.config.eval_config import EvalConfig
from cocos.executor import Executor
from cocos.files.extras import install_command
from cocos.generation import Generator
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rollout import rollout
from cocos.trajectories import Trajectory

if TYPE_CHECKING:
    from transformers import GenerationConfig


def open_generator(args: EvalConfig, say: Callable[[str], None] = print) -> Generator:
    """Load the model or connect to the endpoint that the options name, and print what is used.

    Args:
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
    # These need PyTorch, which whoever evaluates an endpoint may not have.
    from cocos.generation.huggingface import HuggingFaceGenerator, load_model, model_line, resolve_dtype
    from cocos.generation.tokenizer import eos_token_ids, load_tokenizer

    tokenizer = load_tokenizer(
        args.model_name_or_path, template_variables=args.template_variables, chat_template=args.chat_template
    )
    if args.generator == "vllm":
        from cocos.generation.vllm_offline import VLLMGenerator

        eos_ids = eos_token_ids(_load_generation_config(args.model_name_or_path), tokenizer)
        dtype = resolve_dtype(args.dtype)
        say(f"{args.model_name_or_path} in vLLM in {dtype}")
        return VLLMGenerator(args.model_name_or_path, tokenizer, eos_ids, dtype, args.max_completion_length)
    model = load_model(args.model_name_or_path, args.dtype, args.attn_implementation)
    say(model_line(args.model_name_or_path, model))
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, args.batch_size)


def chat_template_warning(args: EvalConfig, generator: Generator) -> str:
    """Return the warning about a chat template that the default protocol leaves unused; "" for none.

    A model that Boost or CoCoS has trained, which has a run.json, knows the protocol.
    """
    model, tokenizer = Path(args.model_name_or_path), getattr(generator, "tokenizer", None)
    is_trained = any((folder / "run.json").is_file() for folder in (model, model.parent))
    if is_trained or args.prompt_file or not getattr(tokenizer, "chat_template", None):
        return ""
    return (
        f"warning: {model} has a chat template, which --protocol cocos does not use; chat models need "
        "--protocol chat"
    )


def open_endpoint(args: EvalConfig, say: Callable[[str], None]) -> Generator:
    """Return a generator for the endpoint that the options name.

    Raises:
        ValueError: A package is missing, or OpenAI's endpoint has no key.

    """
    try:  # the packages of an optional extra
        from cocos.generation.endpoint import EndpointGenerator
        from cocos.generation.retry import RetryPolicy, read_keys
    except ImportError as error:
        raise ValueError(f"--generator api needs {error.name}: {install_command('api')}") from None
    keys = read_keys(args.api_key_env)
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
        keys,
        args.max_completion_length,
        args.concurrency,
        retries=RetryPolicy(args.max_retries),
        say=say,
        chat_template_kwargs=args.template_variables,
    )


def _load_generation_config(name_or_path: str) -> "GenerationConfig | None":
    """Load the generation config of a checkpoint, or return None if it has none."""
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(name_or_path)
    except OSError:
        return None


Player = Callable[[Sequence[Trajectory]], list[Trajectory]]


def open_player(
    args: EvalConfig,
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    on_turn: Callable[[Trajectory], None] | None = None,
    problems: Sequence[Problem] = (),
) -> Player:
    """Return the function that plays trajectories as the options say.

    Args:
        on_turn: Called with a trajectory whenever the program of another of its turns has run, for somebody
            who watches; None: nothing is called.
        problems: All problems of the run, for `--placebo other`.

    Raises:
        ValueError: An agent's package is missing.

    """
    rules = make_rules(args, args.temperatures, args.seed, problems, args.prompt_tests)
    setup: dict[str, Any] = {
        "generator": generator,
        "executor": executor,
        "protocol": protocol,
        "num_turns": args.num_turns,
        "rules": replace(rules, keeps_truncated=True),
        "on_turn": on_turn,
    }
    if args.agent == "none":
        return partial(rollout, **setup)
    try:  # the package of an optional extra
        from cocos.agents.graphs import play_with_agent
    except ImportError as error:
        raise ValueError(f"--agent needs {error.name}: {install_command('agents')}") from None
    return partial(play_with_agent, agent=args.agent, max_repeats=args.max_repeats, **setup)
