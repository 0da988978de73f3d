"""Tables and figure of docs/performance.md, made from the figures of update.py.

    python scripts/bench/update_figures.py build/update.json

Copies the figures to docs/performance/update.json, draws docs/performance/update.svg, and writes the tables
between the marker lines of docs/performance.md.
"""

import json
import sys
from pathlib import Path
from typing import Any

from cocos.files.markdown import markdown_table

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
FIGURES = DOCS / "performance"
PAGE = DOCS / "performance.md"
BEGIN, END = "<!-- tables: written by scripts/bench/update_figures.py -->", "<!-- end of tables -->"
NAMES = {"lab": "laboratory", "mbpp": "MBPP's lengths", "whole": "the same, 30 layers"}
# A pass forward without gradient, one with it, and a backward pass of twice as many operations.
FORWARD_PASSES = 4
VARIED = {"num_generations": "k", "num_turns": "T", "prompt": "prompt, tokens", "num_problems": "problems"}


def sizes(row: dict[str, Any]) -> list[str]:
    """Return the cells that say what was measured."""
    shape = f"{row['num_problems']} x {row['num_generations']}"
    return [NAMES[row["name"]], shape, str(row["num_turns"]), str(row["prompt"])]


def table_of_passes(rows: list[dict[str, Any]]) -> str:
    """Return the table of log-probabilities, loss and gradient: seconds, ratio, floor and memory.

    The floor is the time that the operations of the trees take at the measured rate of matrix products.
    """
    cells = []
    for row in rows:
        operations, seconds, peaks = row["operations"], row["seconds"], row["peaks_mib"]
        floor = FORWARD_PASSES * operations["shared"] / row["matrix_rate"]
        cells.append(
            [
                *sizes(row),
                f"{operations['packing_ratio']:.1f}",
                f"{seconds['plain']:.2f}",
                f"{seconds['shared']:.2f}",
                f"{row['speedup_vs_plain']:.2f}",
                f"{floor:.2f}",
                f"{floor / seconds['shared']:.0%}",
                f"{peaks['plain']:.0f}",
                f"{peaks['shared']:.0f}",
            ]
        )
    head = ["lengths of", "problems x k", "T", "prompt", "tokens, ratio", "plain s", "trees s", "ratio"]
    return markdown_table([*head, "floor s", "of the floor", "plain MiB", "trees MiB"], cells)


def table_of_updates(rows: list[dict[str, Any]], other: str) -> str:
    """Return a table of seconds of trees and of another layout, and their ratio."""
    cells = [
        [
            *sizes(row),
            f"{row['seconds'][other]:.2f}",
            f"{row['seconds']['shared']:.2f}",
            f"{row['seconds'][other] / row['seconds']['shared']:.2f}",
            f"{row['peaks_mib'][other]:.0f}",
            f"{row['peaks_mib']['shared']:.0f}",
        ]
        for row in rows
    ]
    head = ["lengths of", "problems x k", "T", "prompt", f"{other} s", "trees s", "ratio"]
    return markdown_table([*head, f"{other} MiB", "trees MiB"], cells)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the seconds of both layouts against each size that was varied, one panel per size and model."""
    from matplotlib import pyplot, rcParams

    rcParams["svg.hashsalt"] = "update"  # the same figures give the same file
    figure, grid = pyplot.subplots(2, len(VARIED), figsize=(11, 5), layout="constrained")
    for axes_row, name in zip(grid, ("lab", "mbpp"), strict=True):
        of_model = [row for row in rows if row["name"] == name]
        base = max(of_model, key=lambda row: sum(same(row, other) for other in of_model))
        for axes, (field, label) in zip(axes_row, VARIED.items(), strict=True):
            points = sorted((r for r in of_model if same(r, base, field)), key=lambda row: row[field])
            for layout, color in (("plain", "tab:gray"), ("shared", "tab:blue")):
                values = [row["seconds"][layout] for row in points]
                label_of = "plain rows" if layout == "plain" else "trees"
                axes.plot([row[field] for row in points], values, ".-", color=color, label=label_of)
            axes.set(xlabel=label, ylim=(0, None), title=NAMES[name])
            axes.grid(alpha=0.3)
            axes.set_visible(len(points) > 1)  # a size that was not varied has no panel
    grid.flat[0].legend()
    figure.supylabel("seconds of a batch")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def same(row: dict[str, Any], other: dict[str, Any], apart_from: str = "") -> bool:
    """Return whether two rows differ in at most one size: the given one, or any if none is given."""
    differing = [field for field in VARIED if row[field] != other[field]]
    return differing in ([], [apart_from]) if apart_from else len(differing) <= 1


def main() -> None:
    """Write figures, drawing and tables."""
    import matplotlib

    matplotlib.use("Agg")
    figures = json.loads(Path(sys.argv[1]).read_text())
    parts = ("passes", "trl", "updates")
    by_part = {part: [row for row in figures["rows"] if row["part"] == part] for part in parts}
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / "update.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    plot(by_part["passes"], FIGURES / "update.svg")
    tables = [
        "Old log-probabilities, loss and gradient:",
        table_of_passes(by_part["passes"]),
        "The same for one turn, in TRL's own `RLOOTrainer`:",
        table_of_updates(by_part["trl"], "trl"),
        "Whole updates of the laboratory (rollout, programs, loss, optimizer):",
        table_of_updates(by_part["updates"], "plain"),
    ]
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE}: needs the lines '{BEGIN}' and '{END}', between which the tables go")
    PAGE.write_text(before + BEGIN + "\n\n" + "\n\n".join(tables) + "\n\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
