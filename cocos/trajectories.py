"""Turns, trajectories and their keys, and the rules between turns.

Turns and trajectories are frozen data. Does not know how a completion is generated (`cocos.generation`), how
a trajectory is played (`cocos.rollout`) or how it is rewarded (`cocos.rewards`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from cocos.carry import TRANSCRIPT, Carry, PromptSize, Shown
from cocos.executor import ExecutionResult, Program
from cocos.extraction import Source
from cocos.generation import Completion
from cocos.literals import Agent, Feedback, OnRepeat
from cocos.problems import Problem
from cocos.prompts import counterexamples

Key = tuple[str, int]  # task_id, sample


@dataclass(frozen=True)
class Step:
    """An agent's way to a turn."""

    node: str  # node of the agent's graph that made it
    temperature: float  # sampling temperature of its completion


@dataclass(frozen=True)
class Turn:
    """One attempt at a problem."""

    prompt_ids: tuple[int, ...]  # token ids of the whole transcript before the completion
    completion: Completion  # what the model generated
    code: str  # the program extracted from the completion; "" if it contains none
    result: ExecutionResult  # one verdict per test of the problem
    # Where the program was found in the completion; None: not there, but in a call of a tool, for example.
    source: Source | None = None
    feedback: str = ""  # feedback text in this turn's prompt; "" for none
    request: str = ""  # this turn's message, feedback included: what its prompt adds to the transcript
    is_given: bool = False  # the completion was given (`Trajectory.given`), not sampled
    # The first completion repeated the previous program, so a second one was sampled.
    is_resampled: bool = False
    # The trajectory had already ended. This turn repeats its last completion.
    is_carried: bool = False
    step: Step | None = None  # how an agent made the turn; None in the turn loop

    def asks_again(self, earlier: "Turn") -> bool:
        """Return whether the prompt is that of an earlier turn, also of rows, which have no token ids."""
        own, other = (
            PromptSize(turn.request, turn.completion.num_prompt_tokens or len(turn.prompt_ids))
            for turn in (self, earlier)
        )
        return bool(self.request) and own.repeats(other)

    @property
    def is_sampled(self) -> bool:
        """Return True if the model sampled the completion in this trajectory; only such turns are trained."""
        return not self.is_given and not self.is_carried


@dataclass(frozen=True)
class Trajectory:
    """A problem and the turns played on it so far."""

    problem: Problem  # the problem to solve
    sample: int = 0  # index among the independent trajectories of this problem, from 0
    # Turns 1, 2, ... in order.
    turns: tuple[Turn, ...] = ()
    given: tuple[str, ...] = ()  # completions to use for the first turns instead of sampling them

    @property
    def key(self) -> Key:
        """Identifier of the trajectory within a run: (task_id, sample)."""
        return self.problem.task_id, self.sample


@dataclass(frozen=True)
class Rules:
    """Rules between turns. The defaults are the paper's: no feedback, and every turn is played."""

    # Feedback on the previous program in the prompt: none, its verdict, or its error.
    feedback: Feedback = "none"
    feedback_failures: int = 1  # number of failing tests that the feedback `error` quotes, 1 or more
    carry: Carry = TRANSCRIPT  # what a later prompt has of the turns before
    # End a trajectory once its program passes the visible tests. The remaining turns repeat its last
    # completion.
    early_stop: bool = False
    # Treatment of a program that equals the previous one: `keep` it, `resample` the turn once, or `tell` the
    # model in the next prompt.
    on_repeat: OnRepeat = "keep"
    # What is whole in a chat's answer that reached the length limit counts. In training it does not: a reward
    # would teach to go on past the limit.
    keeps_truncated: bool = False
    # Sampling temperature of turns 1, 2, ...; the last one also applies to later turns. 0 decodes greedily.
    temperatures: tuple[float, ...] = (0.0,)
    # Seed of every sampled completion, together with problem, sample and turn. None: use the random state of
    # the process.
    seed: int | None = None

    def of_agent(self, agent: Agent) -> "Rules":
        """Return the rules of an agent: it always has feedback on errors, and ends with a right program.

        The model of `tools` ends by itself, with a program that it submits.
        """
        return replace(self, feedback="error", early_stop=agent != "tools")

    def shown(self, problem: Problem, results: Iterable[ExecutionResult], num_shown: int | None) -> Shown:
        """Return a problem and its failed tests as the next prompt shows them.

        Args:
            results: Results of the programs so far, read only if their failed tests are shown.
            num_shown: Number of tests that every prompt shows, the first ones; None: all.

        """
        failures = self.feedback_failures
        return self.carry.shown(
            problem, partial(counterexamples, self.feedback, problem, results, num_shown, failures)
        )

    def temperature(self, turn: int) -> float:
        """Return the sampling temperature of a turn, counted from 1."""
        return self.temperatures[min(turn, len(self.temperatures)) - 1]


def problems_of(trajectories: Iterable[Trajectory]) -> list[Problem]:
    """Return the problems of trajectories in their order, each once."""
    return list(dict.fromkeys(trajectory.problem for trajectory in trajectories))


def begin(problems: Iterable[Problem], num_samples: int = 1) -> list[Trajectory]:
    """Return trajectories without turns, `num_samples` consecutive ones per problem."""
    return [Trajectory(problem, sample) for problem in problems for sample in range(num_samples)]


def as_program(problem: Problem, code: str) -> Program:
    """Return the program to execute for a candidate: its code, the setup, then every scored test."""
    return Program(
        code,
        problem.scored_tests,
        problem.setup,
        entry_point=problem.entry_point,
        stdin=problem.stdin,
        files=problem.files,
    )
