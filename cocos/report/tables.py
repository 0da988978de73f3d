"""The numbers of finished runs as tables of text; `report_files` lays them out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import get_args

from cocos.extraction import Source
from cocos.intervals import MIN_PROBLEMS, Estimate, bounded_mean, smallest_difference
from cocos.report.comparisons import RunComparison, are_sets_of_one_model, pool
from cocos.report.finished_runs import FinishedRun, TurnNumbers, group_by_conditions
from cocos.report.sample_statistics import Point
from cocos.report.sampled_programs import count_samples, sampled_programs
from cocos.report.token_curves import Curve

NO_INTERVAL = "(no interval)"
NO_INTERVAL_NOTE = (
    f"{NO_INTERVAL}: a difference or a mean has no interval if there are fewer than {MIN_PROBLEMS} problems, "
    "or if it is the same for all of them, for example 0."
)


def format_estimate(estimate: Estimate) -> str:
    """Return a share and its interval in percent, as in `50.0 [23.7, 76.3]` or `50.0 (no interval)`."""
    value, low, high = estimate
    if low is None or high is None:
        return f"{100 * value:.1f} {NO_INTERVAL}"
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def format_share(share: float | None) -> str:
    """Return a share in percent; `-` for None."""
    return "-" if share is None else f"{100 * share:.1f}"


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


def format_mean(mean: float) -> str:
    """Return a mean with about three digits."""
    return f"{mean:.1f}" if mean >= 10 else f"{mean:.3g}"


IN_CHILD = "in_child"
IN_CHILD_NOTE = (
    f"{IN_CHILD}: right programs with a test whose verdict comes from the program's own process, which could "
    "have forged it; samples.jsonl gives the reason for each."
)

TOKENS_TITLE = "Accuracy against tokens, up to the first program that passes visible tests"
SMALLEST = "smallest difference"
SMALLEST_NOTE = (
    f"{SMALLEST}: 2.8 standard errors of the paired difference; if the true one is as large, 80 % of such "
    "evaluations tell it from 0 (two-sided, 5 %)."
)

RESAMPLING = "- resampling"
RESAMPLING_NOTE = (
    f"{RESAMPLING}: the difference to the same model asked again with all visible tests shown, at as many "
    "sampled tokens, paired by problem; a dash: there is no such run, or it has fewer tokens."
)


@dataclass(frozen=True)
class Table:
    """A table of text."""

    title: str  # what the table shows, without units
    unit: str  # unit of the numbers, for the title; "" if the header has the units
    header: Sequence[str]  # one name per column
    rows: Sequence[Sequence[str]]  # one cell per column
    num_names: int = 1  # number of columns, the first ones, that name what a row is about

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def notes(self) -> list[str]:
        """Notes that explain the table."""
        lacks_interval = any(NO_INTERVAL in cell for row in self.rows for cell in row)
        notes = {IN_CHILD: IN_CHILD_NOTE, RESAMPLING: RESAMPLING_NOTE, SMALLEST: SMALLEST_NOTE}
        found = [notes[name] for name in notes if name in self.header]
        return [*found, NO_INTERVAL_NOTE] if lacks_interval else found


def overview_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per run: the first and the last turn, what changed, and how many programs."""
    rows = []
    for run in runs:
        row = [run.label, str(run.metrics["num_scored"]), format_estimate(run.estimate("acc_t1"))]
        if pair := run.first_and_last:
            estimates = (run.estimate(name) for name in (f"acc_t{pair.after}", f"delta_{pair}"))
            counts = map(str, changed_counts(run))
            row += [str(pair.after), *map(format_estimate, estimates), relative_change(run), *counts]
        rows.append(row)
    header = ["model", "n", "turn 1", "turns", "last turn", "change", "rel. %", "repaired", "spoilt"]
    header = header[: max(map(len, rows))]
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    return Table("First and last turn" if len(header) > 3 else "Accuracy", "% [95 % interval]", header, rows)


def changed_counts(run: FinishedRun) -> list[int]:
    """Return how many trajectories the last turn has repaired, and how many it has spoilt."""
    shares = [run.estimate(f"{name}_{run.first_and_last}").value for name in ("i2c", "c2i")]
    return [round(run.metrics["num_scored"] * share) for share in shares]


def relative_change(run: FinishedRun) -> str:
    """Return the change of the accuracy from the first to the last turn as a share of the first."""
    before, after = (run.estimate(f"acc_t{turn}").value for turn in (1, run.num_turns))
    return f"{100 * (after - before) / before:+.1f}" if before else "-"


def pooled_tables(runs: Sequence[FinishedRun]) -> list[Table]:
    """Return a table over the problems of all sets, if the runs are one model's on several sets."""
    return [
        accuracy_table([pool(group)], f"{accuracy_heading(conditions)} over all {len(group)} sets")
        for conditions, group in group_by_conditions(runs).items()
        if are_sets_of_one_model(group)
    ]


def accuracy_heading(conditions: str) -> str:
    """Return the heading of the accuracies of runs with these `FinishedRun.conditions`."""
    return f"Correction with {conditions}" if conditions else "Self-correction"


def accuracy_table(runs: Sequence[FinishedRun], heading: str) -> Table:
    """Return a row per run and pair of consecutive turns, and a row from the first to the last of several.

    There is a column for in_child verdicts only if a right program has one.
    """
    num_turns = max(run.num_turns for run in runs)
    before, after = ("acc@1", "acc@2") if num_turns <= 2 else ("acc before", "acc after")
    header = ["model", "n", "turns", before, after, "delta", "i→c", "c→i", IN_CHILD]
    columns = [*range(4 if num_turns == 1 else 8)]  # nothing changes within one turn
    if any(sum(run.num_in_child_T) for run in runs):
        columns.append(8)
    choose = itemgetter(*columns)
    rows = [choose(row) for run in runs for row in _accuracy_rows(run)]
    return Table(heading, "% [95 % interval]", choose(header), rows)


def _accuracy_rows(run: FinishedRun) -> Iterator[list[str]]:
    n, counts_T = str(run.metrics["num_scored"]), run.num_in_child_T
    if run.num_turns == 1:
        yield [run.name, n, "1", format_estimate(run.estimate("acc_t1")), "", "", "", "", str(counts_T[0])]
    for pair in _shown_pairs(run):
        metrics = [f"acc_t{pair.before}", f"acc_t{pair.after}", f"delta_{pair}", f"i2c_{pair}", f"c2i_{pair}"]
        estimates = [format_estimate(run.estimate(metric)) for metric in metrics]
        counts = f"{counts_T[pair.before - 1]} → {counts_T[pair.after - 1]}"
        yield [run.name, n, f"{pair.before} to {pair.after}", *estimates, counts]


def _shown_pairs(run: FinishedRun) -> list[TurnNumbers]:
    """Return the pairs of consecutive turns, and the first and the last turn if there are more than two."""
    overall = [run.first_and_last] if run.num_turns > 2 and run.first_and_last else []
    return [*run.turn_pairs, *overall]


def visible_tests_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per turn of each run whose problems have visible and hidden tests."""
    rows = [
        [run.label, str(turn), *(format_estimate(run.estimate(name)) for name in names)]
        for run in runs
        for turn in range(1, run.num_turns + 1)
        for names in [(f"acc_visible_t{turn}", f"acc_t{turn}")]
        if run.has_estimate(names[0])
    ]
    header = ["model", "turn", "visible tests", "all tests"]
    return Table("Accuracy on the visible tests and on all tests", "% [95 % interval]", header, rows)


def edits_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per run and pair of consecutive turns of which the model sampled the second."""
    names = ("repeated", "repeated_wrong", "edit_ratio")
    rows = []
    for run in runs:
        for pair in run.turn_pairs:
            metrics = [f"{name}_{pair}" for name in names]
            if run.has_estimate(metrics[0]):
                cells = [format_estimate(run.estimate(m)) if run.has_estimate(m) else "-" for m in metrics]
                rows.append([run.label, f"{pair.before} to {pair.after}", *cells])
    header = ["model", "turns", "repeated programs", "wrong ones repeated", "edit ratio"]
    return Table("Edits", "% [95 % interval]", header, rows)


def sampled_programs_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per run and measure of its greedy and sampled programs."""
    rows = [
        [run.label, name, format_estimate(bounded_mean([[value] for value in of_tasks.values()], 0.0, 1.0))]
        for run in runs
        for name, of_tasks in sampled_programs(run, count_samples(run)).items()
    ]
    header = ["model", "programs", "accuracy"]
    return Table("Greedy and sampled programs", "% [95 % interval]", header, rows, num_names=2)


def sampled_differences_table(comparisons: Sequence[RunComparison]) -> Table:
    """Return a row per comparison and measure, paired by problem; n is the smaller number of samples."""
    rows = []
    for comparison in comparisons:
        pair = (comparison.baseline, comparison.other)
        before, after = (sampled_programs(run, min(map(count_samples, pair))) for run in pair)
        for name in [name for name in before if name in after]:
            tasks = [task_id for task_id in before[name] if task_id in after[name]]
            differences = [after[name][task_id] - before[name][task_id] for task_id in tasks]
            shown = format_estimate(bounded_mean([[difference] for difference in differences], -1.0, 1.0))
            names = [comparison.other.name, comparison.baseline.name, name]
            rows.append([*names, shown, format_share(smallest_difference(differences))])
    header = ["model", "against", "programs", "difference", SMALLEST]
    title = "Greedy and sampled programs against the baseline"
    return Table(title, "points [95 % interval]", header, rows, num_names=3)


def has_pass_at_k(run: FinishedRun) -> bool:
    """Return whether every problem of the run has several scored samples; pass@1 alone is the accuracy."""
    return len(run.pass_at_k_sizes) > 1


def pass_at_k_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per turn of each run that has pass@k, and a column per k.

    A second row has best@k: the program that the visible tests choose among k, if tests are hidden.
    """
    sampled = [run for run in runs if has_pass_at_k(run)]
    sizes = sorted({k for run in sampled for k in run.pass_at_k_sizes})
    rows = []
    for run in sampled:
        for turn in range(1, run.num_turns + 1):
            for name, choice in (("pass", "all tests"), ("best", "visible tests")):
                shares = [run.metrics["pass_at_k"].get(f"{name}@{k}_t{turn}") for k in sizes]
                if shares[0] is not None:
                    rows.append([run.label, str(turn), choice, *map(format_share, shares)])
    header = ["model", "turn", "chosen by", *(f"k = {k}" for k in sizes)]
    return Table("pass@k, and best@k: the program of k that the visible tests choose", "%", header, rows)


def token_table(curves: Sequence[Curve]) -> Table:
    """Return a row per curve and number of programs, with the tokens under three costs."""
    rows = []
    for curve in curves:
        for point in curve.points:
            if curve.is_sampled and point.programs & (point.programs - 1) and point != curve.points[-1]:
                continue  # of many samples 1, 2, 4, ... and all
            rows.append([curve.label, str(point.programs), *_token_cells(curve, point)])
    header = ["model", "programs", "accuracy", "sampled tokens", "+ new prompts", "+ all prompts", RESAMPLING]
    return Table(TOKENS_TITLE, "%", header, rows)


def _token_cells(curve: Curve, point: Point) -> list[str]:
    difference = curve.difference(point)
    shown = "-" if difference is None else format_estimate(difference)
    return [format_share(point.accuracy), *map(format_mean, point.tokens), shown]


def bugs_table(runs: Sequence[FinishedRun]) -> Table:
    """Return a row per run and kind of bug, with the accuracy after the first and the last turn."""
    rows = []
    for run in runs:
        for kind, rate in run.metrics["bug_rates"].items():
            cells = [format_estimate(Estimate(*rate["accuracy_T"][turn])) for turn in (0, -1)]
            rows.append([run.label, kind, str(rate["num_scored"]), *cells])
    header = ["model", "kind of bug", "n", "acc first", "acc last"]
    return Table("Repaired programs by kind of bug", "% [95 % interval]", header, rows, num_names=2)


def means_table(runs: Sequence[FinishedRun]) -> Table:
    """Return the seconds of generation and the tokens of each run: means of a trajectory, and totals."""
    means = ("seconds_per_problem", "tokens_per_problem", "prompt_tokens_per_problem")
    totals = ("generation_s", "completion_tokens", "prompt_tokens")
    rows = []
    for run in runs:
        speed = run.metrics["speed"]
        thoughts = run.statistics.num_thought_tokens
        mean_of_thoughts = format_mean(thoughts / run.metrics["num_trajectories"])
        rows.append([run.label, "mean", *(format_mean(speed[name]) for name in means), mean_of_thoughts])
        rows.append([run.label, "total", *(f"{speed[name]:.0f}" for name in totals), str(thoughts)])
    header = ["model", "trajectories", "seconds of generation", "sampled tokens", "prompt tokens"]
    if any(run.statistics.num_thought_tokens for run in runs):
        header.append("thought tokens")
    return Table("Seconds and tokens", "", header, [row[: len(header)] for row in rows], num_names=2)


def sources_table(runs: Sequence[FinishedRun]) -> Table:
    """Return how each run's programs were found in the answers, or why there is none.

    There is no table if every answer is a program and nothing else.
    """
    sources = [source for source in get_args(Source) if any(run.statistics.sources[source] for run in runs)]
    rows = [[run.label, *(str(run.statistics.sources[source]) for source in sources)] for run in runs]
    has_others = sources not in ([], ["answer"])
    return Table("Where programs were found", "answers", ["model", *sources], rows if has_others else [])


def comparison_table(comparisons: Sequence[RunComparison]) -> Table:
    """Return two rows per comparison: turn 1 and the last turn."""
    header = ["model", "against", "problems", "turn", "accuracy", "difference", "McNemar p", "gained", "lost"]
    rows = []
    for comparison in comparisons:
        for turn, result in (("1", comparison.first_turn), ("last", comparison.last_turn)):
            names = [comparison.other.name, comparison.baseline.name, str(result.num_problems), turn]
            accuracy = f"{100 * result.baseline:.1f} → {100 * result.other:.1f}"
            tests = [format_estimate(result.difference), format_p_value(result.p_value)]
            rows.append([*names, accuracy, *tests, str(len(result.gained)), str(len(result.lost))])
    return Table("Against the baseline", "% [95 % interval]", header, rows, num_names=2)
