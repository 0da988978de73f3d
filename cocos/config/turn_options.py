"""Options of what happens between the turns, the same in training and in evaluation, and of repair agents.

Tests are of three classes: the prompt shows the first `--prompt_tests` visible tests (`PromptOptions`),
feedback and early stop use all visible tests, and hidden tests are scored only.
"""

from dataclasses import dataclass
from typing import ClassVar

from cocos.config.option import option, require_not_negative, require_positive
from cocos.literals import Agent, Carry, Feedback, OnRepeat, PlaceboKind


def check_carry(carry: Carry, feedback: Feedback) -> None:
    """Raise ValueError if feedback speaks of what later prompts do not have."""
    if carry == "nothing" and feedback != "none":
        raise ValueError(f"--carry nothing has no place for --feedback {feedback}; choose counterexamples")
    if carry == "counterexamples" and feedback == "verdict":
        raise ValueError(
            "--feedback verdict speaks of a program that --carry counterexamples does not show; choose "
            "error, or none for the failed tests alone"
        )


@dataclass
class TurnOptions:
    """Options of what happens between the turns."""

    group: ClassVar[str] = "between the turns"

    carry: Carry = option(
        role="rule",
        default="transcript",
        help="What the next prompt has of earlier turns: the `transcript`, the tests that programs failed "
        "(`counterexamples`), or `nothing`.",
    )
    feedback: Feedback = option(
        role="rule",
        default="none",
        help="Feedback on the last program in the next prompt. `verdict`: how many visible tests pass. "
        "`error`: also the first that fail (oracle).",
    )
    feedback_failures: int = option(
        role="rule", default=1, help="Failing tests that --feedback error quotes, 1 to 3."
    )
    early_stop: bool = option(
        role="rule",
        default=False,
        help="End a trajectory when its program passes the visible tests (an oracle).",
    )
    on_repeat: OnRepeat = option(
        role="rule",
        default="keep",
        help="If a program equals the previous one: `keep` it, `resample` the turn once (not in training), "
        "or `tell` so in the next prompt.",
    )
    placebo: PlaceboKind = option(
        role="rule",
        default="none",
        help="Control of counterexamples: a `notice`, an `other` problem's tests, or `wrong` values.",
    )
    visible_tests: int | None = option(
        role="prompt",
        default=None,
        help="Hide all but the first N tests; hidden ones are scored, never shown.",
    )
    answers: list[str] = option(
        role="given",
        default_factory=list,
        help="Given first turns: `references`, `buggy` (a turn each), or a file.",
    )

    def __post_init__(self) -> None:
        if not 1 <= self.feedback_failures <= 3:
            raise ValueError(f"--feedback_failures is {self.feedback_failures}; give 1, 2 or 3")
        if self.feedback_failures > 1 and not self.tells_errors:
            raise ValueError("--feedback_failures needs --feedback error")
        check_carry(self.carry, self.feedback)
        if self.carry != "transcript" and self.on_repeat == "tell":
            raise ValueError(f"--on_repeat tell speaks of programs that --carry {self.carry} does not show")
        if self.carry == "counterexamples" and self.visible_tests == 0:
            raise ValueError("--carry counterexamples needs visible tests, but --visible_tests is 0")
        if self.placebo != "none" and self.carry != "counterexamples":
            raise ValueError(f"--placebo {self.placebo} needs --carry counterexamples")
        require_not_negative(self, "visible_tests")
        if self.visible_tests == 0 and (self.feedback != "none" or self.early_stop):
            raise ValueError(
                "--feedback and --early_stop need visible tests, but --visible_tests is 0; give 1 or more, "
                "and --prompt_tests 0 to keep them out of the prompt"
            )

    @property
    def tells_errors(self) -> bool:
        """Return True if prompts quote failing tests."""
        return self.feedback == "error" or self.carry == "counterexamples"


# Attempt i of reflect is sampled at 0.25 + 0.2 i, at most 0.9: what failed is not written again.
AGENT_TEMPERATURES: dict[Agent, list[float]] = {
    "none": [0.0],
    "reflect": [0.0, 0.45, 0.65, 0.85, 0.9],
    "react": [0.0],
    "tools": [0.7, 0.5, 0.3],
}


@dataclass
class AgentOptions(TurnOptions):
    """Options of what happens between the turns, and of repair agents, which decide it themselves."""

    agent: Agent = option(
        role="prompt", default="none", help="Repair agent that plays instead (docs/agents.md); an oracle."
    )
    max_repeats: int = option(
        role="rule", default=3, help="Repeated programs, failures or calls that end an agent."
    )

    def __post_init__(self) -> None:
        TurnOptions.__post_init__(self)
        require_positive(self, "max_repeats")
        if self.agent == "none":
            return
        if self.feedback != "none" or self.early_stop or self.on_repeat != "keep":
            raise ValueError(
                f"--agent {self.agent} has its own feedback, end and treatment of repeated programs; leave "
                "out --feedback, --early_stop and --on_repeat"
            )
        if self.carry != "transcript":
            raise ValueError(f"--agent {self.agent} plays on in its transcript; leave out --carry")
        if self.visible_tests == 0:
            raise ValueError(f"--agent {self.agent} needs visible tests; give --visible_tests 1 or more")

    @property
    def tells_errors(self) -> bool:
        """Return True if prompts quote failing tests, as those of every agent do."""
        return super().tells_errors or self.agent != "none"
