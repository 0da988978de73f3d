"""Options of what happens between the turns, the same in training and in evaluation.

Tests are of three classes: the prompt shows the first `--prompt_tests` visible tests (`PromptOptions`),
feedback and early stop use all visible tests, and hidden tests are scored only.
"""

from dataclasses import dataclass
from typing import ClassVar

from cocos.carry import CarryKind, named_carry
from cocos.config.option import option, require_at_least
from cocos.literals import Feedback, OnRepeat, PlaceboKind


@dataclass
class CarryOptions:
    """Options of what a later prompt has of earlier turns, and of when there is one."""

    group: ClassVar[str] = "between the turns"

    carry: CarryKind = option(
        "rule",
        "transcript",
        "What the next prompt has of earlier turns: the `transcript`, the tests that programs failed "
        "(`counterexamples`), or `nothing`.",
    )
    feedback: Feedback = option(
        "rule",
        "none",
        "Feedback on the last program in the next prompt. `verdict`: how many visible tests pass. "
        "`error`: also the first that fail (oracle).",
    )
    early_stop: bool = option(
        "rule", False, "End a trajectory when its program passes the visible tests (an oracle)."
    )

    def __post_init__(self) -> None:
        if reason := named_carry(self.carry).refusal(self.feedback):
            raise ValueError(reason)


@dataclass
class TurnOptions(CarryOptions):
    """Options of what happens between the turns."""

    feedback_failures: int = option("rule", 1, "Failing tests that --feedback error quotes, 1 to 3.")
    on_repeat: OnRepeat = option(
        "rule",
        "keep",
        "If a program equals the previous one: `keep` it, `resample` the turn once (not in training), "
        "or `tell` so in the next prompt.",
    )
    placebo: PlaceboKind = option("rule", "none", "Control: a `notice`, `other` tests, or `wrong` values.")
    visible_tests: int | None = option(
        "prompt", None, "Hide all but the first N tests; hidden ones are scored, never shown."
    )
    answers: list[str] = option(
        "given", [], "Given first turns: `references`, `buggy` (a turn each), or a file."
    )

    def __post_init__(self) -> None:
        CarryOptions.__post_init__(self)
        carry = named_carry(self.carry)
        if not 1 <= self.feedback_failures <= 3:
            raise ValueError(f"--feedback_failures is {self.feedback_failures}; give 1, 2 or 3")
        if self.feedback_failures > 1 and not self.tells_errors:
            raise ValueError("--feedback_failures needs --feedback error")
        if carry.starts_anew and self.on_repeat == "tell":
            raise ValueError(f"--on_repeat tell speaks of programs that --carry {self.carry} does not show")
        if carry.shows_failures and self.visible_tests == 0:
            raise ValueError(f"--carry {self.carry} needs visible tests, but --visible_tests is 0")
        if self.placebo != "none" and not carry.shows_failures:
            raise ValueError(f"--placebo {self.placebo} needs --carry counterexamples")
        require_at_least(self, 0, "visible_tests")
        if self.visible_tests == 0 and (self.feedback != "none" or self.early_stop):
            raise ValueError(
                "--feedback and --early_stop need visible tests, but --visible_tests is 0; give 1 or more, "
                "and --prompt_tests 0 to keep them out of the prompt"
            )

    @property
    def tells_errors(self) -> bool:
        """Return True if prompts quote failing tests."""
        return self.feedback == "error" or named_carry(self.carry).shows_failures
