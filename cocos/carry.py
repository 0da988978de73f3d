"""Ways to carry earlier turns into a later prompt (`--carry`), and everything that depends on them.

A further way is a class in `CARRIES`, and its name in `CarryKind`. Does not know models, rules or rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeVar

from cocos.literals import Feedback
from cocos.problems import Problem
from cocos.prompts import NO_FAILURES, Failures, PromptProtocol

CarryKind = Literal["transcript", "counterexamples", "nothing"]
Item = TypeVar("Item")


class Shown(NamedTuple):
    """A problem and its failed tests as a prompt shows them."""

    problem: Problem
    failed: Failures


class PromptSize(NamedTuple):
    """A prompt by its message and its length in tokens, with the length of its completion."""

    request: str  # message of the turn; that of turn 1 begins with the system message
    num_tokens: int
    num_completion_tokens: int = 0

    def repeats(self, earlier: "PromptSize") -> bool:
        """Return whether the prompt is that of an earlier turn, which may be turn 1."""
        return self.num_tokens == earlier.num_tokens and earlier.request.endswith(self.request)


class Carry:
    """A way to carry earlier turns into later prompts. By default, each prompt begins anew with the task."""

    name: ClassVar[CarryKind]
    label: ClassVar[str] = ""  # of runs in a report; "" for the way of the paper
    starts_anew: ClassVar[bool] = True  # a later prompt begins with the task and has no earlier program
    shows_failures: ClassVar[bool] = False  # a later prompt has the visible tests that programs failed
    is_resampling: ClassVar[bool] = False  # a later prompt is turn 1's, so that turns are samples

    def refusal(self, feedback: Feedback) -> str:
        """Return why prompts have no place for a kind of feedback; "" if they have one."""
        return ""

    def shown(self, problem: Problem, failed: Callable[[], Failures]) -> Shown:
        """Return what the next prompt shows. `failed` waits for the programs and returns the failed tests."""
        return Shown(problem, NO_FAILURES)

    def message(
        self, protocol: PromptProtocol, shown: Shown, turn: int, feedback: str, is_closed: bool
    ) -> str:
        """Return the message of turn 2 or a later one; for the arguments see those of `PromptProtocol`."""
        return protocol.first_turn(*shown, turn)

    def states(self, prompts: Item) -> Item | None:
        """Return the prompts of siblings if only equal ones are compared; None: all of a turn are."""
        return prompts

    def covering(self, turns: Sequence[Item]) -> Sequence[Item]:
        """Return the turns of a trajectory whose prompts and completions have all of its tokens."""
        return turns

    def shared_tokens(self, prompts_T: Sequence[int], num_trained: int) -> int:
        """Return the tokens that the trained turns of siblings share, from the length of each prompt."""
        return prompts_T[0]

    def new_tokens(self, prompts: Sequence[PromptSize]) -> list[int]:
        """Return the tokens of each prompt of a trajectory that no cache of earlier turns has."""
        return [
            0 if any(map(prompt.repeats, prompts[:number])) else prompt.num_tokens
            for number, prompt in enumerate(prompts)
        ]


class Transcript(Carry):
    """All earlier turns: a prompt is the one before, its completion, and a message."""

    name = "transcript"
    starts_anew = False

    def message(
        self, protocol: PromptProtocol, shown: Shown, turn: int, feedback: str, is_closed: bool
    ) -> str:
        """Return a message that follows the last completion."""
        return protocol.later_turn(is_closed, feedback)

    def states(self, prompts: Item) -> Item | None:
        """Return None: prompts have the own programs, so hardly two are equal."""
        return None

    def covering(self, turns: Sequence[Item]) -> Sequence[Item]:
        """Return the last turn, whose prompt has all earlier ones."""
        return turns[-1:]

    def shared_tokens(self, prompts_T: Sequence[int], num_trained: int) -> int:
        """Return the prompt of the first trained turn."""
        return prompts_T[-num_trained]

    def new_tokens(self, prompts: Sequence[PromptSize]) -> list[int]:
        """Return the tokens of each prompt after the one before and its completion."""
        known = [0, *(prompt.num_tokens + prompt.num_completion_tokens for prompt in prompts)]
        return [max(0, prompt.num_tokens - size) for prompt, size in zip(prompts, known, strict=False)]


class Counterexamples(Carry):
    """The visible tests that earlier programs failed, with what they did instead."""

    name = "counterexamples"
    label = "failed tests without the program"
    shows_failures = True

    def refusal(self, feedback: Feedback) -> str:
        """Refuse feedback on a program that is not shown."""
        return (
            "--feedback verdict speaks of a program that --carry counterexamples does not show; choose "
            "error, or none for the failed tests alone"
        ) * (feedback == "verdict")

    def shown(self, problem: Problem, failed: Callable[[], Failures]) -> Shown:
        """Return the problem with its failed tests."""
        return Shown(problem, failed())


class Nothing(Carry):
    """Nothing: every prompt is turn 1's."""

    name = "nothing"
    label = "nothing of earlier turns"
    is_resampling = True

    def refusal(self, feedback: Feedback) -> str:
        """Refuse all feedback."""
        reason = f"--carry nothing has no place for --feedback {feedback}; choose counterexamples"
        return reason * (feedback != "none")


@dataclass(frozen=True)
class Placebo(Counterexamples):
    """A control: counterexamples whose prompts show something else in the place of the truth."""

    replace: Callable[[Problem, Failures], tuple[Problem, Failures]]

    def shown(self, problem: Problem, failed: Callable[[], Failures]) -> Shown:
        """Return what takes the place of the problem and its failed tests."""
        return Shown(*self.replace(*super().shown(problem, failed)))


TRANSCRIPT = Transcript()  # the way of the paper
CARRIES: dict[str, Carry] = {carry.name: carry for carry in (TRANSCRIPT, Counterexamples(), Nothing())}


def named_carry(name: str) -> Carry:
    """Return the way of that name; raise ValueError if there is none."""
    if name not in CARRIES:
        raise ValueError(f"--carry {name} is not known; choose one of {', '.join(CARRIES)}")
    return CARRIES[name]
