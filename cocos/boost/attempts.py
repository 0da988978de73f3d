"""First attempts and their log: samples with corrections for the wrong ones, references, and planted bugs.

Knows problems, turns and the rows of evaluations; does not know models.
"""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cocos.boost.planted_bugs import plant_bugs
from cocos.evaluation.sample_rows import conditions_of_row, played_problem, turn_from_row, validate_row
from cocos.executor import ExecutionResult, Executor
from cocos.files.durable import append_durably, drop_torn_line, write_atomically
from cocos.files.json_lines import DataError, read_rows
from cocos.generation import Generator
from cocos.problems import Problem
from cocos.prompts import PromptProtocol, feedback_message, passes_visible_tests
from cocos.rollout import PAPER_RULES, InfraFailures, rollout
from cocos.trajectories import Rules, Turn, as_program, begin


@dataclass(frozen=True)
class Attempt:
    """A first attempt at a problem: a model's, or the reference."""

    task_id: str  # id of the problem
    code: str  # program extracted from the completion, or ""
    # The program passes every test, visible and hidden. None: unknown, because the executor failed, because
    # the program could have forged a verdict (in_child), or because its prompt showed every test, of which
    # the learnt prompts show fewer.
    is_right: bool | None
    corrections: tuple[str, ...] = ()  # right programs that the model wrote in turn 2 after this attempt
    feedback: str = ""  # feedback on the attempt in the prompt of turn 2; "" for none
    # Tests that the prompt of turn 2 adds, with what the attempt did instead, from `counterexamples`.
    failed: tuple[tuple[int, tuple[str, ...]], ...] = ()
    passes_visible: bool = False  # the program passes the visible tests


def sample_attempts(
    problems: Sequence[Problem],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    *,
    num_samples: int,
    num_corrections: int,
    temperature: float,
    max_infra_share: float,
    rules: Rules = PAPER_RULES,
) -> list[Attempt]:
    """Sample first attempts at each problem, then second turns after the wrong ones (rejection sampling).

    Args:
        num_corrections: Second turns to sample after each wrong attempt; 0: none.
        temperature: Sampling temperature of both turns; 0 decodes greedily.
        max_infra_share: Largest share of infrastructure failures, see `InfraFailures`.

    Raises:
        ExecutorError: A larger share of the first attempts met an infrastructure failure.

    """
    rules = replace(rules, temperatures=(temperature,))
    first = rollout(begin(problems, num_samples), generator, executor, protocol, 1, rules)
    InfraFailures(max_infra_share).add(first)
    wrong = [index for index, trajectory in enumerate(first) if _is_right(trajectory.turns[0]) is False]
    repeated = [index for index in wrong for _ in range(num_corrections)]
    second = rollout([first[index] for index in repeated], generator, executor, protocol, 2, rules)
    corrections: dict[int, dict[str, None]] = {index: {} for index in wrong}  # dicts as ordered sets
    for index, trajectory in zip(repeated, second, strict=True):
        if _is_right(trajectory.turns[1]):
            corrections[index][trajectory.turns[1].code] = None
    return [
        replace(
            _played(trajectory.problem, trajectory.turns[0], protocol, rules),
            corrections=tuple(corrections.get(index, ())),
        )
        for index, trajectory in enumerate(first)
    ]


def reference_attempts(
    problems: Sequence[Problem], executor: Executor, protocol: PromptProtocol, rules: Rules = PAPER_RULES
) -> list[Attempt]:
    """Return the references that pass every test, as attempts."""
    solved = [problem for problem in problems if problem.code.strip()]
    results = executor.run([as_program(problem, problem.code) for problem in solved])
    return [
        Attempt(
            task_id=problem.task_id,
            code=problem.code,
            is_right=True,
            passes_visible=True,
            **_told(problem, result, protocol, rules),
        )
        for problem, result in zip(solved, results, strict=True)
        if result.all_passed
    ]


def played_attempts(
    folder: Path, problems: Iterable[Problem], protocol: PromptProtocol, rules: Rules = PAPER_RULES
) -> list[tuple[Problem, Attempt]]:
    """Return the first turns that an evaluation has played as attempts, each with its problem as played.

    Args:
        folder: Output folder of test.py. Its rows say which tests are visible.

    Raises:
        DataError: A row is damaged, or its problem is missing or has another text or other tests.

    """
    by_id = {problem.task_id: problem for problem in problems}
    attempts = []
    for place, value in read_rows(folder / "samples.jsonl"):
        row = validate_row(value, place)
        problem = played_problem(row, by_id, folder)
        attempt = _played(problem, turn_from_row(row["turns"][0]), protocol, rules)
        numbers = conditions_of_row(row)["prompt_tests"], protocol.prompt_tests
        shown, taught = (len(problem.test_list[:number]) for number in numbers)
        if attempt.is_right and taught < shown == len(problem.scored_tests):
            attempt = replace(attempt, is_right=None)  # it may know the answers to these tests alone
        attempts.append((problem, attempt))
    return attempts


def planted_attempts(
    problems: Sequence[Problem],
    attempts: Sequence[Attempt],
    count: int,
    executor: Executor,
    protocol: PromptProtocol,
    rules: Rules,
    seed: int,
) -> list[Attempt]:
    """Return wrong attempts that are right ones with a planted bug; the right one is the correction.

    Args:
        count: Largest number of bugs per right program, each in an attempt of its own.

    """
    by_id, rng = {problem.task_id: problem for problem in problems}, random.Random(seed)
    right = dict.fromkeys((attempt.task_id, attempt.code) for attempt in attempts if attempt.is_right)
    planted = [
        (by_id[task_id], code, program) for task_id, code in right for program in plant_bugs(code, count, rng)
    ]
    results = executor.run([as_program(problem, program) for problem, _, program in planted])
    return [
        Attempt(
            task_id=problem.task_id,
            code=program,
            is_right=False,
            corrections=(code,),
            passes_visible=passes_visible_tests(problem, result),
            **_told(problem, result, protocol, rules),
        )
        for (problem, code, program), result in zip(planted, results, strict=True)
        if not result.is_infra_failure and not result.all_passed
    ]


def _played(problem: Problem, turn: Turn, protocol: PromptProtocol, rules: Rules) -> Attempt:
    """Return a turn that was played as an attempt."""
    return Attempt(
        task_id=problem.task_id,
        code=turn.code,
        is_right=_is_right(turn),
        passes_visible=passes_visible_tests(problem, turn.result),
        **_told(problem, turn.result, protocol, rules),
    )


def _told(
    problem: Problem, result: ExecutionResult, protocol: PromptProtocol, rules: Rules
) -> dict[str, Any]:
    """Return the fields of an attempt that say what the prompt of turn 2 has of its result."""
    if not rules.carry.starts_anew:
        return {"feedback": feedback_message(rules.feedback, problem, result)}
    _, failed = rules.shown(problem, [result], protocol.prompt_tests)
    return {"failed": tuple((index, tuple(outcomes)) for index, outcomes in failed.items())}


def _is_right(turn: Turn) -> bool | None:
    """Return whether a program passes every test, as `Attempt.is_right`."""
    result = turn.result
    if result.is_infra_failure:
        return None
    if result.all_passed and any(verdict.in_child for verdict in result.verdicts):
        return None  # Boost would teach what may be a forgery
    return result.all_passed


class AttemptLog:
    """Batches of attempts in a JSON-lines file. An incomplete last batch is dropped.

    Args:
        path: The file; created with the first batch, so that a start that fails leaves none.

    Attributes:
        batches: Complete batches in the order of the file.

    Raises:
        DataError: The file is not a log of attempts, or its attempts were sampled with other options.

    """

    def __init__(self, path: Path, made_with: dict[str, object]) -> None:
        self.path = path
        self.batches: list[list[Attempt]] = []
        self._header = json.dumps({"made_with": made_with})
        if path.exists():
            self._read(json.loads(self._header)["made_with"])

    def append(self, attempts: Iterable[Attempt]) -> None:
        """Append a batch to the file. A batch that a crash cut off is dropped when the log is read again."""
        batch = list(attempts)
        line = json.dumps([asdict(attempt) for attempt in batch], ensure_ascii=False)
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, f"{self._header}\n")
        try:
            with open(self.path, "ab", buffering=0) as file:
                append_durably(file, f"{line}\n".encode())
        except OSError as error:
            raise OSError(f"{error}, then continue with the same command") from None
        self.batches.append(batch)

    def _read(self, made_with: dict[str, object]) -> None:
        drop_torn_line(self.path)
        rows = [row for _, row in read_rows(self.path)]
        recorded = rows[0].get("made_with") if rows and isinstance(rows[0], dict) else None
        if not isinstance(recorded, dict):
            raise DataError(f"{self.path}: not a log of attempts; remove it or choose another --output")
        for name, value in made_with.items():
            if recorded.get(name) != value:
                raise DataError(
                    f"{self.path}: was made with {name} {recorded.get(name)!r}, not {value!r}; "
                    "remove it or choose another --output"
                )
        for batch in rows[1:]:
            assert isinstance(batch, list)
            self.batches.append(
                [
                    Attempt(
                        **row
                        | {
                            "corrections": tuple(row["corrections"]),
                            "failed": tuple((index, tuple(said)) for index, said in row.get("failed", ())),
                        }
                    )
                    for row in batch
                ]
            )
