"""The one turn loop: training, evaluation and Boost data all call `rollout`; only the generator handed in
differs.

Transcripts are token-exact. The prompt of turn t+1 is the prompt of turn t, the ids that were sampled, and
the ids of the next message; nothing is decoded and encoded again. Programs are executed while the
next turn is being generated. Knows nothing of rewards, models or files.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from cocos.executor import ExecutionResult, Executor, Program
from cocos.generation import Completion, Generator
from cocos.prompts import DONE, REPEATED, PromptProtocol, extract_code, feedback_message, passes_visible_tests
from cocos.trajectories import Rules, Trajectory, Turn, as_program


def rollout(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
    rules: Rules = Rules(),
) -> list[Trajectory]:
    """Continue every trajectory to `num_turns` turns; by default the model is shown no execution result.

    As many trajectories as the generator takes at once play all their turns before the next begin: what it
    keeps of their transcripts is then still at hand. Their programs run on meanwhile.

    Args:
        trajectories: From `begin`, or with turns already taken; all equally many.
        num_turns: T, counted from the start of the trajectory.
        rules: What happens between turns, and how they are sampled.

    Returns:
        The trajectories, in order, each with `num_turns` turns and every program executed. One whose answer
        could not be had (`Completion.error`) ends there, with a result that is an infrastructure failure.

    """
    if not trajectories:
        return []
    taken = {len(trajectory.turns) for trajectory in trajectories}
    assert len(taken) == 1, "trajectories of unequal length"
    [first] = taken
    players = [_Player(trajectory, rules) for trajectory in trajectories]
    running: dict[Program, Future[ExecutionResult]] = {}  # siblings often write the same program: run it once
    size = generator.batch_size or len(players)
    for start in range(0, len(players), size):
        batch = players[start : start + size]
        for _ in range(first, num_turns):
            going = [player for player in batch if not player.is_over()]
            for player in going:
                player.listen(generator, protocol)
            _sample(going, generator, rules)
            if rules.on_repeat == "resample":
                _sample([player for player in going if player.repeats()], generator, rules, is_resampled=True)
            for player in going:
                player.submit(executor, running)
    return [player.trajectory(num_turns) for player in players]


class _Step(NamedTuple):
    """A turn whose program may still be running."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    code: str
    result: Future[ExecutionResult]
    told: str
    is_given: bool
    is_resampled: bool


class _Player:
    """A trajectory under way, and of the turn that is being taken: its prompt, what was told, its answer."""

    prompt: list[int]
    told: str
    completion: Completion
    is_resampled: bool

    def __init__(self, trajectory: Trajectory, rules: Rules) -> None:
        self.begun, self.problem, self.rules = trajectory, trajectory.problem, rules
        self.steps = [_as_step(turn) for turn in trajectory.turns]

    def is_over(self) -> bool:
        """Whether no answer could be had, or the rules end it here."""
        if not self.steps:
            return False
        last = self.steps[-1]
        return last.completion.error is not None or (
            self.rules.early_stop and passes_visible_tests(self.problem, last.result.result())
        )

    def is_given(self) -> bool:
        """Whether the answer of the turn that is being taken is there already."""
        return len(self.steps) < len(self.begun.given)

    def listen(self, generator: Generator, protocol: PromptProtocol) -> None:
        """Put the next turn's prompt together, and the answer where it is given."""
        self.told, self.is_resampled = "", False
        if not self.steps:
            self.prompt = generator.start(protocol.first_turn(self.problem), protocol.is_chat)
        else:
            last = self.steps[-1]
            self.told = self._feedback(last)
            message = protocol.later_turn(DONE in last.completion.text, self.told)
            self.prompt = generator.extend(last.prompt_ids, last.completion, message, protocol.is_chat)
        if self.is_given():
            self.completion = generator.quote(self.begun.given[len(self.steps)])

    def _feedback(self, last: _Step) -> str:
        told = []
        if self.rules.feedback != "none":
            result = last.result.result()
            told.append(
                feedback_message(self.rules.feedback, self.problem, result, self.rules.feedback_chars)
            )
        if self.rules.on_repeat == "tell" and len(self.steps) > 1 and last.code == self.steps[-2].code:
            told.append(REPEATED)
        return "\n\n".join(filter(None, told))

    def repeats(self) -> bool:
        """Whether the answer is the program of the turn before."""
        is_answer = self.completion.error is None
        return is_answer and bool(self.steps) and extract_code(self.completion.text) == self.steps[-1].code

    def seed(self) -> int:
        """What the sampling of this answer depends on, besides its prompt."""
        parts = (self.rules.seed, self.problem.task_id, self.begun.sample, len(self.steps), self.is_resampled)
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) >> 1

    def submit(self, executor: Executor, running: dict[Program, Future[ExecutionResult]]) -> None:
        """Have the answer's program executed."""
        code = extract_code(self.completion.text)
        if self.completion.error is not None:
            result = _done(ExecutionResult((), self.completion.error, executor.isolation))
        else:
            candidate = as_program(self.problem, code)
            if candidate not in running:
                running[candidate] = executor.submit(candidate)
            result = running[candidate]
        prompt_ids, flags = tuple(self.prompt), (self.told, self.is_given(), self.is_resampled)
        self.steps.append(_Step(prompt_ids, self.completion, code, result, *flags))

    def trajectory(self, num_turns: int) -> Trajectory:
        """What was played; where the rules ended it, the last answer stands for the turns that were left."""
        begun = self.begun.turns
        played = [Turn(*step[:3], step.result.result(), *step[4:]) for step in self.steps[len(begun) :]]
        turns = [*begun, *played]
        if turns[-1].completion.error is None:
            last = turns[-1]
            completion = Completion((), last.completion.text)
            carried = Turn((), completion, last.code, last.result, is_carried=True)
            turns += [carried] * (num_turns - len(turns))
        return replace(self.begun, turns=tuple(turns))


def _sample(
    players: Sequence[_Player], generator: Generator, rules: Rules, is_resampled: bool = False
) -> None:
    """Have the next answers of players who have taken equally many turns."""
    players = [player for player in players if not player.is_given()]
    if not players:
        return
    for player in players:
        player.is_resampled = is_resampled
    turn = min(len(players[0].steps), len(rules.temperatures) - 1)
    temperature = rules.temperatures[turn] if rules.temperatures else None
    seeds = None if rules.seed is None else [player.seed() for player in players]
    completions = generator.generate([player.prompt for player in players], temperature, seeds)
    for player, completion in zip(players, completions, strict=True):
        player.completion = completion


def _as_step(turn: Turn) -> _Step:
    flags = (turn.told, turn.is_given, turn.is_resampled)
    return _Step(turn.prompt_ids, turn.completion, turn.code, _done(turn.result), *flags)


def _done(result: ExecutionResult) -> Future[ExecutionResult]:
    future: Future[ExecutionResult] = Future()
    future.set_result(result)
    return future
