"""Options of test.py."""

from dataclasses import dataclass
from typing import Literal

from transformers.hf_argparser import HfArg

from cocos.config.option_groups import ExecutorOptions, PromptOptions, check_prompt_options
from cocos.prompts import Feedback
from cocos.trajectories import OnRepeat, Rules


@dataclass
class GeneratorOptions:
    """Options of the generator that answers the prompts."""

    generator: Literal["transformers", "vllm", "api"] = HfArg(
        default="transformers",
        help="Engine that samples the completions: `transformers` or `vllm` on this machine, or `api` for an "
        "OpenAI-compatible endpoint (its chat completions for --protocol `chat` and `repair`, otherwise its "
        "completions).",
    )
    base_url: str | None = HfArg(
        default=None,
        help="URL of the endpoint, up to and including /v1. OpenAI's by default. Only with --generator api.",
    )
    api_key_env: str = HfArg(
        default="OPENAI_API_KEY",
        help="Environment variable that holds the endpoint's key; a line of the file .env in the current "
        "folder works too. Several keys, separated by commas, take turns. Keys are never written to a file "
        "or a log.",
    )
    concurrency: int = HfArg(
        default=8, help="Requests that each process sends to the endpoint at the same time."
    )
    max_retries: int = HfArg(
        default=6,
        help="Retries of a failed request to the endpoint. The pause before each doubles, or is the one that "
        "the endpoint requests. After the last retry, the trajectory counts as an infrastructure failure.",
    )
    request_timeout_s: float = HfArg(
        default=120.0, help="Time limit of one request to the endpoint, in seconds."
    )


@dataclass
class EvalConfig(PromptOptions, ExecutorOptions, GeneratorOptions):
    """Options of test.py."""

    model_name_or_path: str = HfArg(
        default="",
        help="Model to evaluate: a checkpoint folder, a name on the Hugging Face hub, or the endpoint's name "
        "for it.",
    )
    test_data: str = HfArg(default="", help="File of MBPP-format problems, JSON or JSONL.")
    output_dir: str = HfArg(
        default="",
        help="Folder for samples.jsonl, metrics.json, run.json and the report; created if it does not exist.",
    )
    task_ids: list[str] | None = HfArg(
        default=None, help="Evaluate only the problems with these ids, in the order of the file."
    )
    start: int = HfArg(default=0, help="Number of problems to skip at the start of the file.")
    limit: int | None = HfArg(
        default=None, help="Largest number of problems to evaluate after --start. All by default."
    )
    visible_tests: int | None = HfArg(
        default=None,
        help="Number of tests that the model may see, the first ones of each problem. The other tests are "
        "scored but appear in neither prompt nor feedback. By default all tests are visible that the file "
        "does not mark as hidden.",
    )
    batch_size: int = HfArg(
        default=32, help="Problems per batch. Rows are written to samples.jsonl after each batch."
    )
    max_completion_length: int = HfArg(default=512, help="Largest number of new tokens per turn.")
    num_samples: int = HfArg(
        default=1,
        help="Independent trajectories per problem. pass@k is reported for k up to this number.",
    )
    temperature: list[float] = HfArg(
        default_factory=lambda: [0.0],
        help="Sampling temperature; 0 decodes greedily. Several values apply to turns 1, 2, ..., and the "
        "last one to all later turns.",
    )
    seed: int = HfArg(default=42, help="Seed of the sampling.")
    answers: list[str] = HfArg(
        default_factory=list,
        help="Sources of answers that replace the model's first turns, in order. `references` and `buggy` "
        "are the correct and the buggy programs of --test_data, one turn each; anything else is the path of "
        "a samples.jsonl or another file of answers. No model is needed if they fill all turns.",
    )
    feedback: Feedback = HfArg(
        default="none",
        help="Feedback on the program before the next turn. `verdict`: how many visible tests pass. `error`: "
        "also the first visible test that fails, with the expected and the actual value. Feedback comes from "
        "an oracle, so its results are reported apart from those of `none`, which is self-correction.",
    )
    feedback_chars: int = HfArg(
        default=300,
        help="Largest number of characters that the feedback quotes from the test, and from its error, 20 or "
        "more.",
    )
    early_stop: bool = HfArg(
        default=False,
        help="End a trajectory when its program passes the visible tests. Its last answer then counts in the "
        "remaining turns. This uses an oracle too, so its results are reported apart.",
    )
    on_repeat: OnRepeat = HfArg(
        default="keep",
        help="Action when a program equals that of the previous turn: `keep` it, `resample` the turn once, "
        "or `tell` the model so before its next turn.",
    )
    resume: bool = HfArg(
        default=False,
        help="Continue the run in --output_dir if there is one. Trajectories that are missing or that met an "
        "infrastructure failure are played.",
    )
    accept_changes: bool = HfArg(
        default=False,
        help="With --resume: continue the run even if options, data or package versions have changed.",
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = HfArg(
        default="auto",
        help="Data type of the weights. `auto` is bfloat16 on a GPU that supports it, otherwise float32.",
    )
    attn_implementation: str | None = HfArg(
        default=None,
        help="Attention implementation of transformers, such as sdpa or flash_attention_2. By default, "
        "transformers chooses.",
    )

    def __post_init__(self) -> None:
        check_prompt_options(self)
        self._check_endpoint()
        self._check_required_options()
        self._check_sampling()
        self._check_feedback()
        if self.accept_changes and not self.resume:
            raise ValueError("--accept_changes is for continuing a run; give --resume too")

    @property
    def rules(self) -> Rules:
        """Rules between the turns of a trajectory."""
        return Rules(
            feedback=self.feedback,
            feedback_chars=self.feedback_chars,
            early_stop=self.early_stop,
            on_repeat=self.on_repeat,
            temperatures=tuple(self.temperature),
            seed=self.seed,
        )

    @property
    def conditions(self) -> dict[str, object]:
        """Options that every row and the metrics record: results compare only if these are equal."""
        names = ("protocol", "feedback", "early_stop", "on_repeat", "temperature", "visible_tests", "answers")
        return {name: getattr(self, name) for name in names}

    def _check_endpoint(self) -> None:
        if self.base_url is not None and self.generator != "api":
            raise ValueError("--base_url is an endpoint's; give --generator api with it")
        if self.concurrency < 1 or self.max_retries < 0 or self.request_timeout_s <= 0:
            raise ValueError(
                "--concurrency is 1 or more, --max_retries 0 or more, --request_timeout_s above 0"
            )

    def _check_required_options(self) -> None:
        for name in ("test_data", "output_dir"):
            if not getattr(self, name):
                raise ValueError(f"--{name} is missing; see --help")
        if not self.model_name_or_path and not self.answers:
            raise ValueError("--model_name_or_path is missing; see --help")
        for name in ("batch_size", "num_samples", "max_completion_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} is {getattr(self, name)}; give 1 or more")

    def _check_sampling(self) -> None:
        if min(self.temperature, default=-1) < 0 or self.start < 0 or (self.limit or 1) < 1:
            raise ValueError("--temperature and --start are 0 or more, --limit is 1 or more")
        if len(self.temperature) > self.num_turns:
            raise ValueError(
                f"--temperature has {len(self.temperature)} values, more than --num_turns {self.num_turns}"
            )
        if self.num_samples > 1 and not any(self.temperature) and not self.answers:
            raise ValueError("--num_samples above 1 needs sampling; set --temperature above 0")
        if self.on_repeat == "resample" and not all(self.temperature[1:] or self.temperature):
            raise ValueError(
                "--on_repeat resample needs a --temperature above 0 in every turn after the first"
            )

    def _check_feedback(self) -> None:
        if self.feedback_chars < 20:
            raise ValueError(f"--feedback_chars is {self.feedback_chars}; give 20 or more")
        if self.visible_tests is not None and self.visible_tests < 0:
            raise ValueError(f"--visible_tests is {self.visible_tests}; give 0 or more")
        if self.visible_tests == 0 and (self.feedback != "none" or self.early_stop):
            raise ValueError(
                "--feedback and --early_stop need visible tests, but --visible_tests is 0; give 1 or more"
            )
