"""Make a set of repair problems from problems and wrong programs of other models.

    python scripts/repair_set.py data/public/mbpp/test.jsonl programs.jsonl --output mbpp-r.jsonl

A row of the programs is {"task_id": 11, "model": "...", "program": "...", "passes": false}; those that pass
left out. A problem of the set has the program as its `buggy_code` and the id 11/MODEL, so that
`test.py --answers buggy` plays it as the first turn: can a model repair what it did not write (SCoRe,
arXiv 2409.12917, calls such a set MBPP-R)?
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cocos.commands.runner import run_command
from cocos.files.json_lines import DataError, Place, read_rows


def rows_with(path: Path, *fields: str) -> Iterator[tuple[Place, dict]]:
    """Yield the rows of a file with their places.

    Raises:
        DataError: The file cannot be read, or a row lacks one of the fields.

    """
    for place, row in read_rows(path):
        if not isinstance(row, dict) or not all(field in row for field in fields):
            raise DataError(f"{place}: expected a row with {', '.join(fields)}")
        yield place, row


def repair_problems(problems: Path, programs: Path) -> list[dict]:
    """Return a problem per wrong program, in the order of the programs.

    Raises:
        DataError: A file cannot be read, or a program is of a problem that is not there.

    """
    by_id = {str(row["task_id"]): row for _, row in rows_with(problems, "task_id")}
    made: list[dict] = []
    ids: Counter[str] = Counter()
    for place, row in rows_with(programs, "task_id", "model", "program", "passes"):
        task_id = str(row["task_id"])
        if task_id not in by_id:
            raise DataError(f"{place}: problem {task_id!r} is not in {problems}; leave the row out")
        if row["passes"]:
            continue
        name = f"{task_id}/{row['model']}"
        ids[name] += 1
        own = name if ids[name] == 1 else f"{name}/{ids[name]}"
        made.append({**by_id[task_id], "task_id": own, "buggy_code": row["program"]})
    return made


def main() -> None:
    """Read the command line and write the problems."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problems", type=Path, help="problems in MBPP format, JSONL")
    parser.add_argument("programs", type=Path, help="programs with their verdicts, JSONL")
    parser.add_argument("--output", type=Path, required=True, help="file for the problems")
    arguments = parser.parse_args()
    problems = repair_problems(arguments.problems, arguments.programs)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text("".join(json.dumps(row) + "\n" for row in problems), encoding="utf-8")
    print(f"{len(problems)} problems with a wrong program: {arguments.output}")


if __name__ == "__main__":
    run_command(main)
