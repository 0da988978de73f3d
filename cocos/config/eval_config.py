"""The options of test.py."""

from dataclasses import dataclass, field
from typing import Literal

from cocos.config.option_groups import ExecutorOptions, PromptOptions, check_prompt_options
from cocos.prompts import Feedback
from cocos.trajectories import OnRepeat, Rules


@dataclass
class GeneratorOptions:
    """What answers the prompts."""

    generator: Literal["transformers", "vllm", "api"] = field(
        default="transformers",
        metadata={
            "help": "What answers: `transformers` or `vllm` on this machine, or `api`, an OpenAI-compatible "
            "endpoint (protocols `chat` and `repair` use its chat completions, the others its completions)."
        },
    )
    base_url: str | None = field(
        default=None,
        metadata={"help": "Endpoint, up to and including /v1; OpenAI's by default. Only with `api`."},
    )
    api_key_env: str = field(
        default="OPENAI_API_KEY",
        metadata={
            "help": "Environment variable, or line of a file .env here, with the endpoint's key; several, "
            "separated by commas, are used in rotation. Keys are never written anywhere."
        },
    )
    concurrency: int = field(
        default=8, metadata={"help": "Requests to the endpoint under way at a time, of each process."}
    )
    max_retries: int = field(
        default=6,
        metadata={
            "help": "Further tries of a request to the endpoint, after pauses that double or are those that "
            "it asks for; then the trajectory is an infrastructure failure."
        },
    )
    request_timeout_s: float = field(
        default=120.0, metadata={"help": "Seconds that one request to the endpoint may take."}
    )


def _check_generator_options(options: GeneratorOptions) -> None:
    if options.base_url is not None and options.generator != "api":
        raise ValueError("--base_url is an endpoint's; give --generator api with it")
    if options.concurrency < 1 or options.max_retries < 0 or options.request_timeout_s <= 0:
        raise ValueError("--concurrency is 1 or more, --max_retries 0 or more, --request_timeout_s above 0")


@dataclass
class EvalConfig(PromptOptions, ExecutorOptions, GeneratorOptions):
    """Options of test.py."""

    model_name_or_path: str = field(
        default="",
        metadata={"help": "Checkpoint directory, hub id, or an endpoint's name of the model to evaluate."},
    )
    test_data: str = field(default="", metadata={"help": "MBPP-format JSON or JSONL file with the problems."})
    output_dir: str = field(
        default="",
        metadata={"help": "Folder for samples.jsonl, metrics.json and the report; made if absent."},
    )
    task_ids: list[str] | None = field(
        default=None, metadata={"help": "Evaluate these problems only, in the file's order."}
    )
    start: int = field(default=0, metadata={"help": "Skip that many problems first."})
    limit: int | None = field(default=None, metadata={"help": "Evaluate so many problems from there on."})
    visible_tests: int | None = field(
        default=None,
        metadata={
            "help": "Show only the first so many tests of a problem; the others are scored, and neither "
            "prompt nor feedback tells of them. All that the file does not hide are shown by default."
        },
    )
    batch_size: int = field(
        default=32, metadata={"help": "Problems per batch; their rows are written when a batch is played."}
    )
    max_completion_length: int = field(default=512, metadata={"help": "New tokens per turn at most."})
    num_samples: int = field(
        default=1, metadata={"help": "Independent trajectories per problem; pass@k for k up to it."}
    )
    temperature: list[float] = field(
        default_factory=lambda: [0.0],
        metadata={
            "help": "Sampling temperature, 0 decodes greedily; several are those of turn 1, 2, ..., the last "
            "from there on."
        },
    )
    seed: int = field(default=42, metadata={"help": "Seed of the sampling."})
    answers: list[str] = field(
        default_factory=list,
        metadata={
            "help": "What stands as the first turns in place of the model's answers: `references` and "
            "`buggy` are programs of --test_data, anything else is a samples.jsonl or a file of answers. "
            "Where it leaves no turn, no model is needed."
        },
    )
    feedback: Feedback = field(
        default="none",
        metadata={
            "help": "What the model is told about its program before it tries again: `verdict` how many of "
            "the shown tests pass, `error` also the first that fails, with what it expected and got. An "
            "oracle: reported apart from `none`, which is self-correction."
        },
    )
    feedback_chars: int = field(
        default=300,
        metadata={"help": "Characters at most of the test in the feedback, and of what went wrong with it."},
    )
    early_stop: bool = field(
        default=False,
        metadata={
            "help": "End a trajectory whose program passes the shown tests; its answer counts in the turns "
            "that are left. An oracle too."
        },
    )
    on_repeat: OnRepeat = field(
        default="keep",
        metadata={
            "help": "Where the model gives the same program again: `keep` it, `resample` the turn once, or "
            "`tell` it so before its next turn."
        },
    )
    resume: bool = field(
        default=False,
        metadata={
            "help": "Continue the run in --output_dir, if there is one: play what is missing, and what met a "
            "failure of executor or endpoint."
        },
    )
    accept_changes: bool = field(
        default=False,
        metadata={
            "help": "With --resume: continue though options, data or versions are other than they were."
        },
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = field(
        default="auto",
        metadata={"help": "Weights' type; `auto` is bfloat16 on a GPU that has it, else float32."},
    )
    attn_implementation: str | None = field(
        default=None,
        metadata={
            "help": "Attention kernel of transformers (sdpa, flash_attention_2); its choice by default."
        },
    )

    def __post_init__(self) -> None:
        check_prompt_options(self)
        _check_generator_options(self)
        for name in ("test_data", "output_dir"):
            if not getattr(self, name):
                raise ValueError(f"--{name} is missing; see --help")
        if not self.model_name_or_path and not self.answers:
            raise ValueError("--model_name_or_path is missing; see --help")
        for name in ("batch_size", "num_samples", "max_completion_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} is {getattr(self, name)}; give 1 or more")
        if min(self.temperature, default=-1) < 0 or self.start < 0 or (self.limit or 1) < 1:
            raise ValueError("--temperature and --start are 0 or more, --limit is 1 or more")
        if len(self.temperature) > self.num_turns:
            raise ValueError(
                f"--temperature has {len(self.temperature)} values for --num_turns {self.num_turns}"
            )
        if self.num_samples > 1 and not any(self.temperature) and not self.answers:
            raise ValueError("--num_samples above 1 needs sampling; set --temperature above 0")
        if self.on_repeat == "resample" and not all(self.temperature[1:] or self.temperature):
            raise ValueError(
                "--on_repeat resample needs a --temperature above 0 in every turn after the first"
            )
        if self.feedback_chars < 20:
            raise ValueError(f"--feedback_chars is {self.feedback_chars}; give 20 or more")
        if self.visible_tests is not None and self.visible_tests < 0:
            raise ValueError(f"--visible_tests is {self.visible_tests}; give 0 or more")
        if self.visible_tests == 0 and (self.feedback != "none" or self.early_stop):
            raise ValueError(
                "--feedback and --early_stop tell of the shown tests; --visible_tests 0 shows none"
            )
        if self.accept_changes and not self.resume:
            raise ValueError("--accept_changes is for continuing a run; give --resume too")

    @property
    def rules(self) -> Rules:
        """What happens between turns."""
        return Rules(
            self.feedback,
            self.feedback_chars,
            self.early_stop,
            self.on_repeat,
            tuple(self.temperature),
            self.seed,
        )

    @property
    def conditions(self) -> dict[str, object]:
        """What every row and the metrics say of how they were made: results compare under equal ones."""
        names = ("protocol", "feedback", "early_stop", "on_repeat", "temperature", "visible_tests", "answers")
        return {name: getattr(self, name) for name in names}
