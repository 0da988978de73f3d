"""Completions supplied for the first turns instead of being sampled (`--answers`).

In evaluation each trajectory has its own. In training they are part of the prompt, so siblings share them.
They are reference solutions, buggy programs, the samples of another run, or rows of any file of answers. Such
a row is a row of samples.jsonl, `{"task_id": ..., "answers": ["turn 1", "turn 2", ...]}`, or a program of
another model, `{"task_id": "MBPP/11", "solution": "..."}`, as LLMDebugger (arXiv 2402.16906) publishes them
for MBPP. Rows of one problem without the key `sample` are its samples 0, 1, ... in file order.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cocos.config.ranks import is_main_process
from cocos.files.json_lines import DataError, listed, read_rows
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
    sources: Sequence[str],
    trajectories: Sequence[Trajectory],
    protocol: PromptProtocol,
    num_turns: int | None = None,
) -> list[tuple[str, ...]]:
    """Return the completions that are supplied for each trajectory.

    Args:
        sources: In the order of the turns. `references` and `buggy` supply one turn each; a file supplies as
            many turns as its row has.
        num_turns: Turns of the run, to say which answers it does not use; None: nothing is said.

    Raises:
        DataError: A problem has no such program, or a file has no row for a trajectory.

    """
    files = _load_files(sources)
    _check_complete(trajectories, sources, files)
    answers = [_answers_of(trajectory, sources, files, protocol) for trajectory in trajectories]
    if num_turns is not None and is_main_process():
        keys = {trajectory.key for trajectory in trajectories}
        for line in _unused(files, keys, max(map(len, answers), default=0) - num_turns):
            print(f"note: {line}", file=sys.stderr)
    return answers


def _unused(files: Mapping[str, AnswersByKey], keys: Set[Key], num_surplus: int) -> Iterator[str]:
    """Yield what a run does not use of the files: rows of other problems, further samples and turns."""
    task_ids = {task_id for task_id, _ in keys}
    for name, answers in files.items():
        others = sorted({task_id for task_id, _ in answers} - task_ids)
        if others:
            yield f"--answers {name}: rows of {len(others)} problems are not used, first {others[0]!r}"
        if num := sum(key[0] in task_ids and key not in keys for key in answers):
            yield f"--answers {name}: {num} rows of further samples are not used; raise --num_samples"
    if files and num_surplus > 0:
        yield f"--answers: the last {num_surplus} turns are not used; raise --num_turns"


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
    _check_complete(prompts, sources, files)
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


def _check_complete(
    trajectories: Sequence[Trajectory], sources: Sequence[str], files: Mapping[str, AnswersByKey]
) -> None:
    """Raise DataError with all trajectories for which a source has no answer."""
    for source in sources:
        if source in files:
            lacking = [t.key for t in trajectories if t.key not in files[source]]
            for sample in sorted({sample for _, sample in lacking}):
                ids = listed([task_id for task_id, of in lacking if of == sample])
                raise DataError(
                    f"{source}: no answers for sample {sample} of problem {ids}; add a row or change "
                    "--task_ids or --num_samples"
                )
            continue
        field = PROBLEM_SOURCES[source]
        if empty := [t.problem.task_id for t in trajectories if not getattr(t.problem, field).strip()]:
            raise DataError(
                f"--answers {source}: no {field} in problem {listed(list(dict.fromkeys(empty)))}; exclude it "
                "with --task_ids or give a file of answers"
            )


def _answers_of(
    trajectory: Trajectory,
    sources: Sequence[str],
    files: Mapping[str, AnswersByKey],
    protocol: PromptProtocol,
) -> tuple[str, ...]:
    answers: list[str] = []
    for source in sources:
        if source in files:
            found = files[source][trajectory.key]
            answers += map(protocol.answer, found.texts) if found.is_program else found.texts
        else:
            answers.append(protocol.answer(getattr(trajectory.problem, PROBLEM_SOURCES[source])))
    return tuple(answers)


def load_answers(path: str | Path) -> AnswersByKey:
    """Load a file of answers.

    Raises:
        DataError: The file cannot be read, a row has no answers, or two rows are for the same sample.

    """
    answers: AnswersByKey = {}
    num_samples: Counter[str] = Counter()
    for place, row in read_rows(Path(path)):
        if not isinstance(row, dict) or row.get("task_id") is None or not (found := _answers(row)):
            raise DataError(
                f'{place}: expected a row of samples.jsonl, {{"task_id": ..., "answers": ["...", ...]}}, or '
                '{"task_id": ..., "solution": "..."}'
            )
        task_id = str(row.get("task_id")).removeprefix(MBPP_PREFIX if found.is_program else "")
        sample = row.get("sample", num_samples[task_id])
        if isinstance(sample, str) and sample.isdecimal():
            sample = int(sample)
        if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
            raise DataError(f"{place}: field 'sample' is {sample!r:.80}; expected a whole number, from 0")
        key = (task_id, sample)
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
