"""Completions supplied for the first turns instead of being sampled (`--answers`).

In evaluation each trajectory has its own. In training they are part of the prompt, so siblings share them.
They are reference solutions, buggy programs, the samples of another run, or rows of any file of answers. Such
a row is a row of samples.jsonl, `{"task_id": ..., "answers": ["turn 1", "turn 2", ...]}`, or a program of
another model, `{"task_id": "MBPP/11", "solution": "..."}`, as LLMDebugger (arXiv 2402.16906) publishes them
for MBPP. Rows of one problem without the key `sample` are its samples 0, 1, ... in file order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cocos.files.json_lines import DataError, read_rows
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.trajectories import Key, Trajectory, begin

PROBLEM_SOURCES = {"references": "code", "buggy": "buggy_code"}  # source -> field of the problem
MBPP_PREFIX = "MBPP/"  # of the ids in files of programs for MBPP


class Answers(NamedTuple):
    """A row of a file of answers.

    Attributes:
        texts: The completions of turns 1, 2, ...; or one program.
        passed: Which tests the last program passed; () if the row has no verdicts.

    """

    texts: tuple[str, ...]
    passed: tuple[bool, ...] = ()
    is_program: bool = False  # the text is a program, not a completion with one


AnswersByKey = dict[Key, Answers]


def given_answers(
    sources: Sequence[str], trajectories: Sequence[Trajectory], protocol: PromptProtocol
) -> list[tuple[str, ...]]:
    """Return the completions that are supplied for each trajectory.

    Args:
        sources: In the order of the turns. `references` and `buggy` supply one turn each; a file supplies as
            many turns as its row has.

    Raises:
        DataError: A problem has no such program, or a file has no row for a trajectory.

    """
    files = _load_files(sources)
    return [_answers_of(trajectory, sources, files, protocol) for trajectory in trajectories]


def given_prompts(
    sources: Sequence[str], problems: Sequence[Problem], protocol: PromptProtocol, early_stop: bool = False
) -> list[Trajectory]:
    """Return trajectories without turns to train on, whose `given` completions are part of their prompt.

    Without a file in `sources` there is one per problem. Otherwise there is one per row, in the order of the
    problems and samples; a problem without rows has none. Rows of other problems are ignored, and so are rows
    with the answers of an earlier one. With early stop, a row of samples.jsonl whose last program passes the
    visible tests is no prompt: its trajectory is over.

    Raises:
        DataError: A problem has no such program, or no row is about one of the problems.

    """
    files = _load_files(sources)
    prompts = begin(problems)
    if files:
        *_, last = files.values()
        keys: dict[str, list[Key]] = {}
        for key in last:
            if all(key in answers for answers in files.values()):
                keys.setdefault(key[0], []).append(key)
        prompts = [
            Trajectory(problem, key[1])
            for problem in problems
            for key in keys.get(problem.task_id, ())
            if not (early_stop and _passes_visible_tests(problem, last[key].passed))
        ]
        if not prompts:
            raise DataError(
                f"{', '.join(files)}: no row is about a problem of --train_data, or none is left to repair"
            )
    unique: dict[tuple[str, tuple[str, ...]], Trajectory] = {}
    for prompt in prompts:
        given = _answers_of(prompt, sources, files, protocol)
        unique.setdefault((prompt.problem.task_id, given), replace(prompt, given=given))
    return list(unique.values())


def _passes_visible_tests(problem: Problem, passed: Sequence[bool]) -> bool:
    visible = passed[: len(problem.test_list)]
    return bool(visible) and all(visible)


def _load_files(sources: Sequence[str]) -> dict[str, AnswersByKey]:
    return {source: load_answers(source) for source in sources if source not in PROBLEM_SOURCES}


def _answers_of(
    trajectory: Trajectory,
    sources: Sequence[str],
    files: Mapping[str, AnswersByKey],
    protocol: PromptProtocol,
) -> tuple[str, ...]:
    answers: list[str] = []
    for source in sources:
        if source in files:
            found = _find_answers(files[source], trajectory.key, source)
            answers += map(protocol.answer, found.texts) if found.is_program else found.texts
        else:
            answers.append(protocol.answer(_program(trajectory.problem, source)))
    return tuple(answers)


def load_answers(path: str | Path) -> AnswersByKey:
    """Load a file of answers.

    Raises:
        DataError: The file cannot be read, a row has no answers, or two rows are for the same sample.

    """
    answers: AnswersByKey = {}
    num_samples: Counter[str] = Counter()
    for place, row in read_rows(Path(path)):
        if not isinstance(row, dict) or not (found := _answers(row)):
            raise DataError(
                f'{place}: expected a row of samples.jsonl, {{"task_id": ..., "answers": ["...", ...]}}, or '
                '{"task_id": ..., "solution": "..."}'
            )
        task_id = str(row.get("task_id")).removeprefix(MBPP_PREFIX if found.is_program else "")
        key = (task_id, row.get("sample", num_samples[task_id]))
        if key in answers:
            raise DataError(f"{place}: sample {key[1]} of problem {task_id!r} occurs twice; keep one of them")
        num_samples[task_id] += 1
        answers[key] = found
    return answers


def _answers(row: dict) -> Answers | None:
    """Return the answers of a row, or None if it has none."""
    match row:
        # `turns` first: in a row of samples.jsonl, of any schema version, `answers` are names of sources.
        case {"turns": [*_, last] as turns} if all(isinstance(t, dict) and "completion" in t for t in turns):
            passed = tuple(verdict.get("status") == "passed" for verdict in last.get("verdicts", ()))
            return Answers(tuple(str(turn["completion"]) for turn in turns), passed)
        case {"answers": [_, *_] as answers} if all(isinstance(answer, str) for answer in answers):
            return Answers(tuple(answers))
        case {"solution": str(program)} | {"program": str(program)}:
            return Answers((program,), is_program=True)
    return None


def _find_answers(answers: AnswersByKey, key: Key, source: str) -> Answers:
    if key not in answers:
        raise DataError(
            f"{source}: no answers for sample {key[1]} of problem {key[0]!r}; add a row or change "
            "--task_ids or --num_samples"
        )
    return answers[key]


def _program(problem: Problem, source: str) -> str:
    field = PROBLEM_SOURCES[source]
    code = getattr(problem, field)
    if not code.strip():
        raise DataError(
            f"--answers {source}: problem {problem.task_id!r} has no {field}; exclude it with --task_ids or "
            "give a file of answers"
        )
    return code
