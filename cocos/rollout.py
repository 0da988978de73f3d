"""The turn loop. Training, evaluation and Boost data all call `rollout`; only the generator differs.

Transcripts are token-exact: the prompt of turn t+1 is the prompt of turn t, the sampled ids, and the ids of
the next message. Nothing is decoded and encoded again, so training sees exactly the sampled ids. Programs run
while the model generates the next turn. Does not know rewards, models or files.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from cocos.executor import ExecutionResult, Executor, Program
from cocos.generation import Completion, Generator
from cocos.prompts import (
    DONE,
    REPEATED,
    PromptProtocol,
    extract_code,
    feedback_message,
    passes_visible_tests,
)
from cocos.trajectories import Rules, Trajectory, Turn, as_program

PAPER_RULES = Rules()  # no feedback, every turn is played


def rollout(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
    rules: Rules = PAPER_RULES,
) -> list[Trajectory]:
    """Play every trajectory up to `num_turns` turns.

    Args:
        trajectories: Trajectories from `begin`, or partly played ones; all have the same number of turns.
        generator: Samples the completions.
        executor: Runs the programs.
        protocol: Wording of each turn's message.
        num_turns: T, including turns already played.
        rules: Feedback, early stopping, temperatures and seed.

    Returns:
        The trajectories in the same order, each with `num_turns` turns and every program executed. If the
        generator fails to return a completion (`Completion.error`), the trajectory ends at that turn, whose
        result is an infrastructure failure.

    """
    if not trajectories:
        return []
    num_played = len(trajectories[0].turns)
    assert all(len(t.turns) == num_played for t in trajectories), "trajectories of unequal length"
    plays = [_Play(trajectory, rules) for trajectory in trajectories]
    # Trajectories of one problem often contain equal programs; each is executed once.
    submitted: dict[Program, Future[ExecutionResult]] = {}
    # A batch plays all its turns before the next batch starts, so that the generator still has the KV cache
    # of its transcripts. Programs of earlier batches keep running meanwhile.
    batch_size = generator.batch_size or len(plays)
    for start in range(0, len(plays), batch_size):
        batch = plays[start : start + batch_size]
        for turn in range(num_played + 1, num_turns + 1):
            going_on = [play for play in batch if not play.has_ended()]
            _play_turn(going_on, turn, generator, executor, protocol, rules, submitted)
    return [play.finish(num_turns) for play in plays]


@dataclass(frozen=True)
class _Prompt:
    """The prompt of the next turn, and the feedback in it."""

    ids: list[int]
    told: str


@dataclass(frozen=True)
class _Answer:
    """The completion of the next turn, and whether it was given or resampled."""

    completion: Completion
    is_given: bool = False
    is_resampled: bool = False


@dataclass(frozen=True)
class _RunningTurn:
    """A turn whose program may still be running."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    code: str
    future: Future[ExecutionResult]
    told: str
    is_given: bool
    is_resampled: bool

    @property
    def result(self) -> ExecutionResult:
        """Result of the program. Blocks until it has run."""
        return self.future.result()

    def finish(self) -> Turn:
        """Return the turn once its program has run."""
        return Turn(
            prompt_ids=self.prompt_ids,
            completion=self.completion,
            code=self.code,
            result=self.result,
            told=self.told,
            is_given=self.is_given,
            is_resampled=self.is_resampled,
        )


class _Play:
    """A trajectory that is being played."""

    def __init__(self, trajectory: Trajectory, rules: Rules) -> None:
        self.trajectory, self.problem, self.rules = trajectory, trajectory.problem, rules
        self.turns: list[Turn | _RunningTurn] = list(trajectory.turns)

    def has_ended(self) -> bool:
        """Return whether the last completion failed, or the early-stop rule ends the trajectory."""
        if not self.turns:
            return False
        last = self.turns[-1]
        if last.completion.error is not None:
            return True
        return self.rules.early_stop and passes_visible_tests(self.problem, last.result)

    def next_prompt(self, generator: Generator, protocol: PromptProtocol) -> _Prompt:
        """Return the prompt of the next turn."""
        if not self.turns:
            return _Prompt(generator.start(protocol.first_turn(self.problem), protocol.is_chat), told="")
        last = self.turns[-1]
        told = self._feedback()
        message = protocol.later_turn(is_closed=DONE in last.completion.text, feedback=told)
        return _Prompt(generator.extend(last.prompt_ids, last.completion, message, protocol.is_chat), told)

    def _feedback(self) -> str:
        rules, last, parts = self.rules, self.turns[-1], []
        if rules.feedback != "none":
            parts.append(
                feedback_message(
                    rules.feedback, self.problem, last.result, rules.feedback_chars, rules.feedback_failures
                )
            )
        if rules.on_repeat == "tell" and len(self.turns) > 1 and last.code == self.turns[-2].code:
            parts.append(REPEATED)
        return "\n\n".join(filter(None, parts))

    def given_answer(self, generator: Generator) -> _Answer | None:
        """Return the given completion of the next turn; None if the turn has to be sampled."""
        given = self.trajectory.given[len(self.turns) :]
        return _Answer(generator.quote(given[0]), is_given=True) if given else None

    def repeats(self, completion: Completion) -> bool:
        """Return whether a completion contains the same program as the last turn."""
        if completion.error is not None or not self.turns:
            return False
        return extract_code(completion.text) == self.turns[-1].code

    def seed(self, is_resampled: bool) -> int:
        """Return the seed of the next completion, in [0, 2^31)."""
        # Derived from the trajectory's key, so that a sample does not depend on its batch.
        parts = (self.rules.seed, self.problem.task_id, self.trajectory.sample, len(self.turns), is_resampled)
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) >> 1

    def add(
        self,
        prompt: _Prompt,
        answer: _Answer,
        executor: Executor,
        submitted: dict[Program, Future[ExecutionResult]],
    ) -> None:
        """Append a turn and have its program executed."""
        code = extract_code(answer.completion.text)
        if answer.completion.error is not None:
            # There is no program to run: the result is the generator's failure.
            future: Future[ExecutionResult] = Future()
            future.set_result(ExecutionResult((), answer.completion.error, executor.isolation))
        else:
            program = as_program(self.problem, code)
            if program not in submitted:
                submitted[program] = executor.submit(program)
            future = submitted[program]
        self.turns.append(
            _RunningTurn(
                prompt_ids=tuple(prompt.ids),
                completion=answer.completion,
                code=code,
                future=future,
                told=prompt.told,
                is_given=answer.is_given,
                is_resampled=answer.is_resampled,
            )
        )

    def finish(self, num_turns: int) -> Trajectory:
        """Return the trajectory. After an early stop, the remaining turns repeat the last completion."""
        turns = [turn if isinstance(turn, Turn) else turn.finish() for turn in self.turns]
        last = turns[-1]
        if last.completion.error is None:
            carried = Turn(
                prompt_ids=(),
                completion=Completion((), last.completion.text),
                code=last.code,
                result=last.result,
                is_carried=True,
            )
            turns += [carried] * (num_turns - len(turns))
        return replace(self.trajectory, turns=tuple(turns))


def _play_turn(
    plays: Sequence[_Play],
    turn: int,
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    rules: Rules,
    submitted: dict[Program, Future[ExecutionResult]],
) -> None:
    """Play a turn, counted from 1, of the trajectories that have not ended; there may be none."""
    prompts = [play.next_prompt(generator, protocol) for play in plays]
    answers = {i: answer for i, play in enumerate(plays) if (answer := play.given_answer(generator))}

    def sample(rows: Sequence[int], is_resampled: bool = False) -> None:
        """Sample completions for the plays with these indices."""
        if not rows and not generator.is_collective:
            return
        completions = generator.generate(
            [prompts[i].ids for i in rows],
            rules.temperature(turn),
            # A resampled turn has another seed; with the same one it would repeat the same completion.
            None if rules.seed is None else [plays[i].seed(is_resampled) for i in rows],
        )
        for i, completion in zip(rows, completions, strict=True):
            answers[i] = _Answer(completion, is_resampled=is_resampled)

    sampled = [i for i in range(len(plays)) if i not in answers]
    sample(sampled)
    if rules.on_repeat == "resample":
        sample([i for i in sampled if plays[i].repeats(answers[i].completion)], is_resampled=True)
    for i, play in enumerate(plays):
        play.add(prompts[i], answers[i], executor, submitted)
