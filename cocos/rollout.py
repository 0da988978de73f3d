"""The turn loop. Training, evaluation and Boost data all call `rollout`; only the generator differs.

Transcripts are token-exact: the prompt of turn t+1 is the prompt of turn t, the sampled ids, and the ids of
the next message. Nothing is decoded and encoded again, so training sees exactly the sampled ids. Other ways
to carry earlier turns (`cocos.carry`) begin each prompt anew.
Programs run while the model generates the next turn. `Play` is one trajectory under way; agents
(`cocos.agents`) play it, too. Does not know rewards, models or files.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cocos.carry import Shown
from cocos.executor import ExecutionResult, Executor, ExecutorError, Program
from cocos.extraction import Extraction, extract, split_thought
from cocos.generation import Completion, Generator, Role
from cocos.problems import Problem
from cocos.prompts import DONE, REPEATED, PromptProtocol, feedback_message, passes_visible_tests, shown_tests
from cocos.trajectories import Rules, Step, Trajectory, Turn, as_program

PAPER_RULES = Rules()  # no feedback, every turn is played
OnTurn = Callable[[Trajectory], None]


def rollout(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
    rules: Rules = PAPER_RULES,
    on_turn: OnTurn | None = None,
) -> list[Trajectory]:
    """Play every trajectory up to `num_turns` turns.

    Args:
        trajectories: Trajectories from `begin`, or partly played ones; all have the same number of turns.
        num_turns: T, including turns already played.
        on_turn: Called with each trajectory after each turn, once its program has run; None: nobody watches.

    Returns:
        The trajectories in the same order, each with `num_turns` turns and every program executed. If the
        generator fails to return a completion (`Completion.error`), the trajectory ends at that turn, whose
        result is an infrastructure failure.

    """
    context = RolloutContext(generator, executor, protocol, rules)
    return [play.finish(num_turns) for play in play_turns(trajectories, context, num_turns, on_turn)]


def play_turns(
    trajectories: Sequence[Trajectory],
    context: "RolloutContext",
    num_turns: int,
    on_turn: OnTurn | None = None,
) -> list["Play"]:
    """Play every trajectory like `rollout`, but do not wait for the programs of the last turns."""
    if not trajectories:
        return []
    num_played = len(trajectories[0].turns)
    assert all(len(t.turns) == num_played for t in trajectories), "trajectories of unequal length"
    plays = [Play(trajectory, context) for trajectory in trajectories]
    # A batch plays all its turns before the next batch starts, so that the generator still has the KV cache
    # of its transcripts. Programs of earlier batches keep running meanwhile.
    batch_size = context.generator.batch_size or len(plays)
    for start in range(0, len(plays), batch_size):
        batch = plays[start : start + batch_size]
        for turn in range(num_played + 1, num_turns + 1):
            _play_turn([play for play in batch if not play.has_ended()], turn, num_turns, context)
            if on_turn:
                for play in batch:
                    on_turn(play.finish(turn))
    return plays


@dataclass(frozen=True)
class RolloutContext:
    """Generator, executor, protocol and rules of a batch of trajectories."""

    generator: Generator  # samples the completions
    executor: Executor  # runs the programs
    protocol: PromptProtocol  # wording of each turn's message
    rules: Rules  # feedback, early stopping, temperatures and seed
    # Results of the programs so far. Trajectories of one problem often contain equal programs; each is
    # executed once.
    submitted: dict[Program, Future[ExecutionResult]] = field(default_factory=dict)

    def extract(self, problem: Problem, completion: Completion) -> Extraction:
        """Return the program in a completion. In training, a chat's answer that is cut off has none."""
        is_truncated = completion.is_truncated and self.protocol.is_chat
        if is_truncated and not self.rules.keeps_truncated:
            return Extraction("", "cut off")
        found = extract(completion.text, problem.called_names, problem.used_names, is_truncated)
        return found._replace(source="thought") if completion.thought and not completion.text else found

    def execute(self, problem: Problem, code: str, completion: Completion) -> Future[ExecutionResult]:
        """Have a completion's program executed; the result of a failed completion is that failure."""
        if completion.error is not None:
            future: Future[ExecutionResult] = Future()
            future.set_result(ExecutionResult((), completion.error, self.executor.isolation))
            return future
        program = as_program(problem, code)
        if program not in self.submitted:
            self.submitted[program] = self.executor.submit(program)
        return self.submitted[program]


NOT_EXECUTED = ExecutionResult((), "the program has not run yet")  # until `Play.finish`


class Played(NamedTuple):
    """A turn, as yet NOT_EXECUTED, and the result that its program will have."""

    turn: Turn
    result: Future[ExecutionResult]


class Play:
    """A trajectory that is being played."""

    def __init__(self, trajectory: Trajectory, context: RolloutContext) -> None:
        self.trajectory, self.problem, self.context = trajectory, trajectory.problem, context
        self.played: list[Played] = []
        for turn in trajectory.turns:
            self.played.append(Played(turn, Future()))
            self.played[-1].result.set_result(turn.result)

    @property
    def turns(self) -> list[Turn]:
        """Turns so far; new ones have no result yet."""
        return [turn for turn, _ in self.played]

    @property
    def result(self) -> ExecutionResult:
        """Result of the last turn's program. Blocks until it has run."""
        return self.played[-1].result.result()

    async def executed(self) -> None:
        """Wait for the last turn's program without blocking the event loop."""
        import asyncio  # the caller has imported it; the others need not wait for it

        # Cancelling this coroutine must not cancel a future that equal programs share.
        await asyncio.shield(asyncio.wrap_future(self.played[-1].result))

    def has_ended(self) -> bool:
        """Return whether the last completion failed, or the early-stop rule ends the trajectory."""
        if not self.turns:
            return False
        if self.turns[-1].completion.error is not None:
            return True
        return self.context.rules.early_stop and passes_visible_tests(self.problem, self.result)

    def next_prompt(self, feedback: str = "") -> list[int]:
        """Return the prompt of the next turn.

        Args:
            feedback: Feedback on the last turn, for its prompt; "" for none.

        """
        message, protocol = self.request(feedback), self.context.protocol
        if self.is_fresh:
            return self.context.generator.start(message, protocol.is_chat, protocol.system, protocol.tools)
        return self.extend(self.turns[-1].prompt_ids, self.turns[-1].completion, message)

    def shown_problem(self) -> Shown:
        """Return the problem and the failed tests as the next prompt shows them.

        Blocks until the programs whose failures it shows have run.
        """
        results = (result.result() for _, result in self.played)
        return self.context.rules.shown(self.problem, results, self.context.protocol.prompt_tests)

    @property
    def is_fresh(self) -> bool:
        """Return whether the next prompt begins with the task, and has no program of an earlier turn."""
        return not self.turns or self.context.rules.carry.starts_anew

    def request(self, feedback: str = "") -> str:
        """Return the message that asks for the next turn."""
        protocol, carry = self.context.protocol, self.context.rules.carry
        if not self.turns:
            return protocol.first_turn(self.problem)
        is_closed = DONE in self.turns[-1].completion.text
        return carry.message(protocol, self.shown_problem(), len(self.turns) + 1, feedback, is_closed)

    def extend(
        self, prompt: Sequence[int], completion: Completion, message: str, role: Role = "user"
    ) -> list[int]:
        """Return a prompt, its completion and the next message as one prompt."""
        return self.context.generator.extend(prompt, completion, message, self.context.protocol.is_chat, role)

    def feedback(self) -> str:
        """Return what the rules tell of the last turn; "" for nothing. Blocks until its program has run."""
        if not self.turns:
            return ""
        rules, last, parts = self.context.rules, self.turns[-1], []
        if rules.carry.starts_anew:
            return shown_tests(*self.shown_problem())
        if rules.feedback != "none":
            parts.append(feedback_message(rules.feedback, self.problem, self.result, rules.feedback_failures))
        if rules.on_repeat == "tell" and len(self.turns) > 1 and last.code == self.turns[-2].code:
            parts.append(REPEATED)
        return "\n\n".join(filter(None, parts))

    def given_answer(self) -> Completion | None:
        """Return the given completion of the next turn; None if the turn has to be sampled."""
        given = self.trajectory.given[len(self.turns) :]
        return self.context.generator.quote(given[0]) if given else None

    def repeats(self, completion: Completion) -> bool:
        """Return whether a completion contains the same program as the last turn."""
        if completion.error is not None or not self.turns:
            return False
        return self.context.extract(self.problem, completion).code == self.turns[-1].code

    def seed(self, is_resampled: bool = False) -> int:
        """Return the seed of the next turn's completion, in [0, 2^31)."""
        # Derived from the trajectory's key, so that a sample does not depend on its batch.
        key, seed = self.trajectory.key, self.context.rules.seed
        parts = (seed, *key, len(self.turns), is_resampled)
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4]) >> 1

    def add(
        self,
        prompt: Sequence[int],
        completion: Completion,
        feedback: str = "",
        *,
        code: str | None = None,
        request: str | None = None,
        is_resampled: bool = False,
        step: Step | None = None,
    ) -> None:
        """Append a turn and have its program executed; see `Turn` for the arguments.

        Args:
            code: The program; None: the one in the completion.
            request: Message that asked for the turn; None: the protocol's.

        """
        extraction = self.context.extract(self.problem, completion) if code is None else Extraction(code)
        if request is None:
            request = self.request(feedback)
        if self.turns:  # examples and system message stand at turn 1
            request = request.removeprefix(self.context.protocol.prefix(self.problem))
        elif self.context.protocol.system:
            request = f"{self.context.protocol.system}\n\n{request}"
        turn = Turn(
            prompt_ids=tuple(prompt),
            completion=self._with_thought(completion, extraction.code),
            code=extraction.code,
            source=extraction.source,
            result=NOT_EXECUTED,
            feedback=feedback,
            request=request.strip("\n"),
            is_given=len(self.played) < len(self.trajectory.given),
            is_resampled=is_resampled,
            step=step,
        )
        self.played.append(Played(turn, self.context.execute(self.problem, extraction.code, completion)))

    def _with_thought(self, completion: Completion, code: str) -> Completion:
        """Return a completion with its thought apart from its text. Its token ids remain those of both."""
        thought, text = split_thought(completion.text, code)
        if not thought:
            return completion
        number = None  # of an endpoint, which counts tokens
        if completion.num_completion_tokens is None:
            number = len(self.context.generator.quote(thought).token_ids)
        return replace(completion, text=text, thought=thought, num_thought_tokens=number)

    def finish(self, num_turns: int) -> Trajectory:
        """Return the trajectory. If it ended early, the remaining turns repeat the last completion.

        Blocks until its programs have run.
        """
        turns = [replace(turn, result=result.result()) for turn, result in self.played]
        return self._trajectory(num_turns, turns)

    def unfinished(self, num_turns: int) -> Trajectory:
        """Return what `finish` will, without results: new turns have NOT_EXECUTED. Does not block."""
        return self._trajectory(num_turns, self.turns)

    def _trajectory(self, num_turns: int, turns: list[Turn]) -> Trajectory:
        last = turns[-1]
        if last.completion.error is None:
            completion = Completion((), last.completion.text)
            carried = Turn((), completion, code=last.code, result=last.result, is_carried=True)
            turns += [carried] * (num_turns - len(turns))
        return replace(self.trajectory, turns=tuple(turns))


def _play_turn(plays: Sequence[Play], turn: int, num_turns: int, context: RolloutContext) -> None:
    """Play a turn, counted from 1, of the trajectories that have not ended; there may be none."""
    generator, rules = context.generator, context.rules
    feedback = [play.feedback() for play in plays]
    prompts = [play.next_prompt(words) for play, words in zip(plays, feedback, strict=True)]
    answers = {i: given for i, play in enumerate(plays) if (given := play.given_answer())}
    sampled = [i for i in range(len(plays)) if i not in answers]

    def sample(rows: Sequence[int], is_resampled: bool = False) -> None:
        """Sample completions for the plays with these indices."""
        if not rows and not generator.is_collective:
            return
        again = " again" * is_resampled
        temperature = rules.temperature(turn)
        # Greedily, the samples of a problem have one completion, so that equal prompts are asked once.
        keys = [i if temperature else (plays[i].problem, *prompts[i]) for i in rows]
        asked = dict(zip(keys, rows, strict=True))
        generator.progress.start(f"turn {turn} of {num_turns}{again}", len(asked))
        completions = generator.generate(
            [prompts[i] for i in asked.values()],
            temperature,
            # A resampled turn has another seed; with the same one it would repeat the same completion.
            None if rules.seed is None else [plays[i].seed(is_resampled) for i in asked.values()],
        )
        found = dict(zip(asked, completions, strict=True))
        answers.update((i, found[key]) for i, key in zip(rows, keys, strict=True))

    sample(sampled)
    repeated: set[int] = set()
    if rules.on_repeat == "resample":
        repeated = {i for i in sampled if plays[i].repeats(answers[i])}
        sample(sorted(repeated), is_resampled=True)
    for i, play in enumerate(plays):
        play.add(prompts[i], answers[i], feedback[i], is_resampled=i in repeated)


class InfraFailures:
    """Running count of turns without a verdict, checked against a limit after every batch.

    Args:
        max_share: Largest tolerated share of such turns, in [0, 1].

    """

    def __init__(self, max_share: float) -> None:
        self._max_share = max_share
        self._num_turns = self._num_failed = 0
        self._first_error: str | None = None

    def add(self, trajectories: Iterable[Trajectory]) -> None:
        """Count the turns of further trajectories.

        Raises:
            ExecutorError: The executor or the endpoint failed in more than `max_share` of all turns so far.

        """
        results = [turn.result for trajectory in trajectories for turn in trajectory.turns]
        failed = [result for result in results if result.is_infra_failure]
        self._num_turns += len(results)
        self._num_failed += len(failed)
        if failed and self._first_error is None:
            self._first_error = failed[0].infra_error
        if self._num_failed > self._max_share * self._num_turns:
            raise ExecutorError(
                f"{self._num_failed} of {self._num_turns} completions met a failure of the executor or the "
                f"endpoint, more than --max_infra_share {self._max_share}; the first: {self._first_error}"
            )
