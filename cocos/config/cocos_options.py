"""Options of train.py, without those of TRL. Imports neither torch nor TRL, so that --help is fast."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, get_args

from cocos.config.executor_options import ScoringOptions
from cocos.config.option import RLOO_SOURCES, option, require_not_negative, require_positive, require_share
from cocos.config.prompt_options import PromptOptions
from cocos.config.training_options import TrainingOptions
from cocos.config.turn_options import TurnOptions
from cocos.literals import Credit, RewardKind, RewardTests


@dataclass
class RewardOptions:
    """Options of rewards and returns."""

    group: ClassVar[str] = "rewards and returns"

    reward: str = option(
        role="objective",
        default="fraction",
        help="Reward: `fraction` or `count` of the tests that pass; `binary`, 1 if all do; `mixed`, the mean "
        "of fraction and binary; `random`, a control; or a function of your own, `module:function`.",
    )
    reward_tests: RewardTests = option(
        role="objective", default="all", help="Tests that pay: `all`, or only the `hidden` ones."
    )
    reward_in_child: bool = option(
        role="objective",
        default=False,
        help="Reward a test even if the program could forge the verdict (`in_child`).",
    )
    credit: Credit = option(
        role="objective",
        default="trajectory",
        help="Trained turns and their returns (r_t: reward of turn t, r_0 = 0). `trajectory`: all turns, "
        "each with its part of the sum of gamma^(T-t) * (r_t - r_(t-1)). `turn`: all, turn t with the sum of "
        "gamma^(s-t) * r_s over s >= t. `last`: turn T; a group shares the others.",
    )
    gamma: float = option(
        role="objective",
        default=0.5,
        aliases=("--weight",),
        help="Discount factor between turns, in [0, 1]; see --credit.",
    )
    improvement_bonus: float = option(
        role="objective", default=0.0, help="Further weight of r_t for t > 1, SCoRe's alpha; --credit turn."
    )
    turn_weights: list[float] | None = option(
        role="objective", default=None, help="Weight of each turn's reward, by default 1; --credit turn."
    )
    beta: float = option(
        role="objective", default=0.01, help="Coefficient of the KL penalty; 0: no reference model."
    )
    turn_betas: list[float] | None = option(
        role="objective", default=None, help="KL coefficient of each turn, instead of --beta."
    )


@dataclass
class RolloutOptions:
    """Options of the sampling of trajectories."""

    group: ClassVar[str] = "rollouts"

    num_generations: int = option(
        role="sampling",
        default=2,
        aliases=("--rloo_k",),
        help="Trajectories per problem (the group size), 2 or more.",
    )
    temperature: float = option(role="sampling", default=0.9, help="Sampling temperature, above 0.")
    max_completion_length: int = option(
        role="length", default=512, help="Largest number of new tokens per turn."
    )
    rollout_batch_size: int = option(
        role="sampling",
        default=64,
        aliases=("--local_rollout_forward_batch_size",),
        help="Sequences that a device samples, or scores, at a time.",
    )
    share_prefixes: bool = option(
        role="run", default=True, help="Compute the tokens that rows share only once."
    )
    dynamic_sampling: int = option(
        role="sampling",
        default=0,
        help="Further draws per batch, at most, in place of groups with equal returns.",
    )
    max_truncated_share: float = option(
        role="run", default=0.9, help="Stop if more completions of a batch are truncated."
    )


@dataclass
class CoCoSOptions(
    RewardOptions, RolloutOptions, TurnOptions, PromptOptions, ScoringOptions, TrainingOptions
):
    """Options of train.py; the defaults are the paper's."""

    full_name: ClassVar[str] = "CoCoSConfig"
    library_sources: ClassVar = RLOO_SOURCES

    train_data: str = option(
        role="data", default="", help="MBPP-format problems, or a public set such as hub:mbpp/train."
    )
    limit: int | None = option(
        role="data",
        default=None,
        help="Largest number of problems to train on, from the first. All by default.",
    )
    dev_data: str | None = option(
        role="data", default=None, help="Problems of the greedy evaluation that chooses the checkpoint."
    )
    global_batch_size: int | None = option(
        role="update", default=128, help="Trajectories per update over all devices."
    )
    per_device_train_batch_size: int = option(
        role="update", default=4, help="Trajectories per device and pass, with a row per trained turn."
    )
    program_timeout_factor: float | None = option(
        role="executor", default=10.0, help="Limit of a program as a multiple of its reference's time."
    )

    def __post_init__(self) -> None:
        """Check the options that need no library."""
        PromptOptions.__post_init__(self)
        TurnOptions.__post_init__(self)
        ScoringOptions.__post_init__(self)
        TrainingOptions.__post_init__(self)
        if self.limit is not None:
            require_positive(self, "limit")
        self._check_returns()
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
        require_not_negative(self, "beta")
        if self.improvement_bonus and self.credit != "turn":
            raise ValueError("--improvement_bonus needs --credit turn")
        if self.turn_weights is not None and self.credit != "turn":
            raise ValueError("--turn_weights needs --credit turn")
        for name in ("turn_weights", "turn_betas"):
            values = getattr(self, name)
            if values is not None and (len(values) != self.num_turns or min(values) < 0):
                raise ValueError(f"--{name} is {values}; give --num_turns numbers, each 0 or more")

    def _check_rollouts(self) -> None:
        require_positive(self, "max_completion_length", "rollout_batch_size")
        require_share(self, "max_truncated_share")
        require_not_negative(self, "dynamic_sampling")
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
