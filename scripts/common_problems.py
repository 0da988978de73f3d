"""Print the ids of the problems that every one of some files has, separated by blanks.

    python scripts/common_problems.py data/public/mbppplus/test.jsonl outputs/run/samples.jsonl

For `test.py --task_ids`: a run's programs are judged again with the tests of another set (`--answers`), which
need not have all of its problems.
"""

import argparse
from pathlib import Path

from repair_set import rows_with

from cocos.commands.runner import run_command


def common_problems(files: list[Path]) -> list[str]:
    """Return the ids that are in all files, in the order of the first."""
    ids = [dict.fromkeys(str(row["task_id"]) for _, row in rows_with(file, "task_id")) for file in files]
    return [task_id for task_id in ids[0] if all(task_id in others for others in ids[1:])]


def main() -> None:
    """Read the command line and print the ids."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="problems or samples, JSONL")
    print(*common_problems(parser.parse_args().files))


if __name__ == "__main__":
    run_command(main)
