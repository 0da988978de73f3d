"""Tables and the picture of results in the documentation, made from rows of evaluations.

    python scripts/results.py                   # write the tables of docs/tables.yaml, and the picture
    python scripts/results.py outputs/real      # first add the evaluations below a folder to a CSV file

A table has columns and rows, and stands between its marker lines in a page; docs/tables.yaml explains how
both are written. A new table needs a few lines there, and no code here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import isnan, nan, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import yaml
from matplotlib.figure import Figure
from result_rows import Evaluation, load_csv, merge_csv, read_evaluation

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.markdown import markdown_table
from cocos.intervals import Comparison, Estimate, bootstrap_mean, bounded_mean, compare, share
from cocos.metrics import best_at_k
from cocos.report.chart_style import format_share_axis, run_colour, save_figure
from cocos.report.tables import format_estimate, format_p_value

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # 97.5 % quantiles of Student's t by number of seeds

# Lines of the picture: the evaluation, its name, and where the name stands beside the last point (in points).
CURVES = {
    "five/rate-80-again": ("RL at the published rate, asked again", (-160, 6)),
    "five/boost-again": ("Boost, asked again", (-122, 5)),
    "five/turns-10-again": ("RL over three turns, asked again", (8, 3)),
    "five/again": ("untrained, asked again", (8, -4)),
    "five/single-23-again": ("RL on single attempts, asked again", (8, -6)),
    "five/transcript-sampled": ("untrained, shown its program and the error", (-150, -16)),
}

# A measure, its argument, and a sign to leave the interval out.
COLUMN = re.compile(r"(?P<measure>\w+)(?: (?P<argument>\w+))?(?P<bare> %)?")

Evaluations = Mapping[str, Evaluation]  # by folder


class Row(NamedTuple):
    """A row of a table."""

    labels: list[str]
    evaluations: list[Evaluation]  # one, or the seeds of one arm
    others: dict[str, Evaluation]  # evaluations that it is compared with, by name
    tests: int = 1  # number of paired tests that p-values are corrected for (Bonferroni)
    has_seeds: bool = False  # cells are means over the evaluations


# -- measures of one evaluation: a share, an estimate of one, or another number --


def turn_of(evaluation: Evaluation, turn: str, lowest: int = 1) -> int:
    """Return the index of a turn that a column names: its number from 1, or `last`.

    Raises:
        IndexError: The turn was not played, or is before `lowest`.

    """
    played = len(evaluation.right_T)
    number = played if turn == "last" else int(turn)
    if not lowest <= number <= played:
        raise IndexError(f"turn {turn} of {played}")
    return number - 1


def outcomes(evaluation: Evaluation, turn: str) -> list[list[bool]]:
    """Return whether each sample of each problem is right; their order is not known."""
    word, samples = evaluation.right_T[turn_of(evaluation, turn)], evaluation.samples
    return [[True] * int(right) + [False] * (samples - int(right)) for right in word]


def accuracy(evaluation: Evaluation, turn: str) -> Estimate:
    """Return the share of right programs of a turn."""
    return share(outcomes(evaluation, turn))


def lost(evaluation: Evaluation, turn: str) -> Estimate:
    """Return the share of problems whose program was right in turn 1, and wrong in a later turn."""
    last = evaluation.right_T[turn_of(evaluation, turn, lowest=2)]
    return share([[pair == ("1", "0")] for pair in zip(evaluation.right_T[0], last, strict=True)])


def repeated_wrong(evaluation: Evaluation, turn: str) -> float:
    """Return which share of the programs of a later turn after a wrong one repeats it."""
    index = turn_of(evaluation, turn, lowest=2) - 1
    pairs = zip(evaluation.right_T[index], evaluation.edits.split()[index], strict=True)
    of_wrong = [edit for right, edit in pairs if right == "0" and edit != "-"]
    return of_wrong.count("=") / len(of_wrong) if of_wrong else nan


def best3(evaluation: Evaluation) -> list[float]:
    """Return the unbiased best@3 of each problem: the visible tests choose among 3 programs of turn 1.

    Raises:
        IndexError: A problem has fewer samples.

    """
    if evaluation.samples < 3:
        raise IndexError(f"3 of {evaluation.samples} samples")
    counts = zip(evaluation.visible.split()[0], evaluation.right_T[0], strict=True)
    return [best_at_k(evaluation.samples, int(passed), int(right), 3) for passed, right in counts]


MEASURES: dict[str, Callable[[Evaluation, str], Any]] = {
    "acc": accuracy,
    "lost": lost,
    "wrong_repeated": repeated_wrong,
    "best3": lambda e, _: bounded_mean([[value] for value in best3(e)], 0.0, 1.0),
    "tokens": lambda e, _: f"{e.tokens:.0f}",
}


# -- comparisons of one evaluation with another --


@cache  # a row may show both the difference and its p-value
def paired(evaluation: Evaluation, other: Evaluation) -> Comparison:
    """Compare the last turns problem by problem."""
    both = ({str(n): own for n, own in enumerate(outcomes(e, "last"))} for e in (other, evaluation))
    return compare(*both)


COMPARISONS: dict[str, Callable[[Evaluation, Evaluation], Any]] = {
    "p": lambda e, other: paired(e, other).p_value,
    "gain": lambda e, other: paired(e, other).difference,
    "best3_gain": lambda e, other: bootstrap_mean(
        [own - its for own, its in zip(best3(e), best3(other), strict=True)]
    ),
}


# -- tables --


def cell(row: Row, column: str) -> str:
    """Return a cell; "" if the row lacks the turn, the samples, or what it would be compared with.

    Raises:
        ValueError: The column is not of the form that docs/tables.yaml explains, or its measure is unknown.

    """
    found = COLUMN.fullmatch(column)
    if not found or found["measure"] not in MEASURES | COMPARISONS:
        raise ValueError(f"column {column!r}: unknown; the measures are {', '.join(MEASURES | COMPARISONS)}")
    measure, argument, is_bare = found["measure"], found["argument"] or "", bool(found["bare"])
    if measure in COMPARISONS and argument not in row.others:
        return ""
    try:
        if measure in COMPARISONS:
            value = COMPARISONS[measure](row.evaluations[0], row.others[argument])
            return (
                format_p_value(value and min(1.0, row.tests * value))
                if measure == "p"
                else formatted(value, is_bare)
            )
        values = [MEASURES[measure](evaluation, argument) for evaluation in row.evaluations]
    except IndexError:
        return ""
    if row.has_seeds:
        return mean_and_interval([numeric(value) for value in values])
    return formatted(values[0], is_bare)


def numeric(value: Estimate | float) -> float:
    """Return the value of an estimate, or the number itself."""
    return value.value if isinstance(value, Estimate) else value


def formatted(value: Any, is_bare: bool) -> str:
    """Return a share in percent, with its interval unless it `is_bare`; other values as they are."""
    if isinstance(value, Estimate) and not is_bare:
        return format_estimate(value)
    if isinstance(value, Estimate | float):
        return "" if isnan(numeric(value)) else f"{100 * numeric(value):.1f}"
    return str(value)


def mean_and_interval(values: Sequence[float]) -> str:
    """Return the mean over the seeds, and half the width of its 95 % interval (Student's t), in percent.

    Example: (0.9, 0.8, 0.7) -> 0.8 and 4.303 * 0.1 / sqrt(3) = 0.248, so "80.0 ± 24.8".
    """
    half = T_95[len(values)] * stdev(values) / sqrt(len(values)) if len(values) > 1 else nan
    return f"{100 * mean(values):.1f} ± {100 * half:.1f}"


def matching(evaluations: Evaluations, pattern: str) -> dict[str, list[Evaluation]]:
    """Return the evaluations whose folder fits, by what stands for `{}`; `*` is any one part of a folder.

    Raises:
        ValueError: None fits.

    """
    expression = re.escape(pattern).replace(r"\*", "[^/]+").replace(r"\{\}", "([^/]+)")
    groups: dict[str, list[Evaluation]] = {}
    for folder, evaluation in evaluations.items():
        if found := re.fullmatch(expression, folder):
            groups.setdefault("".join(found.groups()), []).append(evaluation)
    if not groups:
        raise ValueError(f"no evaluation {pattern}; add its row: python scripts/results.py FOLDER")
    return groups


def rows_of(spec: Mapping[str, Any], evaluations: Evaluations) -> Iterator[Row]:
    """Yield the rows of a table."""
    if isinstance(spec["rows"], str):
        for label, own in matching(evaluations, spec["rows"]).items():
            yield Row([label], own, {}, has_seeds="*" in spec["rows"])
        return
    for entry in spec["rows"]:
        folders = {name: folder for name, folder in entry.items() if name not in ("labels", "tests")}
        found = {name: matching(evaluations, folder)[""] for name, folder in folders.items()}
        others = {name: own[0] for name, own in found.items() if name != "of"}
        labels, tests = [str(label) for label in entry["labels"]], entry.get("tests", 1)
        yield Row(labels, found["of"], others, tests, has_seeds="*" in entry["of"])


def measure_table(spec: Mapping[str, Any], evaluations: Evaluations) -> str:
    """Return a table of measures, a row per entry."""
    columns = spec["columns"].values()
    rows = [[*row.labels, *(cell(row, column) for column in columns)] for row in rows_of(spec, evaluations)]
    return markdown_table([*spec["labels"], *spec["columns"]], rows)


# -- the picture --


def token_points(evaluation: Evaluation) -> tuple[list[float], list[float]]:
    """Return the mean sampled tokens and the accuracy after 1, 2, ... programs.

    A row has the tokens of all programs after the first: each of those counts as equally long.
    """
    later = [len(word) - word.count("-") for word in evaluation.edits.split()]
    each = (evaluation.tokens - evaluation.first_tokens) / sum(later)
    tokens = [evaluation.first_tokens + each * sum(later[:turns]) for turns in range(len(later) + 1)]
    return tokens, [accuracy(evaluation, str(turn + 1)).value for turn in range(len(tokens))]


def draw_tokens(figure: Figure, evaluations: Evaluations) -> None:
    """Draw accuracy against tokens: a line per evaluation of CURVES, which ends at its name."""
    axes = figure.subplots()
    for number, (folder, (name, place)) in enumerate(CURVES.items()):
        tokens, shares = token_points(evaluations[folder])
        colour = run_colour(number)
        axes.plot(tokens, shares, color=colour, marker="o")
        text, last = f"{name}: {100 * shares[-1]:.1f}", (tokens[-1], shares[-1])
        axes.annotate(text, last, place, textcoords="offset points", color=colour)
    format_share_axis(axes, "", "sampled tokens per problem, after 1, 2 and 3 programs", (0.3, 0.5))
    axes.set(ylabel="problems solved", xlim=(50, 222))


# -- pages --


def tables(page: Sequence[Mapping[str, Any]], docs: Path = DOCS) -> dict[str, str]:
    """Return every table of a page of docs/tables.yaml by the name in its marker lines."""
    made = {}
    for part in page:
        evaluations = {row.folder: row for row in load_csv(docs / part["evaluations"], Evaluation)}
        for name, spec in part["tables"].items():
            made[name] = measure_table(spec, evaluations)
    return made


def fill(page: str, made: Mapping[str, str]) -> str:
    """Return the page with every table between its marker lines `<!-- NAME -->` and `<!-- end -->`.

    Raises:
        ValueError: The page lacks the marker lines of a table.

    """
    for name, table in made.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (begin and end):
            raise ValueError(f"the page needs the lines '<!-- {name} -->' and '<!-- end -->' around a table")
        page = f"{before}{begin}{table}\n{end}{after}"
    return page


def write_pages(docs: Path = DOCS) -> None:
    """Write the tables into their pages, and the picture."""
    for name, page in yaml.safe_load((docs / "tables.yaml").read_text(encoding="utf-8")).items():
        path = docs / name
        path.write_text(fill(path.read_text(encoding="utf-8"), tables(page, docs)), encoding="utf-8")
        print(f"written: {path}")
    real = {row.folder: row for row in load_csv(docs / "results/real/evaluations.csv", Evaluation)}
    save_figure(partial(draw_tokens, evaluations=real), docs / "results/real/tokens.png", (7.6, 3.2))


def add_evaluations(outputs: Path, path: Path) -> None:
    """Add the finished evaluations below a folder to a CSV file; rows of other folders stay."""
    folders = [metrics.parent for metrics in sorted(outputs.rglob("metrics.json"))]
    folders = [folder for folder in folders if not folder.name.startswith("train-")]  # to select problems
    new = [read_evaluation(folder, str(folder.relative_to(outputs))) for folder in folders]
    print(f"{path}: {len(new)} of {merge_csv(new, path)} rows are from {outputs}")


def main() -> None:
    """Read the command line, add rows and write the tables."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("outputs", type=Path, nargs="?", help="folder whose evaluations are added first")
    parser.add_argument(
        "--csv", type=Path, default=DOCS / "results/real/evaluations.csv", help="file of their rows"
    )
    arguments = parser.parse_args()
    if arguments.outputs:
        add_evaluations(arguments.outputs, arguments.csv)
    write_pages()


if __name__ == "__main__":
    run_command(main)
