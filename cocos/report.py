"""Tables and plots of evaluations, side by side.

    python -m cocos.report outputs/base outputs/boost outputs/cocos --output_dir outputs/report

Reads the metrics.json that test.py writes; knows nothing of how it came about.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

Evaluations = Mapping[str, Mapping[str, Any]]  # name -> contents of metrics.json


def show(evaluations: Evaluations) -> None:
    """Print one row per evaluation and turn pair, shares in percent with 95 % intervals."""
    table = Table(title="self-correction, % [95 % interval]")
    columns, *rows = _cells(evaluations)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, 135)  # a wrapped interval is unreadable; a wide line only scrolls
    console.print(table)


def markdown(evaluations: Evaluations) -> str:
    """The same table in Markdown, and below it what kinds of error stood at each turn."""
    header, *rows = _cells(evaluations)
    lines = [header, ["---"] * len(header), *rows]
    table = "\n".join("| " + " | ".join(row) + " |" for row in lines)
    errors = [
        f"- {name}, turn {turn}: "
        + (", ".join(f"{kind} {count}" for kind, count in counts.items()) or "none")
        for name, metrics in evaluations.items()
        for turn, counts in enumerate(metrics["errors"], start=1)
    ]
    return (
        f"# Self-correction\n\nShares in % with 95 % intervals.\n\n{table}\n\n## Errors\n\n"
        + "\n".join(errors)
        + "\n"
    )


def plot(evaluations: Evaluations, path: Path) -> None:
    """Accuracy per turn with intervals, and what the turns repaired and spoilt, as PNG or SVG by the path's
    suffix.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (accuracy, change) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, metrics in evaluations.items():
        estimates = [metrics["metrics"][f"acc_t{turn}"] for turn in range(1, _num_turns(metrics) + 1)]
        values = [estimate["value"] for estimate in estimates]
        spread = [[e["value"] - e["low"] for e in estimates], [e["high"] - e["value"] for e in estimates]]
        accuracy.errorbar(range(1, len(values) + 1), values, yerr=spread, marker="o", capsize=4, label=name)
    turns = range(1, max(map(_num_turns, evaluations.values())) + 1)
    accuracy.set(title="accuracy after each turn", xlabel="turn", ylim=(0, 1), xticks=turns)
    accuracy.grid(alpha=0.3)
    accuracy.legend()
    pairs = [(name, pair, m["metrics"]) for name, m in evaluations.items() for pair in _pairs(m)]
    labels = [f"{name}\n{pair.replace('t', '').replace('_', ' to ')}" for name, pair, _ in pairs]
    change.bar(
        labels, [m[f"i2c_{pair}"]["value"] for _, pair, m in pairs], label="repaired (i→c)", color="tab:green"
    )
    change.bar(
        labels, [-m[f"c2i_{pair}"]["value"] for _, pair, m in pairs], label="spoilt (c→i)", color="tab:red"
    )
    change.axhline(0, color="black", linewidth=0.8)
    change.set(title="share of problems that changed")
    change.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def save_report(evaluations: Evaluations, output_dir: Path) -> None:
    """Write report.md and report.png."""
    output_dir.mkdir(parents=True, exist_ok=True)
    (output_dir / "report.md").write_text(markdown(evaluations), encoding="utf-8")
    plot(evaluations, output_dir / "report.png")


def _num_turns(metrics: Mapping[str, Any]) -> int:
    return sum(name.startswith("acc_t") for name in metrics["metrics"])


def _pairs(metrics: Mapping[str, Any]) -> list[str]:
    return [f"t{turn}_t{turn + 1}" for turn in range(1, _num_turns(metrics))]


def _cells(evaluations: Evaluations) -> Iterator[list[str]]:
    """Header and rows: one per evaluation and pair of neighbouring turns; a single turn makes one row of its
    own.
    """
    longest = max(map(_num_turns, evaluations.values()))
    before, after = ("acc@1", "acc@2") if longest <= 2 else ("acc@t", "acc@t+1")
    yield ["model", "n", "turns", before, after, "delta", "i→c", "c→i"]
    for name, contents in evaluations.items():
        metrics, n = contents["metrics"], str(contents["num_scored"])
        if _num_turns(contents) == 1:
            yield [name, n, "1", _percent(metrics["acc_t1"]), "", "", "", ""]
        for turn, pair in enumerate(_pairs(contents), start=1):
            estimates = [f"acc_t{turn}", f"acc_t{turn + 1}", f"delta_{pair}", f"i2c_{pair}", f"c2i_{pair}"]
            yield [name, n, f"{turn} to {turn + 1}", *(_percent(metrics[estimate]) for estimate in estimates)]


def _percent(estimate: Mapping[str, float]) -> str:
    value, low, high = (100 * estimate[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def main() -> None:
    """Compare evaluations: print the table, write report.md and report.png."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "evaluations", nargs="+", type=Path, help="output folders of test.py; their names head the rows"
    )
    parser.add_argument(
        "--output_dir", type=Path, help="where report.md and report.png go; without it, only print"
    )
    options = parser.parse_args()
    evaluations = {}
    names = Counter(folder.name for folder in options.evaluations)
    for folder in options.evaluations:
        name = folder.name if names[folder.name] == 1 else str(folder)
        try:
            evaluations[name] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            sys.exit(
                f"error: {folder}: no readable metrics.json ({error}); run test.py --output_dir {folder}"
            )
    show(evaluations)
    if options.output_dir:
        save_report(evaluations, options.output_dir)


if __name__ == "__main__":
    main()
