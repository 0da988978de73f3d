"""Answers that were written elsewhere and stand as the first turns of an evaluation: references, programs to
be repaired, another run's samples, or any file of them.

A file's rows are those of samples.jsonl, or `{"task_id": ..., "answers": ["turn 1", "turn 2", ...]}`; rows of
one task are its samples 0, 1, ... where they do not say. Knows problems and rows; does not know models.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cocos.files.json_lines import DataError, read_rows
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.trajectories import Trajectory

FIELDS = {"references": "code", "buggy": "buggy_code"}  # what a problem itself can answer with
Answers = dict[tuple[str, int], tuple[str, ...]]  # by task_id and sample: what each turn says


def given_answers(
    sources: Sequence[str], trajectories: Sequence[Trajectory], protocol: PromptProtocol
) -> list[tuple[str, ...]]:
    """The first turns of each trajectory.

    Args:
        sources: `references` and `buggy` give one turn each, a file as many as its rows have; one after
            another.
        trajectories: Not begun yet.
        protocol: Says how a program is put as an answer.

    Raises:
        DataError: A problem has no such program, or a file no row for a trajectory.

    """
    files = {source: load_answers(source) for source in sources if source not in FIELDS}
    return [
        tuple(
            text
            for source in sources
            for text in (
                _row(files[source], trajectory, source)
                if source in files
                else [protocol.answer(_program(trajectory.problem, source))]
            )
        )
        for trajectory in trajectories
    ]


def load_answers(path: str | Path) -> Answers:
    """Read a file of answers.

    Raises:
        DataError: It cannot be read, a row has no answers, or two rows are of one sample.

    """
    answers: Answers = {}
    samples: Counter[str] = Counter()
    for place, row in read_rows(Path(path)):
        if not isinstance(row, dict) or not (texts := _texts(row)):
            raise DataError(
                f'{place}: expected a row of samples.jsonl, or {{"task_id": ..., "answers": ["...", ...]}}'
            )
        task_id = str(row.get("task_id"))
        key = (task_id, row.get("sample", samples[task_id]))
        if key in answers:
            raise DataError(f"{place}: sample {key[1]} of task {task_id!r} occurs twice; keep one of them")
        samples[task_id] += 1
        answers[key] = texts
    return answers


def _texts(row: dict) -> tuple[str, ...]:
    """What each turn says; () where the row does not."""
    match row:  # a row of samples.jsonl has `answers` too: where its own first turns came from
        case {"turns": list(turns)} if all(isinstance(turn, dict) and "completion" in turn for turn in turns):
            return tuple(str(turn["completion"]) for turn in turns)
        case {"answers": list(texts)} if all(isinstance(text, str) for text in texts):
            return tuple(texts)
    return ()


def _row(answers: Answers, trajectory: Trajectory, source: str) -> tuple[str, ...]:
    key = (trajectory.problem.task_id, trajectory.sample)
    if key not in answers:
        raise DataError(f"{source}: has no answers for sample {key[1]} of task {key[0]!r}; see --num_samples")
    return answers[key]


def _program(problem: Problem, source: str) -> str:
    code = getattr(problem, FIELDS[source])
    if not code.strip():
        raise DataError(
            f"--answers {source}: task {problem.task_id!r} has no {FIELDS[source]}; leave it out with "
            "--task_ids, or give a file of answers"
        )
    return code
