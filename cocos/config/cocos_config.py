"""The options of train.py."""

from dataclasses import dataclass, field
from typing import Literal

from trl import RLOOConfig

from cocos.config.option_groups import ExecutorOptions, PromptOptions, check_prompt_options
from cocos.config.training_options import accumulate, check_stopping, count_epochs, fit_machine
from cocos.distributed import num_ranks
from cocos.generation.vllm_offline import STOP_AT_DONE

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
        check_prompt_options(self)
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
        check_stopping(self)
        fit_machine(self)
        accumulate(self)
        count_epochs(self)
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
