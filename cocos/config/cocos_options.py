"""Options of train.py, without those of TRL. Imports neither torch nor TRL, so that --help is fast."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, get_args

from cocos.config.executor_options import ScoringOptions
from cocos.config.option import RLOO_SOURCES, option, require_at_least, require_share
from cocos.config.prompt_options import PromptOptions
from cocos.config.training_options import TrainingOptions
from cocos.config.turn_options import TurnOptions
from cocos.literals import Credit, RewardKind, RewardTests


@dataclass
class RewardOptions:
    """Options of rewards and returns."""

    group: ClassVar[str] = "rewards and returns"

    reward: str = option(
        "objective",
        "fraction",
        "`fraction` or `count` of passed tests; `binary`; `mixed`, the mean of both; "
        "`random`, a control; or `module:function`.",
    )
    reward_tests: RewardTests = option(
        "objective", "all", "Tests that pay: `all`, or only the `hidden` ones."
    )
    reward_in_child: bool = option(
        "objective", False, "Reward a test even if the program could forge the verdict (`in_child`)."
    )
    credit: Credit = option(
        "objective",
        "trajectory",
        "Trained turns and returns (r_t: reward of turn t). `trajectory`: all, each with its part of the "
        "sum of gamma^(T-t) * (r_t - r_(t-1)). `turn`: all, the sum of gamma^(s-t) * r_s over s >= t. "
        "`last`: turn T; a group shares the others.",
    )
    gamma: float = option(
        "objective", 0.5, "Discount factor between turns, in [0, 1]; see --credit.", aliases=("--weight",)
    )
    improvement_bonus: float = option(
        "objective", 0.0, "Further weight of r_t for t > 1, SCoRe's alpha; --credit turn."
    )
    turn_weights: list[float] | None = option(
        "objective", None, "Weight of each turn's reward, by default 1; --credit turn."
    )
    max_at_k: int = option("objective", 1, "Maximise max@k, the largest of k rewards; --num_turns 1.")
    beta: float = option("objective", 0.01, "Coefficient of the KL penalty; 0: no reference model.")
    turn_betas: list[float] | None = option(
        "objective", None, "KL coefficient of each turn, instead of --beta."
    )


@dataclass
class RolloutOptions:
    """Options of the sampling of trajectories."""

    group: ClassVar[str] = "rollouts"

    num_generations: int = option(
        "sampling", 2, "Trajectories per problem (the group size), 2 or more.", aliases=("--rloo_k",)
    )
    temperature: float = option("sampling", 0.9, "Sampling temperature, above 0.")
    max_completion_length: int = option("length", 512, "Largest number of new tokens per turn.")
    rollout_batch_size: int = option(
        "sampling",
        64,
        "Sequences that a device samples, or scores, at a time.",
        aliases=("--local_rollout_forward_batch_size",),
    )
    share_prefixes: bool = option("run", True, "Compute the tokens that rows share only once.")
    dynamic_sampling: int = option(
        "sampling", 0, "Further draws per batch, at most, in place of groups with equal returns."
    )
    max_truncated_share: float = option("run", 0.9, "Stop if more completions of a batch are truncated.")


@dataclass
class CoCoSOptions(
    RewardOptions, RolloutOptions, TurnOptions, PromptOptions, ScoringOptions, TrainingOptions
):
    """Options of train.py; the defaults are the paper's."""

    full_name: ClassVar[str] = "CoCoSConfig"
    library_sources: ClassVar = RLOO_SOURCES

    train_data: str = option("data", "", "MBPP-format problems, or a public set such as hub:mbpp/train.")
    limit: int | None = option(
        "data", None, "Largest number of problems to train on, from the first. All by default."
    )
    dev_data: str | None = option(
        "data", None, "Problems of the greedy evaluation that chooses the checkpoint."
    )
    global_batch_size: int | None = option("update", 128, "Trajectories per update over all devices.")
    per_device_train_batch_size: int = option(
        "update", 4, "Trajectories per device and pass, with a row per trained turn."
    )
    program_timeout_factor: float | None = option(
        "executor", 10.0, "Limit of a program as a multiple of its reference's time."
    )

    def __post_init__(self) -> None:
        """Check the options that need no library."""
        PromptOptions.__post_init__(self)
        TurnOptions.__post_init__(self)
        ScoringOptions.__post_init__(self)
        TrainingOptions.__post_init__(self)
        require_at_least(self, 1, "limit")
        self._check_returns()
        self._check_max_at_k()
        self._check_rollouts()

    def _check_returns(self) -> None:
        if ":" not in self.reward and self.reward not in get_args(RewardKind):
            raise ValueError(
                f"--reward is {self.reward!r}; choose {', '.join(get_args(RewardKind))}, or give a function "
                "of your own as module:function"
            )
        if ":" in self.reward and self.reward_tests == "hidden":
            raise ValueError(
                "--reward_tests hidden has no effect on a --reward of your own, which sees all verdicts; "
                "leave it out"
            )
        require_share(self, "gamma")
        require_at_least(self, 0, "beta")
        if self.improvement_bonus and self.credit != "turn":
            raise ValueError("--improvement_bonus needs --credit turn")
        if self.turn_weights is not None and self.credit != "turn":
            raise ValueError("--turn_weights needs --credit turn")
        for name in ("turn_weights", "turn_betas"):
            values = getattr(self, name)
            if values is not None and (len(values) != self.num_turns or min(values) < 0):
                raise ValueError(f"--{name} is {values}; give --num_turns numbers, each 0 or more")

    def _check_max_at_k(self) -> None:
        require_at_least(self, 1, "max_at_k")
        if self.max_at_k > 1 and self.num_turns > 1:
            raise ValueError(
                f"--max_at_k {self.max_at_k} is about single attempts; give --num_turns 1, or train whole "
                "episodes: --credit trajectory --gamma 1 --carry nothing --early_stop true"
            )
        if 1 < self.num_generations <= self.max_at_k:
            raise ValueError(
                f"--max_at_k {self.max_at_k} needs --num_generations above it, not {self.num_generations}, "
                "because an attempt is compared with the best of k others"
            )

    def _check_rollouts(self) -> None:
        require_at_least(self, 1, "max_completion_length", "rollout_batch_size")
        require_share(self, "max_truncated_share")
        require_at_least(self, 0, "dynamic_sampling")
        if self.on_repeat == "resample":
            raise ValueError(
                "--on_repeat resample is for evaluation: a resampled turn does not have the policy's "
                "distribution, so its gradient would be wrong; choose keep or tell"
            )
        if not 0 < self.temperature < inf:
            raise ValueError(
                f"--temperature is {self.temperature}; give a finite number above 0: greedy trajectories of "
                "one problem are all equal, so that no update follows from them"
            )
        if self.num_generations < 2:
            raise ValueError(
                f"--num_generations is {self.num_generations}; give 2 or more, because the baseline of a "
                "trajectory is the mean of the others"
            )
