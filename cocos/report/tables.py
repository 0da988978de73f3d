"""The numbers of finished runs as tables of text; `terminal` and `markdown_report` lay them out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun, TurnPair, group_by_conditions
from cocos.statistics import MIN_PROBLEMS, Estimate

NO_INTERVAL = "(no interval)"
NO_INTERVAL_NOTE = (
    f"{NO_INTERVAL}: a difference has no interval if there are fewer than {MIN_PROBLEMS} problems, "
    "or if all of them differ by the same, for example by 0."
)
IN_CHILD = "in_child"
IN_CHILD_NOTE = (
    f"{IN_CHILD}: right programs with a test whose verdict comes from the program's own process, which could "
    "have forged it; samples.jsonl gives the reason for each."
)


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        title: What the table shows, without units.
        unit: Unit of the numbers, for the title; "" if the header has the units.
        header: One name per column.
        rows: One cell per column.
        num_names: Number of columns, the first ones, that name what a row is about.

    """

    title: str
    unit: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_names: int = 1

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def notes(self) -> list[str]:
        """Notes that explain the table."""
        lacks_interval = any(NO_INTERVAL in cell for row in self.rows for cell in row)
        return [IN_CHILD_NOTE] * (IN_CHILD in self.header) + [NO_INTERVAL_NOTE] * lacks_interval


def run_tables(runs: Sequence[FinishedRun]) -> list[Table]:
    """Return the tables of accuracies, one per conditions, then the further tables."""
    groups = group_by_conditions(runs)
    accuracies = [accuracy_table(group, accuracy_heading(conditions)) for conditions, group in groups.items()]
    return accuracies + further_tables(runs)


def further_tables(runs: Sequence[FinishedRun]) -> list[Table]:
    """Return the tables of pass@k and of means per trajectory.

    pass@k needs a run with several samples per problem, the means a run with speeds in its metrics.json.
    """
    tables = []
    if any(has_pass_at_k(run) for run in runs):
        tables.append(pass_at_k_table(runs))
    if any(run.mean_per_problem("seconds") is not None for run in runs):
        tables.append(means_table(runs))
    return tables


def accuracy_heading(conditions: str) -> str:
    """Return the heading of the accuracies of runs with these `FinishedRun.conditions`."""
    return f"Correction with {conditions}" if conditions else "Self-correction"


def accuracy_table(runs: Sequence[FinishedRun], heading: str) -> Table:
    """Return a row per run and pair of consecutive turns, and a row from the first to the last of several.

    There is a column for in_child verdicts only if a right program has one.
    """
    num_turns = max(run.num_turns for run in runs)
    before, after = ("acc@1", "acc@2") if num_turns <= 2 else ("acc before", "acc after")
    header = ["model", "n", "turns", before, after, "delta", "i→c", "c→i"]
    num_columns = 4 if num_turns == 1 else len(header)  # nothing changes within one turn
    rows = [row[:num_columns] for run in runs for row in _accuracy_rows(run)]
    header = header[:num_columns]
    if any(sum(run.num_in_child_T) for run in runs):
        header.append(IN_CHILD)
        counts = [count for run in runs for count in _in_child_cells(run)]
        rows = [[*row, count] for row, count in zip(rows, counts, strict=True)]
    return Table(heading, "% [95 % interval]", header, rows)


def _accuracy_rows(run: FinishedRun) -> Iterator[list[str]]:
    n = str(run.metrics["num_scored"])
    if run.num_turns == 1:
        yield [run.name, n, "1", format_estimate(run.estimate("acc_t1")), "", "", "", ""]
    for pair in _shown_pairs(run):
        metrics = [f"acc_t{pair.before}", f"acc_t{pair.after}", f"delta_{pair}", f"i2c_{pair}", f"c2i_{pair}"]
        estimates = [format_estimate(run.estimate(metric)) for metric in metrics]
        yield [run.name, n, f"{pair.before} to {pair.after}", *estimates]


def _in_child_cells(run: FinishedRun) -> Iterator[str]:
    """Yield the number of right programs with an in_child verdict for each of `_accuracy_rows`."""
    counts_T = run.num_in_child_T
    if run.num_turns == 1:
        yield str(counts_T[0])
    for pair in _shown_pairs(run):
        yield f"{counts_T[pair.before - 1]} → {counts_T[pair.after - 1]}"


def _shown_pairs(run: FinishedRun) -> list[TurnPair]:
    """Return the pairs of consecutive turns, and the first and the last turn if there are more than two."""
    overall = [run.first_and_last] if run.num_turns > 2 and run.first_and_last else []
    return [*run.turn_pairs, *overall]


def has_pass_at_k(run: FinishedRun) -> bool:
    """Return whether every problem of the run has several scored samples; pass@1 alone is the accuracy."""
    return len(run.pass_at_k_sizes) > 1


def pass_at_k_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per turn of each run that has pass@k, and a column per k."""
    sampled = [run for run in runs if has_pass_at_k(run)]
    sizes = sorted({k for run in sampled for k in run.pass_at_k_sizes})
    rows = []
    for run in sampled:
        for turn in range(1, run.num_turns + 1):
            shares = [run.metrics["pass_at_k"].get(f"pass@{k}_t{turn}") for k in sizes]
            cells = ["-" if share is None else f"{100 * share:.1f}" for share in shares]
            rows.append([run.label, str(turn), *cells])
    return Table("pass@k", "%", ["model", "turn", *(f"pass@{k}" for k in sizes)], rows)


def means_table(runs: Sequence[FinishedRun]) -> Table:
    """Return the mean seconds of generation and completion tokens of each run's trajectories."""
    rows = [
        [run.label, *(_format_mean(run.mean_per_problem(quantity)) for quantity in ("seconds", "tokens"))]
        for run in runs
    ]
    return Table("Mean per trajectory", "", ["model", "seconds of generation", "completion tokens"], rows)


def comparison_table(comparisons: Sequence[RunComparison]) -> Table:
    """Return two rows per comparison: turn 1 and the last turn."""
    header = ["model", "against", "problems", "turn", "accuracy", "difference", "McNemar p", "gained", "lost"]
    rows = []
    for comparison in comparisons:
        for turn, result in (("1", comparison.first_turn), ("last", comparison.last_turn)):
            rows.append(
                [
                    comparison.other.name,
                    comparison.baseline.name,
                    str(result.num_problems),
                    turn,
                    f"{100 * result.baseline:.1f} → {100 * result.other:.1f}",
                    format_estimate(result.difference),
                    format_p_value(result.p_value),
                    str(len(result.gained)),
                    str(len(result.lost)),
                ]
            )
    return Table("Against the baseline", "% [95 % interval]", header, rows, num_names=2)


def excluded_problems(comparisons: Sequence[RunComparison]) -> Iterator[str]:
    """Yield a sentence for each run that has scored problems which its counterpart has not."""
    for comparison in comparisons:
        for run, task_ids in (
            (comparison.baseline, comparison.last_turn.only_baseline),
            (comparison.other, comparison.last_turn.only_other),
        ):
            if task_ids:
                yield (
                    f"{comparison.other.name} against {comparison.baseline.name} excludes the problems that "
                    f"only {run.name} has scored: {', '.join(task_ids)}."
                )


def format_estimate(estimate: Estimate) -> str:
    """Return a share and its interval in percent, as in `50.0 [23.7, 76.3]` or `50.0 (no interval)`."""
    value, low, high = estimate
    if low is None or high is None:
        return f"{100 * value:.1f} {NO_INTERVAL}"
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def format_p_value(p: float | None) -> str:
    """Return a p-value with two digits; `several samples` for None, as the test needs one per problem."""
    if p is None:
        return "several samples"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def printable_error_type(error_type: str) -> str:
    """Return an exception's name on one line of at most 30 characters.

    The program under test defines the exception, so its name can be any text.
    """
    printable = "".join(character if character.isprintable() else "?" for character in error_type)
    return printable if len(printable) <= 30 else printable[:29] + "…"


def _format_mean(mean: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.1f}" if mean >= 10 else f"{mean:.3g}"
