"""Options of train.py."""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg
from trl import RLOOConfig

from cocos.config.shared_options import ExecutorOptions, PromptOptions, require_positive
from cocos.config.training_options import TrainingOptions
from cocos.distributed import num_ranks
from cocos.generation.vllm_offline import STOP_AT_DONE
from cocos.rewards import Credit, Objective, RewardKind

UNTRUNCATED = {"top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
# TRL options for rewards, advantages and generation, which CoCoSTrainer replaces.
WITHOUT_EFFECT = {
    "normalize_advantages": False,
    "reward_clip_range": None,
    "reward_weights": None,
    "mask_truncated_completions": False,
    "cache_implementation": None,
    "chat_template_kwargs": None,
}


@dataclass
class CoCoSConfig(PromptOptions, ExecutorOptions, TrainingOptions, RLOOConfig):
    """Options of train.py: TRL's RLOOConfig with the paper's values, and options of turns and rewards."""

    train_data: str = HfArg(
        default="", help="File of MBPP-format problems to train on. Reference solutions are not used."
    )
    dev_data: str | None = HfArg(
        default=None,
        help="File of MBPP-format problems for greedy evaluation during training. The checkpoint with the "
        "best accuracy in the last turn is saved. By default there is no evaluation, and the final weights "
        "are saved.",
    )
    credit: Credit = HfArg(
        default="trajectory",
        help="Turns that are trained, and their returns, where r_t is the reward of turn t and r_0 = 0. "
        "`trajectory`: all turns, each with the sum of gamma^(T-t) * (r_t - r_(t-1)) over all turns. "
        "`turn`: all turns, turn t with the sum of gamma^(s-t) * r_s over the turns s >= t. `last`: turn T "
        "only, with the return of `trajectory`; a group shares the earlier turns, so --gamma has no effect "
        "(as in the released code).",
    )
    gamma: float = HfArg(
        default=0.5, aliases=["--weight"], help="Discount factor between turns, in [0, 1]; see --credit."
    )
    improvement_bonus: float = HfArg(
        default=0.0,
        help="Coefficient of the bonus r_t - r_(t-1), which is added to the return of each turn after the "
        "first. Only with --credit turn. 0: no bonus.",
    )
    turn_weights: list[float] | None = HfArg(
        default=None,
        help="Weight of each turn's reward in the returns, one number per turn. Only with --credit turn. By "
        "default all are 1. SCoRe's stage I uses `0 1`.",
    )
    turn_betas: list[float] | None = HfArg(
        default=None,
        help="KL coefficient of each turn, one number per turn; replaces --beta. SCoRe's stage I uses "
        "`0.25 0.01`.",
    )
    reward: RewardKind = HfArg(
        default="fraction",
        help="Reward of a program. `fraction`: share of its tests that pass. `binary`: 1 if all pass, "
        "otherwise 0. `count`: number of tests that pass.",
    )
    num_generations: int = HfArg(
        default=2, aliases=["--rloo_k"], help="Trajectories per problem (the group size), 2 or more."
    )
    rollout_batch_size: int = HfArg(
        default=64,
        aliases=["--local_rollout_forward_batch_size"],
        help="Sequences per device in one batch of sampling or of computing the old log-probabilities.",
    )
    global_batch_size: int | None = HfArg(
        default=128, help="Trajectories per update over all devices; sets gradient_accumulation_steps."
    )
    per_device_train_batch_size: int = HfArg(
        default=4,
        help="Trajectories per device in one forward and backward pass. Each becomes one row per trained "
        "turn.",
    )
    learning_rate: float = HfArg(default=1e-5, help="Peak learning rate of AdamW.")
    max_steps: int = HfArg(default=1500, help="Number of updates.")
    temperature: float = HfArg(default=0.9, help="Sampling temperature of the training rollouts.")
    disable_dropout: bool = HfArg(
        default=True,
        help="Turn off dropout, also LoRA's. It would add noise to the ratio of new to old probabilities.",
    )
    beta: float = HfArg(
        default=0.01, help="Coefficient of the KL penalty. With 0, no reference model is loaded."
    )
    save_total_limit: int | None = HfArg(
        default=2, help="Number of checkpoints to keep. The best one is always kept."
    )
    num_generations_eval: int | None = HfArg(
        default=1, help="Greedy trajectories per --dev_data problem; leave it at 1."
    )
    max_truncated_share: float = HfArg(
        default=0.9,
        help="Stop with an error if a larger share of a batch's completions reaches --max_completion_length.",
    )
    dead_batches: int = HfArg(
        default=10,
        help="Warn after this many consecutive batches in which all returns of each group are equal, so that "
        "every advantage is 0.",
    )

    def __post_init__(self) -> None:
        require_positive(self, "num_turns")
        self._check_returns()
        self._check_inherited_options()
        if self.turn_betas is not None:
            self.beta = max(self.turn_betas)  # RLOOTrainer loads a reference model only if beta is not 0
        if self.dev_data:
            self._keep_best_checkpoint(f"eval_acc_t{self.num_turns}", greater_is_better=True)
        super().__post_init__()
        local_batch = self.per_device_train_batch_size * self.steps_per_generation
        if self.credit == "last" and local_batch % self.num_generations:
            raise ValueError(
                f"--credit last needs whole groups on a device: {local_batch} trajectories "
                f"(--per_device_train_batch_size times accumulation) are not divisible by --num_generations "
                f"{self.num_generations}; change one of them"
            )
        if self.use_vllm:
            sampling = self.generation_kwargs or {}  # type: ignore[has-type]  # declared in TRL
            self.generation_kwargs = sampling | STOP_AT_DONE

    @property
    def objective(self) -> Objective:
        """Training objective: trained turns and returns."""
        return Objective(
            num_turns=self.num_turns,
            num_generations=self.num_generations,
            credit=self.credit,
            gamma=self.gamma,
            improvement_bonus=self.improvement_bonus,
            turn_weights=self.turn_weights,
            betas_T=self.turn_betas or [self.beta] * self.num_turns,
        )

    @property
    def max_executor_wait_s(self) -> float | None:
        """Longest time in seconds that a program may wait for a worker; None with a single rank.

        This is half of the communication timeout of the ranks. A slow executor thus ends the run with its
        own error message before the communication times out.
        """
        return self.ddp_timeout / 2 if num_ranks() > 1 else None

    def _check_returns(self) -> None:
        if not 0 <= self.gamma <= 1:
            raise ValueError(f"--gamma is {self.gamma}; it must lie in [0, 1]")
        if self.improvement_bonus and self.credit != "turn":
            raise ValueError("--improvement_bonus needs --credit turn")
        if self.turn_weights is not None and self.credit != "turn":
            raise ValueError("--turn_weights needs --credit turn")
        for name in ("turn_weights", "turn_betas"):
            values = getattr(self, name)
            if values is not None and (len(values) != self.num_turns or min(values) < 0):
                raise ValueError(f"--{name} is {values}; give --num_turns numbers, each 0 or more")

    def _check_inherited_options(self) -> None:
        for name, neutral in UNTRUNCATED.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} is {getattr(self, name)}, but training must sample from the whole "
                    "distribution, because the loss uses its log-probabilities; leave it at "
                    f"{neutral} and use --temperature"
                )
        for name, neutral in WITHOUT_EFFECT.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} has no effect, because CoCoSTrainer replaces TRL's rewards, advantages and "
                    "generation; leave it out"
                )
        if self.sync_ref_model:
            raise ValueError(
                "--sync_ref_model changes the reference model, but checkpoints do not contain it, so a "
                "resumed run would differ from an uninterrupted one; leave it out"
            )
