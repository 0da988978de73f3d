"""The numbers of evaluations as tables, for the terminal and in Markdown."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cocos.report.comparison import Pair
from cocos.report.finished_runs import Run, by_aids

INTERVALS = "% [95 % interval]"
WIDTH = 135  # a wrapped interval is unreadable; a wide line only scrolls


def title(aids: str) -> str:
    """The heading over runs with these `Run.aids`."""
    return f"Correction with {aids}" if aids else "Self-correction"


def show(runs: Sequence[Run], pairs: Sequence[Pair] = ()) -> None:
    """Print a table per kind of help with one row per run and pair of turns, and one of the comparisons."""
    console = Console()
    console.width = max(console.width, WIDTH)
    for aids, group in by_aids(runs).items():
        _print(console, f"{title(aids)}, {INTERVALS}", change_cells(group))
    if pairs:
        _print(console, f"Against the baseline, points {INTERVALS}", comparison_cells(pairs))
        for line in left_out(pairs):
            console.print(escape(line))


def markdown(runs: Sequence[Run], pairs: Sequence[Pair] = ()) -> str:
    """The same tables in Markdown, the problems gained and lost, and the kinds of error at each turn."""
    parts = []
    for aids, group in by_aids(runs).items():
        parts += [
            f"# {title(aids)}",
            "Shares in % with 95 % intervals.",
            _markdown_table(change_cells(group)),
        ]
    if pairs:
        parts += ["## Against the baseline", *left_out(pairs), _markdown_table(comparison_cells(pairs))]
        parts.append("\n".join(_gained_and_lost(pairs)))
    parts += ["## Errors", "\n".join(_errors(runs))]
    return "\n\n".join(parts) + "\n"


def change_cells(runs: Sequence[Run]) -> Iterator[list[str]]:
    """Header and rows: one per run and pair of neighbouring turns; a single turn makes one row of its own."""
    before, after = ("acc@1", "acc@2") if max(run.num_turns for run in runs) <= 2 else ("acc@t", "acc@t+1")
    yield ["model", "n", "turns", before, after, "delta", "i→c", "c→i"]
    for run in runs:
        metrics, n = run.metrics["metrics"], str(run.metrics["num_scored"])
        if run.num_turns == 1:
            yield [run.name, n, "1", percent(metrics["acc_t1"]), "", "", "", ""]
        for turn, pair in enumerate(run.pairs, start=1):
            estimates = [f"acc_t{turn}", f"acc_t{turn + 1}", f"delta_{pair}", f"i2c_{pair}", f"c2i_{pair}"]
            yield [run.name, n, f"{turn} to {turn + 1}", *(percent(metrics[name]) for name in estimates)]


def comparison_cells(pairs: Sequence[Pair]) -> Iterator[list[str]]:
    """Header and rows: each pair of runs at turn 1 and at the last turn."""
    yield ["model", "against", "problems", "turn", "accuracy", "difference", "McNemar p", "gained", "lost"]
    for pair in pairs:
        for turn, found in (("1", pair.first), ("last", pair.last)):
            yield [
                pair.other.name,
                pair.baseline.name,
                str(found.num_problems),
                turn,
                f"{100 * found.baseline:.1f} → {100 * found.other:.1f}",
                percent(found.difference._asdict()),
                "several samples" if found.p_value is None else p_value(found.p_value),
                str(len(found.gained)),
                str(len(found.lost)),
            ]


def left_out(pairs: Sequence[Pair]) -> Iterator[str]:
    """A sentence for each pair of runs that do not have all problems in common."""
    for pair in pairs:
        for run, task_ids in (
            (pair.baseline, pair.last.only_baseline),
            (pair.other, pair.last.only_other),
        ):
            if task_ids:
                yield (
                    f"Left out of {pair.other.name} against {pair.baseline.name}, scored only in {run.name}: "
                    f"{', '.join(task_ids)}."
                )


def percent(estimate: Mapping[str, float]) -> str:
    """A share as `50.0 [23.7, 76.3]`."""
    value, low, high = (100 * estimate[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def p_value(p: float) -> str:
    """A p-value to two digits, or that it is below 0.001."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def shown(error_type: str) -> str:
    """An exception's name for people; the program under test may have chosen any text."""
    printable = "".join(character if character.isprintable() else "?" for character in error_type)
    return printable if len(printable) <= 30 else printable[:29] + "…"


def _gained_and_lost(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        for change, task_ids in (("gained", pair.last.gained), ("lost", pair.last.lost)):
            listed = ", ".join(task_ids) or "none"
            yield f"- {pair.other.name} {change} at its last turn ({len(task_ids)}): {listed}"


def _errors(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        for turn, counts in enumerate(run.metrics["errors"], start=1):
            listed = ", ".join(f"{shown(kind)} {count}" for kind, count in counts.items()) or "none"
            yield f"- {run.name}, turn {turn}: {listed}"


def _markdown_table(cells: Iterator[list[str]]) -> str:
    header, *rows = cells
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows])


def _print(console: Console, heading: str, cells: Iterator[list[str]]) -> None:
    table = Table(title=heading)
    header, *rows = cells
    for number, column in enumerate(header):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)
