"""Episodes of an evaluation as a page: what the model was told, and what it changed.

    python scripts/real_episodes.py outputs/real/qwen/seed0/mbpp/cocos docs/real/episodes.md

Nobody picks them. Of the trajectories with a second turn, in the order of the file, every n-th is shown, so
that NUMBER (10) of them are spread over the whole set, good or bad.
"""

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from cocos.config.command_line import PlainParser
from cocos.entry_point import run_command
from cocos.evaluation.sample_rows import SampleRow, TurnRow
from cocos.report.finished_runs import load_runs


def spread(rows: Sequence[SampleRow], number: int) -> list[SampleRow]:
    """Return `number` rows at equal distances, from the first one on; all of them if there are fewer.

    Example: 4 of 10 rows are those at 0, 2, 5 and 7.
    """
    if number >= len(rows):
        return list(rows)
    return [rows[index * len(rows) // number] for index in range(number)]


def played(row: SampleRow) -> list[TurnRow]:
    """Return the turns that the model wrote; after an early stop the others repeat the last one."""
    return [turn for turn in row["turns"] if not turn["is_carried"]]


def changed_lines(before: str, after: str) -> str:
    """Return the lines of the later program, with `-` and `+` before the lines that differ."""
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1000)
    return "\n".join(list(lines)[3:])


def episode_text(row: SampleRow) -> str:
    """Return one trajectory as Markdown."""
    turns = played(row)
    first, *later = turns
    outcome = [f"turn {n} {'right' if turn['is_right'] else 'wrong'}" for n, turn in enumerate(turns, 1)]
    parts = [
        f"## Problem {row['task_id']}: {', '.join(outcome)}",
        row["text"],
        f"```python\n{row['tests'][0]}\n```",
        f"Turn 1:\n\n```python\n{first['code'].strip()}\n```",
    ]
    before = first["code"]
    for number, turn in enumerate(later, 2):
        told = "\n".join(f"> {line}".rstrip() for line in turn["feedback"].strip().splitlines())
        change = changed_lines(before, turn["code"])
        shown = f"```diff\n{change}\n```" if change else "The same program."
        parts.append(f"Told before turn {number}:\n\n{told}\n\nTurn {number}:\n\n{shown}")
        before = turn["code"]
    return "\n\n".join(parts)


def page(rows: Sequence[SampleRow], number: int) -> str:
    """Return the page."""
    told = [row for row in rows if len(played(row)) > 1]
    head = (
        f"# Episodes\n\n{min(number, len(told))} of the {len(told)} trajectories in which the first program "
        f"failed the shown test, at equal distances in the order of the file, out of {len(rows)}. "
        "Made by `scripts/real_episodes.py`."
    )
    return "\n\n".join([head, *(episode_text(row) for row in spread(told, number))]) + "\n"


def main() -> None:
    """Write the page of a finished evaluation."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("evaluation", type=Path, metavar="FOLDER", help="output folder of test.py")
    parser.add_argument("output", type=Path, metavar="FILE", help="Markdown file to write")
    parser.add_argument("--number", type=int, default=10, help="episodes to show (default: 10)")
    args = parser.parse_args()
    (run,) = load_runs([args.evaluation])
    args.output.write_text(page(run.rows, args.number), encoding="utf-8")
    print(f"written: {args.output}")


if __name__ == "__main__":
    run_command(main)
