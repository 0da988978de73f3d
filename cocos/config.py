"""The options of the entry points: one dataclass each, plus TRL's ModelConfig where a model is trained.

Defaults are the paper's; the flags of the released CoCoS commands are aliases of the names used here. Does
not know how a command line or a YAML file becomes them (`cli.py`).
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from transformers import TrainingArguments
from trl import ModelConfig, RLOOConfig, SFTConfig

from cocos.executor import Executor, Limits
from cocos.feedback import Feedback
from cocos.problems import load_problems
from cocos.prompts import DONE, PromptProtocol, protocol
from cocos.ranks import connect_deepspeed, num_processors, num_ranks
from cocos.rollout import OnRepeat, Rules

UNTRUNCATED = {"top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
# What TRL's options do where its own rewards and generation are used; ours take their place.
WITHOUT_EFFECT = {
    "normalize_advantages": False,
    "reward_clip_range": None,
    "reward_weights": None,
    "mask_truncated_completions": False,
    "cache_implementation": None,
    "chat_template_kwargs": None,
}
# vLLM's sampling parameters: an answer ends at [DONE], which is part of it.
STOP_AT_DONE: dict[str, Any] = {"stop": [DONE], "include_stop_str_in_output": True}


@dataclass
class ExecutorOptions:
    """How candidates' programs are run."""

    executor_workers: int | None = field(
        default=None,
        metadata={"help": "Programs run at a time on this process; by default its share of the processors."},
    )
    sandbox: Literal["auto", "docker", "namespaces", "seccomp", "rlimits"] = field(
        default="auto",
        metadata={"help": "Isolation level of the programs; `auto` is the best that this machine offers."},
    )
    min_isolation: Literal["docker", "namespaces", "seccomp", "rlimits"] | None = field(
        default=None, metadata={"help": "Refuse to run below this level; seccomp where the level is `auto`."}
    )
    program_timeout_s: float = field(
        default=10.0, metadata={"help": "Wall-clock limit of one program with all its tests, in seconds."}
    )
    max_infra_share: float = field(
        default=0.05,
        metadata={
            "help": "Stop when a larger share of answers met a failure of the executor or the endpoint."
        },
    )


@dataclass
class PromptOptions:
    """How problems are put to the model."""

    protocol: str = field(
        default="cocos",
        metadata={
            "help": "Prompt protocol: `cocos` for Boost and CoCoS models, `cocos-fewshot` for base models."
        },
    )
    few_shot_data: str | None = field(
        default=None,
        metadata={"help": "MBPP-format file of solved problems that `cocos-fewshot` shows before turn 1."},
    )
    num_turns: int = field(default=2, metadata={"help": "Attempts at each problem (T), 1 or more."})


def _check_prompt_options(options: PromptOptions) -> None:
    if options.num_turns < 1:
        raise ValueError(f"--num_turns is {options.num_turns}; a trajectory has at least 1 turn")


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
        _check_prompt_options(self)
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


def _accumulate(args: TrainingArguments) -> None:
    """`global_batch_size` is the product of processes, per-device batch and accumulation."""
    if args.global_batch_size is None:
        return
    per_step = args.per_device_train_batch_size * num_ranks()
    if per_step < 1 or args.global_batch_size < 1 or args.global_batch_size % per_step:
        raise ValueError(
            f"--global_batch_size {args.global_batch_size} does not divide by {per_step} "
            f"(--per_device_train_batch_size times processes); change one of them"
        )
    args.gradient_accumulation_steps = args.global_batch_size // per_step


def _count_epochs(args: TrainingArguments) -> None:
    """Epochs, where given, win: the parent prefers `max_steps`, and ours has a default."""
    if args.num_train_epochs > 0:
        args.max_steps = -1
    elif args.max_steps < 1:
        raise ValueError(f"--max_steps is {args.max_steps}; give 1 or more, or --num_train_epochs")


def _check_stopping(args: TrainingArguments) -> None:
    if args.enable_jit_checkpoint:
        raise ValueError(
            "--enable_jit_checkpoint is not needed: SIGTERM always ends a run with a checkpoint after the "
            "update; leave it out"
        )


def _fit_machine(args: TrainingArguments) -> None:
    """The processor where there is no accelerator: said outright, or ranks would not find each other."""
    args.use_cpu = args.use_cpu or not torch.accelerator.is_available()
    if args.deepspeed:
        connect_deepspeed(args.use_cpu)
    args.dataloader_pin_memory = args.dataloader_pin_memory and not args.use_cpu
    if args.bf16 is None:
        has_bf16 = not args.use_cpu and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
        args.bf16 = has_bf16 and not args.fp16


@dataclass
class BoostConfig(SFTConfig):
    """Options of boost/boost_train.py: TRL's SFTConfig with the paper's values and the data files."""

    train_data: str = field(
        default="", metadata={"help": "Boost rows: JSON list or JSONL of prompt and completion."}
    )
    eval_data: str | None = field(
        default=None, metadata={"help": "Boost rows whose loss chooses the best checkpoint."}
    )
    dry_run: bool = field(
        default=False,
        metadata={
            "help": "Resolve everything, print the first rows, steps, memory and warnings, and stop before "
            "the weights are loaded."
        },
    )
    run_name: str | None = field(
        default=None, metadata={"help": "Name of the run in the logs.", "aliases": ["--wandb_run_name"]}
    )
    global_batch_size: int | None = field(
        default=256, metadata={"help": "Rows per update over all devices; sets gradient_accumulation_steps."}
    )
    per_device_train_batch_size: int = field(
        default=1, metadata={"help": "Rows per device and forward pass."}
    )
    learning_rate: float = field(default=2e-5, metadata={"help": "Peak learning rate of AdamW."})
    lr_scheduler_type: str = field(default="cosine", metadata={"help": "Learning-rate schedule."})
    max_steps: int = field(default=1000, metadata={"help": "Number of updates."})
    num_train_epochs: float = field(
        default=0.0, metadata={"help": "Passes over the data, in place of max_steps; 0: max_steps decides."}
    )
    resume_from_checkpoint: str | None = field(
        default=None,
        metadata={"help": "`last` for the newest whole checkpoint in output_dir, or the path of one."},
    )
    max_length: int | None = field(
        default=None,
        metadata={"help": "Longest row in tokens; a longer row is an error, never cut. No limit by default."},
    )
    eval_steps: float | None = field(
        default=0.1, metadata={"help": "Updates between evaluations; below 1 a share of all."}
    )
    save_steps: float = field(
        default=0.1, metadata={"help": "Updates between checkpoints; below 1 a share of all."}
    )
    save_total_limit: int | None = field(
        default=1, metadata={"help": "Checkpoints kept; the best is among them."}
    )
    bf16: bool | None = field(
        default=None, metadata={"help": "bfloat16 autocast; on by default where the GPU has it."}
    )

    def __post_init__(self) -> None:
        if not self.train_data:
            raise ValueError("--train_data is missing; see --help")
        _check_stopping(self)
        _fit_machine(self)
        _accumulate(self)
        _count_epochs(self)
        if self.eval_data:
            self.eval_strategy = self.save_strategy = "steps"
            self.load_best_model_at_end = True
            self.metric_for_best_model = "eval_loss"
        super().__post_init__()


@dataclass
class CoCoSConfig(PromptOptions, ExecutorOptions, RLOOConfig):
    """Options of train.py: TRL's RLOOConfig with the paper's values, the turns, and the credit."""

    train_data: str = field(
        default="", metadata={"help": "MBPP-format problems to train on; references are not used."}
    )
    dev_data: str | None = field(
        default=None,
        metadata={
            "help": "MBPP-format problems played greedily while training; the best acc@T is what is saved."
        },
    )
    dry_run: bool = field(
        default=False,
        metadata={
            "help": "Resolve everything, print the first prompts, steps, memory and warnings, and stop "
            "before the weights are loaded."
        },
    )
    credit: Literal["turn", "trajectory", "last"] = field(
        default="trajectory",
        metadata={
            "help": "Whose tokens are trained, with which return: `trajectory` gives every turn the "
            "accumulated reward, `turn` gives each turn its own return-to-go, `last` trains only turn T, "
            "on shared earlier turns (the released code; gamma has no effect there)."
        },
    )
    gamma: float = field(
        default=0.5, metadata={"help": "Discount between turns, in [0, 1].", "aliases": ["--weight"]}
    )
    improvement_bonus: float = field(
        default=0.0,
        metadata={"help": "Added to the return of turns 2..T per unit of r_t - r_(t-1); credit `turn` only."},
    )
    turn_weights: list[float] | None = field(
        default=None,
        metadata={
            "help": "What each turn's reward counts in the returns of credit `turn`, a number per turn; all "
            "1 by default. `0 1` is SCoRe's stage I."
        },
    )
    turn_betas: list[float] | None = field(
        default=None,
        metadata={"help": "A KL coefficient per turn, in place of --beta; `0.25 0.01` is SCoRe's stage I."},
    )
    reward: Literal["fraction", "binary", "count"] = field(
        default="fraction",
        metadata={"help": "Reward of a program: share of tests passed, all-or-nothing, or their number."},
    )
    num_generations: int = field(
        default=2, metadata={"help": "Trajectories per problem (k), 2 or more.", "aliases": ["--rloo_k"]}
    )
    rollout_batch_size: int = field(
        default=64,
        metadata={
            "help": "Sequences per forward pass while sampling and computing old log-probabilities.",
            "aliases": ["--local_rollout_forward_batch_size"],
        },
    )
    run_name: str | None = field(
        default=None, metadata={"help": "Name of the run in the logs.", "aliases": ["--wandb_run_name"]}
    )
    global_batch_size: int | None = field(
        default=128,
        metadata={"help": "Trajectories per update over all devices; sets gradient_accumulation_steps."},
    )
    per_device_train_batch_size: int = field(
        default=4,
        metadata={"help": "Trajectories per device and forward pass; each becomes a row per trained turn."},
    )
    learning_rate: float = field(default=1e-5, metadata={"help": "Peak learning rate of AdamW."})
    lr_scheduler_type: str = field(default="cosine", metadata={"help": "Learning-rate schedule."})
    max_steps: int = field(default=1500, metadata={"help": "Number of updates."})
    num_train_epochs: float = field(
        default=0.0, metadata={"help": "Passes over the data, in place of max_steps; 0: max_steps decides."}
    )
    temperature: float = field(
        default=0.9, metadata={"help": "Sampling temperature of the training rollouts."}
    )
    disable_dropout: bool = field(
        default=True,
        metadata={
            "help": "No dropout, LoRA's neither: with it the ratio of new to old probabilities is noisy."
        },
    )
    beta: float = field(
        default=0.01,
        metadata={"help": "Coefficient of the KL penalty; 0 saves the reference model and its forward pass."},
    )
    eval_steps: float | None = field(
        default=0.1, metadata={"help": "Updates between evaluations; below 1 a share of all."}
    )
    save_steps: float = field(
        default=0.1, metadata={"help": "Updates between checkpoints; below 1 a share of all."}
    )
    save_total_limit: int | None = field(
        default=2, metadata={"help": "Checkpoints kept; the best is among them."}
    )
    resume_from_checkpoint: str | None = field(
        default=None,
        metadata={"help": "`last` for the newest whole checkpoint in output_dir, or the path of one."},
    )
    num_generations_eval: int | None = field(
        default=1, metadata={"help": "Greedy trajectories per dev problem: always 1."}
    )
    max_truncated_share: float = field(
        default=0.9,
        metadata={"help": "Stop when a larger share of completions is cut off at max_completion_length."},
    )
    dead_batches: int = field(
        default=10,
        metadata={"help": "Warn after this many batches in a row in which no group's returns differ."},
    )
    bf16: bool | None = field(
        default=None, metadata={"help": "bfloat16 autocast; on by default where the GPU has it."}
    )

    def __post_init__(self) -> None:
        _check_prompt_options(self)
        if not self.train_data:
            raise ValueError("--train_data is missing; see --help")
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"--gamma is {self.gamma}; it must lie in [0, 1]")
        if self.improvement_bonus and self.credit != "turn":
            raise ValueError("--improvement_bonus needs --credit turn")
        if self.turn_weights is not None and self.credit != "turn":
            raise ValueError("--turn_weights needs --credit turn")
        for name in ("turn_weights", "turn_betas"):
            values = getattr(self, name)
            if values is not None and (len(values) != self.num_turns or min(values) < 0):
                raise ValueError(f"--{name} is {values}; give --num_turns numbers, 0 or more each")
        if self.turn_betas is not None:
            self.beta = max(self.turn_betas)  # the parent keeps a reference model where beta is above 0
        for name, neutral in UNTRUNCATED.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} is {getattr(self, name)}; training samples from the whole distribution, whose "
                    f"log-probabilities it trains on: leave it at {neutral} and use --temperature"
                )
        for name, neutral in WITHOUT_EFFECT.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} has no effect here: advantages are leave-one-out differences of returns, made "
                    f"by --credit, --gamma, --reward and their kin; leave it out"
                )
        if self.sync_ref_model:
            raise ValueError(
                "--sync_ref_model moves the reference, which no checkpoint holds: a resumed run would be "
                "another one; leave it out"
            )
        _check_stopping(self)
        _fit_machine(self)
        _accumulate(self)
        _count_epochs(self)
        if self.dev_data:
            self.eval_strategy = self.save_strategy = "steps"
            self.load_best_model_at_end = True
            self.metric_for_best_model = f"eval_acc_t{self.num_turns}"
            self.greater_is_better = True
        super().__post_init__()
        local_batch = self.per_device_train_batch_size * self.steps_per_generation
        if self.credit == "last" and local_batch % self.num_generations:
            raise ValueError(
                f"--credit last needs whole groups on a device: {local_batch} trajectories (per-device batch "
                f"times accumulation) do not divide by --num_generations {self.num_generations}"
            )
        if self.use_vllm:
            sampling = self.generation_kwargs or {}  # type: ignore[has-type]  # declared in TRL
            self.generation_kwargs = sampling | STOP_AT_DONE


def longest_wait_s(args: CoCoSConfig) -> float | None:
    """How long a program may wait for its turn: half of what the ranks wait for each other, so that a slow
    executor ends a run with its own error. None where there is one rank.
    """
    return args.ddp_timeout / 2 if num_ranks() > 1 else None


def open_executor(options: ExecutorOptions, max_wait_s: float | None = None) -> Executor:
    """A running executor, the caller's to close; the ranks of a machine share its processors."""
    return Executor(
        options.executor_workers or num_processors(),
        Limits(wall_s=options.program_timeout_s, cpu_s=max(1, math.ceil(options.program_timeout_s))),
        options.sandbox,
        options.min_isolation,
        max_wait_s=max_wait_s,
    )


def prompt_protocol(options: PromptOptions) -> PromptProtocol:
    """The prompt protocol, with its few-shot problems read from their file."""
    return protocol(options.protocol, load_problems(options.few_shot_data) if options.few_shot_data else ())


def model_init_kwargs(args: TrainingArguments, model_args: ModelConfig) -> dict[str, Any]:
    """What from_pretrained is called with: TRL's model options, the config's own over them."""
    chosen = {
        "revision": model_args.model_revision,
        "attn_implementation": model_args.attn_implementation,
        "dtype": model_args.dtype,
    }
    return chosen | (args.model_init_kwargs or {})
