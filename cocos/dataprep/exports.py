"""Problems as rows of other trainers: `cocos prepare --to` writes them beside the splits, as Parquet."""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cocos.dataprep.preparation import read_splits
from cocos.executor import StdoutTest, read_stdout_test
from cocos.problems import DataError, Problem
from cocos.prompts import PROTOCOLS


def _runs(problem: Problem) -> list[StdoutTest]:
    return list(filter(None, map(read_stdout_test, problem.scored_tests)))


def _verl_row(problem: Problem, prompt: str, split: str, index: int) -> dict[str, Any]:
    """Return a row whose `ground_truth` verl's SandboxFusion judges; it knows such rows by the name taco."""
    runs = _runs(problem)
    tests: dict[str, list[str]] = {"inputs": [run.input for run in runs], "outputs": [r.output for r in runs]}
    if not problem.is_script:
        tests = {"assert_case": [f"{problem.setup}\n{test}".strip() for test in problem.scored_tests]}
    return {
        "data_source": "taco",
        "prompt": [{"role": "user", "content": prompt}],
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": json.dumps(tests)},
        "extra_info": {"split": split, "index": index, "id": problem.task_id, "solution": problem.code},
    }


def _openr1_row(problem: Problem, prompt: str, split: str, index: int) -> dict[str, Any]:
    """Return a row for open-r1's `code` reward, which knows standard input alone."""
    if not problem.is_script:
        raise DataError(
            f"problem {problem.task_id!r}: open-r1 judges programs by standard input, and its tests are "
            "asserts; give --to verl"
        )
    cases = [{"input": run.input, "output": run.output, "type": "stdin_stdout"} for run in _runs(problem)]
    return {
        "problem_id": problem.task_id,
        "problem": prompt,
        "gold_standard_solution": problem.code,
        "verification_info": {"language": "python", "test_cases": cases},
    }


TRAINERS: dict[str, Callable[[Problem, str, str, int], dict[str, Any]]] = {
    "verl": _verl_row,
    "openr1": _openr1_row,
}


def save_rows(folder: Path, trainer: str) -> None:
    """Write the splits of a prepared folder as TRAINER/SPLIT.parquet; the prompts are those of chat models.

    Raises:
        DataError: The trainer cannot judge the tests of a problem.

    """
    import pyarrow
    import pyarrow.parquet

    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for split, problem in read_splits(folder):
        prompt = PROTOCOLS["chat"].first_turn(problem)
        rows[split].append(TRAINERS[trainer](problem, prompt, split, len(rows[split])))
    (folder / trainer).mkdir()
    for split, found in rows.items():
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(found), folder / trainer / f"{split}.parquet")
