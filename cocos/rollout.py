"""The one turn loop: training, evaluation and Boost data all call `rollout`; only the generator handed in
differs.

Transcripts are token-exact. The prompt of turn t+1 is the prompt of turn t, the ids that were sampled, and
the ids of the next message; nothing is decoded and encoded again. Programs are executed while the
next turn is being generated. Knows nothing of rewards, models or files.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import NamedTuple

from cocos.executor import ExecutionResult, Executor, ExecutorError, Program
from cocos.generation import Completion, Generator
from cocos.problems import Problem
from cocos.prompts import DONE, PromptProtocol, extract_code


@dataclass(frozen=True)
class Turn:
    """One attempt.

    Attributes:
        prompt_ids: The whole transcript before it.
        completion: What was sampled.
        code: The program found in it.
        result: One verdict per test of the problem.

    """

    prompt_ids: tuple[int, ...]
    completion: Completion
    code: str
    result: ExecutionResult


@dataclass(frozen=True)
class Trajectory:
    """A problem and the turns taken on it so far; `sample` numbers independent trajectories of one problem,
    from 0.
    """

    problem: Problem
    sample: int = 0
    turns: tuple[Turn, ...] = ()


def begin(problems: Iterable[Problem], num_samples: int = 1) -> list[Trajectory]:
    """Empty trajectories, `num_samples` neighbours per problem."""
    return [Trajectory(problem, sample) for problem in problems for sample in range(num_samples)]


def rollout(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
) -> list[Trajectory]:
    """Continue every trajectory to `num_turns` turns, without showing the model any execution result.

    Args:
        trajectories: From `begin`, or with turns already taken; all equally many.
        num_turns: T, counted from the start of the trajectory.

    Returns:
        The trajectories, in order, each with `num_turns` turns and every program executed.

    """
    if not trajectories:
        return []
    taken = {len(trajectory.turns) for trajectory in trajectories}
    assert len(taken) == 1, "trajectories of unequal length"
    prompts = [_next_prompt(trajectory, generator, protocol) for trajectory in trajectories]
    started: list[list[_Started]] = [[] for _ in trajectories]
    running: dict[Program, Future[ExecutionResult]] = {}  # siblings often write the same program: run it once
    for _ in range(taken.pop(), num_turns):
        completions = generator.generate(prompts)
        for i, completion in enumerate(completions):
            code = extract_code(completion.text)
            candidate = program(trajectories[i].problem, code)
            if candidate not in running:
                running[candidate] = executor.submit(candidate)
            started[i].append(_Started(tuple(prompts[i]), completion, code, running[candidate]))
            prompts[i] = _extend(prompts[i], completion, generator, protocol)
    return [
        replace(trajectory, turns=trajectory.turns + tuple(Turn(*s[:-1], s.result.result()) for s in turns))
        for trajectory, turns in zip(trajectories, started, strict=True)
    ]


class _Started(NamedTuple):
    """A turn whose program may still be running."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    code: str
    result: Future[ExecutionResult]


def check_executed(trajectories: Sequence[Trajectory], max_infra_share: float) -> None:
    """Stop rather than train or report on what the executor could not decide.

    Raises:
        ExecutorError: More than `max_infra_share` of the programs met a failure of the executor itself.

    """
    results = [turn.result for trajectory in trajectories for turn in trajectory.turns]
    failed = [result for result in results if result.is_infra_failure]
    if len(failed) > max_infra_share * len(results):
        raise ExecutorError(
            f"{len(failed)} of {len(results)} programs met a failure of the executor itself, more than "
            f"--max_infra_share {max_infra_share}; the first: {failed[0].infra_error}"
        )


def program(problem: Problem, code: str) -> Program:
    """The program that decides about a candidate: its code, the set-up, then each test, hidden ones too."""
    return Program(code, problem.scored_tests, problem.setup)


def _next_prompt(trajectory: Trajectory, generator: Generator, protocol: PromptProtocol) -> list[int]:
    if not trajectory.turns:
        return generator.start(protocol.first_turn(trajectory.problem), protocol.is_chat)
    last = trajectory.turns[-1]
    return _extend(last.prompt_ids, last.completion, generator, protocol)


def _extend(
    prompt: Sequence[int], completion: Completion, generator: Generator, protocol: PromptProtocol
) -> list[int]:
    message = protocol.later_turn(is_closed=DONE in completion.text)
    return generator.extend(prompt, completion, message, protocol.is_chat)
