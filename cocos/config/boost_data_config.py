"""Options of scripts/make_boost_data.py."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cocos.config.executor_options import ScoringOptions
from cocos.config.option import option, require_options, require_positive
from cocos.config.prompt_options import PromptOptions
from cocos.config.turn_options import check_carry
from cocos.literals import Carry, Feedback


@dataclass
class BoostDataConfig(PromptOptions, ScoringOptions):
    """Options of scripts/make_boost_data.py."""

    group: ClassVar[str] = "attempts and rows"

    model_name_or_path: str = option(
        role="model",
        default="",
        help="Model whose attempts are sampled: the base model that Boost will train.",
    )
    train_data: str = option(
        role="data",
        default="",
        help="File of MBPP-format problems to attempt, or a public set such as hub:mbpp/train. Its reference "
        "solutions can serve as corrections.",
    )
    output: str = option(
        role="run",
        default="",
        help="File for the rows: JSON lines, or one JSON list if its name ends in .json.",
    )
    num_samples: int = option(role="sampling", default=2, help="Attempts per problem.")
    samples: list[str] = option(
        role="data",
        default_factory=list,
        help="Output folders of test.py whose first turns are the attempts, such as the samples from which "
        "select_problems.py selects. Nothing is sampled then.",
    )
    corrections: Literal["any", "reference", "own", "relabelled"] = option(
        role="data",
        default="any",
        help="Source of the correction of a wrong attempt. `reference`: the reference solution, if it passes "
        "every test. `own`: a program of the model that passes every test, of several the one that differs "
        "least. `any`: the reference if it passes, otherwise the model's program. `relabelled`: after every "
        "attempt, right ones too, the right program that the model wrote most often (muCODE).",
    )
    num_corrections: int = option(
        role="sampling",
        default=0,
        help="Second turns per wrong attempt. Those that pass every test become corrections. 0: none.",
    )
    carry: Carry = option(
        role="rule",
        default="transcript",
        help="What the prompt of the second turn has of the attempt, as in training and evaluation: the "
        "`transcript`, the tests that it failed (`counterexamples`), or `nothing`.",
    )
    feedback: Feedback = option(
        role="rule",
        default="none",
        help="Feedback on the attempt in the prompt of the second turn, as in training and evaluation.",
    )
    reference_attempts: bool = option(
        role="data",
        default=False,
        help="Count the reference as a further attempt at its problem, if it passes every test. For a model "
        "that solves few problems, so that it also learns right first programs and keeping them.",
    )
    planted_bugs: int = option(
        role="data",
        default=0,
        help="Bugs to plant in each right attempt, such as a missing bracket, another name, or a constant "
        "that is one off; each makes a wrong attempt, whose correction is the right one. 0: none.",
    )
    first_turns: Literal["all", "right"] = option(
        role="data",
        default="all",
        help="Attempts that are learnt as first turns: all of them, as CoCoS does, or the right ones.",
    )
    early_stop: bool = option(
        role="rule",
        default=False,
        help="Make no second turn after an attempt that passes the visible tests, as training and evaluation "
        "with --early_stop play none.",
    )
    pairs_per_problem: int | None = option(
        role="data",
        default=None,
        help="Largest number of attempts per problem that become rows. No limit by default.",
    )
    keep_share: float | None = option(
        role="data",
        default=None,
        help="Share of second turns that repeat a right attempt, in [0, 1]; the others correct a wrong one. "
        "Attempts of the more frequent kind are dropped at random to reach it. By default none is dropped.",
    )
    temperature: float = option(
        role="sampling", default=0.9, help="Sampling temperature of both turns; 0 decodes greedily."
    )
    max_completion_length: int = option(
        role="length", default=512, help="Largest number of new tokens per turn."
    )
    batch_size: int = option(role="sampling", default=32, help="Problems per batch.")
    seed: int = option(role="sampling", default=42, help="Seed of sampling and of the selection of rows.")

    def __post_init__(self) -> None:
        PromptOptions.__post_init__(self)
        ScoringOptions.__post_init__(self)
        check_carry(self.carry, self.feedback)
        require_options(self, "model_name_or_path", "train_data", "output")
        require_positive(self, "num_samples", "batch_size", "max_completion_length")
        if self.num_corrections < 0 or (self.pairs_per_problem is not None and self.pairs_per_problem < 1):
            raise ValueError("--num_corrections is 0 or more, --pairs_per_problem 1 or more")
        if self.planted_bugs < 0:
            raise ValueError(f"--planted_bugs is {self.planted_bugs}; it must be 0 or more")
        if self.planted_bugs and self.corrections != "own":
            raise ValueError(
                f"--planted_bugs needs --corrections own, not {self.corrections}: a bug is repaired to the "
                "program in which it was planted"
            )
        if self.samples and self.num_corrections:
            raise ValueError("--num_corrections samples second turns; leave it out with --samples")
        if self.num_corrections and self.corrections == "reference":
            raise ValueError(
                "--num_corrections has no effect with --corrections reference; choose own or any"
            )
        if self.reference_attempts and self.corrections not in ("any", "reference"):
            raise ValueError(
                f"--reference_attempts has no effect with --corrections {self.corrections}; choose any or "
                "reference"
            )
        if self.keep_share is not None and not 0 <= self.keep_share <= 1:
            raise ValueError(f"--keep_share is {self.keep_share}; it must lie in [0, 1]")
