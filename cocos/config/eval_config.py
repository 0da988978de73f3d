"""Options of test.py."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from cocos.config.agent_options import AGENT_TEMPERATURES, AgentOptions
from cocos.config.executor_options import ScoringOptions
from cocos.config.option import option, require_at_least, require_options
from cocos.config.prompt_options import PromptOptions


@dataclass
class EvalRunOptions:
    """Options of the run as a whole: model, problems and output."""

    group: ClassVar[str] = "run"

    model_name_or_path: str = option(
        "model", "", "Model to evaluate: a checkpoint folder, or a name on the hub or of the endpoint."
    )
    test_data: str = option(
        "data",
        "",
        "File of MBPP-format problems, JSON or JSONL; or a public set: hub:mbpp/test is downloaded, "
        "humaneval=HumanEval.jsonl.gz reads its raw file.",
    )
    output_dir: str = option("run", "", "Folder for samples.jsonl, metrics.json, run.json and the report.")
    task_ids: list[str] | None = option(
        "data", None, "Evaluate only the problems with these ids, in the order of the file."
    )
    start: int = option("data", 0, "Number of problems to skip at the start of the file.")
    limit: int | None = option(
        "data", None, "Largest number of problems to evaluate after --start. All by default."
    )
    resume: bool = option(
        "run",
        False,
        "Continue the run in --output_dir if there is one: play the trajectories that are missing or "
        "had an infrastructure failure.",
    )
    accept_changes: bool = option(
        "run",
        False,
        "With --resume: continue the run even if options, data or package versions have changed.",
    )


@dataclass
class SamplingOptions:
    """Options of the sampling of completions."""

    group: ClassVar[str] = "sampling"

    num_samples: int = option(
        "sampling", 1, "Independent trajectories per problem. pass@k is reported for k up to this number."
    )
    temperature: list[float] | None = option(
        "sampling",
        None,
        "Sampling temperature of turns 1, 2, ...; the last one also applies to later turns. 0, the "
        "default except for agents, decodes greedily.",
    )
    max_completion_length: int = option("length", 512, "Largest number of new tokens per turn.")
    batch_size: int = option(
        "sampling",
        32,
        "Trajectories that are played together: problems times --num_samples. Their rows are written to "
        "samples.jsonl after each batch.",
    )
    seed: int = option("sampling", 42, "Seed of the sampling.")
    verbose: bool = option(
        "run",
        False,
        "Print the first prompt, and everything of every turn: request, answer, program, tests, seconds.",
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = option(
        "sampling",
        "auto",
        "Data type of the weights. `auto` is bfloat16 on a GPU that supports it, otherwise float32.",
    )
    attn_implementation: str | None = option(
        "sampling",
        None,
        "Attention implementation of transformers, such as sdpa or flash_attention_2. By default, "
        "transformers chooses.",
    )


@dataclass
class EndpointOptions:
    """Options of the engine that samples, and of endpoints."""

    group: ClassVar[str] = "engine and endpoint"

    generator: Literal["transformers", "vllm", "api"] = option(
        "sampling",
        "transformers",
        "Engine that samples the completions: `transformers` or `vllm` on this machine, or `api` for an "
        "OpenAI-compatible endpoint (of a chat, its chat completions).",
    )
    base_url: str | None = option(
        "sampling",
        None,
        "URL of the endpoint, up to and including /v1. OpenAI's by default. Only with --generator api.",
    )
    api_key_env: str = option(
        "run",
        "OPENAI_API_KEY",
        "Environment variable with the endpoint's key. The file .env in the current folder may set it. "
        "Several keys, separated by commas, are used in turn. Keys are never written to a file or a log.",
    )
    concurrency: int = option("run", 8, "Requests that each process sends to the endpoint at the same time.")
    max_retries: int = option(
        "run",
        6,
        "Retries of a failed request to the endpoint; the pause doubles, unless the endpoint requests "
        "another one. After the last, the trajectory has an infrastructure failure.",
    )


@dataclass
class EvalConfig(
    EvalRunOptions, SamplingOptions, EndpointOptions, AgentOptions, PromptOptions, ScoringOptions
):
    """Options of test.py."""

    def __post_init__(self) -> None:
        PromptOptions.__post_init__(self)
        ScoringOptions.__post_init__(self)
        AgentOptions.__post_init__(self)
        self._check_endpoint()
        require_options(self, "test_data", "output_dir")
        if not self.answers:
            require_options(self, "model_name_or_path")
        if len(self.answers) > self.num_turns:
            raise ValueError(
                f"--answers has {len(self.answers)} sources of a turn or more each, more than --num_turns "
                f"{self.num_turns}; raise it, or leave out {' '.join(self.answers[self.num_turns :])}"
            )
        require_at_least(
            self, 1, "batch_size", "num_samples", "max_completion_length", "limit", "concurrency"
        )
        require_at_least(self, 0, "start", "max_retries")
        self._check_sampling()
        if self.accept_changes and not self.resume:
            raise ValueError("--accept_changes needs --resume; give both or neither")

    @property
    def temperatures(self) -> list[float]:
        """Sampling temperatures of turns 1, 2, ...; the last one also applies to later turns."""
        if self.temperature is None:
            return AGENT_TEMPERATURES[self.agent][: self.num_turns]
        return self.temperature

    def _check_endpoint(self) -> None:
        if self.chat_template and self.generator == "api":
            raise ValueError("--chat_template: an endpoint renders its chats itself; leave it out")
        if self.base_url is not None and self.generator != "api":
            raise ValueError("--base_url needs --generator api")
        if self.base_url is not None and not _is_url(self.base_url):
            raise ValueError(
                f"--base_url {self.base_url} is no URL; give one such as http://127.0.0.1:8000/v1, up to and "
                "including /v1"
            )

    def _check_sampling(self) -> None:
        if not self.temperatures or not all(0 <= degree < math.inf for degree in self.temperatures):
            raise ValueError(f"--temperature is {self.temperatures}; give finite numbers of 0 or more")
        if len(self.temperatures) > self.num_turns:
            raise ValueError(
                f"--temperature has {len(self.temperatures)} values, more than --num_turns {self.num_turns}"
            )
        if self.num_samples > 1 and not any(self.temperatures) and not self.answers:
            raise ValueError("--num_samples above 1 needs sampling; set --temperature above 0")
        if self.on_repeat == "resample" and not all(self.temperatures[1:] or self.temperatures):
            raise ValueError(
                "--on_repeat resample needs a --temperature above 0 in every turn after the first"
            )


@dataclass
class EvalSuiteConfig(EvalConfig):
    """Options of test.py, which evaluates one model or several on one set of problems or on several."""

    model_name_or_path: list[str] = option(  # type: ignore[assignment]
        "model",
        [],
        "Models to evaluate: folders, names on the hub or of the endpoint, or short names in "
        "configs/models.yaml. Of several, each has a folder in --output_dir.",
    )
    test_data: list[str] = option(  # type: ignore[assignment]
        "data",
        [],
        "Files of MBPP-format problems, JSON or JSONL; or public sets: hub:mbpp/test is downloaded, "
        "humaneval=HumanEval.jsonl.gz reads its raw file. Of several, each has a folder in --output_dir.",
    )

    def runs(self) -> list[EvalConfig]:
        """Return the options of every model's evaluation on every set, one model after another.

        Of several sets, each has a folder; of several models, each has a folder in that.

        Raises:
            ValueError: Two sets or two models have the same name, or vLLM would have to load several models.

        """
        if self.generator == "vllm" and len(self.model_name_or_path) > 1:
            raise ValueError("--generator vllm keeps the GPU's memory until its process ends; give one model")
        options = {field.name: getattr(self, field.name) for field in fields(EvalConfig)}
        models = _folders("model_name_or_path", self.model_name_or_path or [""], _model_folder)
        sets = _folders("test_data", self.test_data, _set_folder)
        return [
            EvalConfig(
                **options
                | {"model_name_or_path": model, "test_data": data}
                | {"output_dir": str(Path(self.output_dir, set_folder, model_folder))}
            )
            for model, model_folder in models.items()
            for data, set_folder in sets.items()
        ]


def _is_url(text: str) -> bool:
    """Return whether a text is the URL of a server; the port of one is at most 65535."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # of `port`
        return False


def _folders(option_name: str, values: list[str], folder: Callable[[str], str]) -> dict[str, str]:
    """Return the folder of each value of an option; "" if there is only one."""
    if len(values) == 1:
        return {values[0]: ""}
    folders = {value: folder(value) for value in values}
    if len(set(folders.values())) < len(values):
        raise ValueError(f"--{option_name} {' '.join(values)}: two have one name; give each once")
    return folders


def _model_folder(model: str) -> str:
    """Return a model's folder: `Qwen-Qwen2.5-1.5B` for a hub id, `cocos-checkpoint-14` for a path."""
    return re.sub(r"[^\w.]+", "-", "/".join(Path(model).parts[-2:])).strip("-")


def _set_folder(data: str) -> str:
    """Return a set's folder: `mbpp-test` for hub:mbpp/test, `mine-test` for data/mine/test.jsonl."""
    name = data.removeprefix("hub:") if not Path(data).exists() else "/".join(Path(data).parts[-2:])
    return re.sub(r"\W+", "-", re.sub(r"\.jsonl?(\.gz)?$", "", name.partition("=")[0])).strip("-")
