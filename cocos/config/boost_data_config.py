"""Options of scripts/make_boost_data.py."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from cocos.config.executor_options import ScoringOptions
from cocos.config.option import option, require_at_least, require_options, require_share
from cocos.config.prompt_options import PromptOptions
from cocos.config.turn_options import CarryOptions


@dataclass
class BoostDataConfig(CarryOptions, PromptOptions, ScoringOptions):
    """Options of scripts/make_boost_data.py."""

    group: ClassVar[str] = "attempts and rows"

    model_name_or_path: str = option(
        "model", "", "Model whose attempts are sampled: the base model that Boost will train."
    )
    train_data: str = option(
        "data",
        "",
        "File of MBPP-format problems to attempt, or a public set such as hub:mbpp/train. Its reference "
        "solutions can serve as corrections.",
    )
    output: str = option(
        "run", "", "File for the rows: JSON lines, or one JSON list if its name ends in .json."
    )
    num_samples: int = option("sampling", 2, "Attempts per problem.")
    samples: list[str] = option(
        "data",
        [],
        "Output folders of cocos eval whose first turns are the attempts, such as the samples from which "
        "select_problems.py selects. Nothing is sampled then.",
    )
    corrections: Literal["any", "reference", "own", "relabelled"] = option(
        "data",
        "any",
        "Source of the correction of a wrong attempt. `reference`: the reference solution, if it passes "
        "every test. `own`: a program of the model that passes every test, of several the one that differs "
        "least. `any`: the reference if it passes, otherwise the model's program. `relabelled`: after every "
        "attempt, right ones too, the right program that the model wrote most often (muCODE).",
    )
    num_corrections: int = option(
        "sampling",
        0,
        "Second turns per wrong attempt. Those that pass every test become corrections. 0: none.",
    )
    reference_attempts: bool = option(
        "data",
        False,
        "Count the reference as a further attempt at its problem, if it passes every test. For a model "
        "that solves few problems, so that it also learns right first programs and keeping them.",
    )
    planted_bugs: int = option(
        "data",
        0,
        "Bugs to plant in each right attempt, such as a missing bracket, another name, or a constant "
        "that is one off; each makes a wrong attempt, whose correction is the right one. 0: none.",
    )
    first_turns: Literal["all", "right"] = option(
        "data",
        "all",
        "Attempts that are learnt as first turns: all of them, as CoCoS does, or the right ones.",
    )
    pairs_per_problem: int | None = option(
        "data", None, "Largest number of attempts per problem that become rows. No limit by default."
    )
    keep_share: float | None = option(
        "data",
        None,
        "Share of second turns that repeat a right attempt, in [0, 1]; the others correct a wrong one. "
        "Attempts of the more frequent kind are dropped at random to reach it. By default none is dropped.",
    )
    temperature: float = option("sampling", 0.9, "Sampling temperature of both turns; 0 decodes greedily.")
    max_completion_length: int = option("length", 512, "Largest number of new tokens per turn.")
    batch_size: int = option("sampling", 32, "Problems per batch.")
    seed: int = option("sampling", 42, "Seed of sampling and of the selection of rows.")

    def __post_init__(self) -> None:
        PromptOptions.__post_init__(self)
        ScoringOptions.__post_init__(self)
        CarryOptions.__post_init__(self)
        require_options(self, "model_name_or_path", "train_data", "output")
        require_at_least(self, 1, "num_samples", "batch_size", "max_completion_length", "pairs_per_problem")
        require_at_least(self, 0, "num_corrections", "planted_bugs")
        require_share(self, "keep_share")
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
