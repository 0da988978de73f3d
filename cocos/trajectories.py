"""Turns, trajectories, and the rules between turns.

Plain frozen data: does not know how turns are generated or rewarded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cocos.executor import ExecutionResult, ExecutorError, Program
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.prompts import Feedback

OnRepeat = Literal["keep", "resample", "tell"]


@dataclass(frozen=True)
class Turn:
    """One attempt.

    Attributes:
        prompt_ids: The whole transcript before it.
        completion: What was sampled.
        code: The program found in it.
        result: One verdict per test of the problem.
        told: What the model was told about its program before, "" for nothing.
        is_given: It was written elsewhere (`Trajectory.given`).
        is_resampled: It was asked once more, since its first answer repeated the program before.
        is_carried: The trajectory had stopped: the answer is that of the turn before, and nothing was asked.

    """

    prompt_ids: tuple[int, ...]
    completion: Completion
    code: str
    result: ExecutionResult
    told: str = ""
    is_given: bool = False
    is_resampled: bool = False
    is_carried: bool = False


@dataclass(frozen=True)
class Trajectory:
    """A problem and the turns taken on it so far.

    Attributes:
        problem: What is to be solved.
        sample: Number among the independent trajectories of the problem, from 0.
        turns: From the first on.
        given: Answers that stand as the first turns' in place of the generator's.

    """

    problem: Problem
    sample: int = 0
    turns: tuple[Turn, ...] = ()
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    """What happens between turns. As it stands, and in training: nothing, every turn is taken.

    Attributes:
        feedback: What the model is told about its program.
        feedback_chars: Of a test, and of what went wrong with it, at most.
        early_stop: A trajectory whose program passes the shown tests ends; its answer is carried forward.
        on_repeat: Where a program is that of the turn before: `keep` it, `resample` the turn once, or `tell`
            the model so before its next turn.
        temperatures: Of turn 1, 2, ...; the last holds from there on. (): the generator's own.
        seed: With problem, sample and turn it decides what is sampled. None: the process's random state.

    """

    feedback: Feedback = "none"
    feedback_chars: int = 300
    early_stop: bool = False
    on_repeat: OnRepeat = "keep"
    temperatures: tuple[float, ...] = ()
    seed: int | None = None


def begin(problems: Iterable[Problem], num_samples: int = 1) -> list[Trajectory]:
    """Empty trajectories, `num_samples` neighbours per problem."""
    return [Trajectory(problem, sample) for problem in problems for sample in range(num_samples)]


def check_infra_failures(trajectories: Sequence[Trajectory], max_infra_share: float) -> None:
    """Stop rather than train or report on what the infrastructure could not decide.

    Raises:
        ExecutorError: More than `max_infra_share` of the answers met a failure of executor or endpoint.

    """
    results = [turn.result for trajectory in trajectories for turn in trajectory.turns]
    failed = [result for result in results if result.is_infra_failure]
    if len(failed) > max_infra_share * len(results):
        raise ExecutorError(
            f"{len(failed)} of {len(results)} answers met a failure of the executor or the endpoint, more "
            f"than --max_infra_share {max_infra_share}; the first: {failed[0].infra_error}"
        )


def as_program(problem: Problem, code: str) -> Program:
    """The program that decides about a candidate: its code, the set-up, then each test, hidden ones too."""
    return Program(code, problem.scored_tests, problem.setup)
