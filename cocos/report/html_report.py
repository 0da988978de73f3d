"""report.html: one or several evaluations in one file that loads nothing from the network.

Model output, data sets and folder names are untrusted. Jinja escapes them in HTML, its filter `tojson`
escapes them in the JSON from which the page's script reads the trajectories, and the script inserts them as
text nodes only. The page's Content-Security-Policy allows no other script.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cocos.evaluation.sample_rows import SampleRow, TurnRow
from cocos.intervals import Estimate
from cocos.report import tables
from cocos.report.contents import Report
from cocos.report.finished_runs import FinishedRun
from cocos.report.summary import differing

if TYPE_CHECKING:  # needs matplotlib
    from cocos.report.charts import Charts


GENERATOR = '<meta name="generator" content="CoCoS-Lab">'  # in the head of every report


def page_parts(report: Report, charts: "Charts | None") -> Iterator[str]:
    """Yield the parts of the page, a row at a time; `charts` are None without matplotlib."""
    script = _read("programs.js") + _read("trajectories.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    templates: dict[str, int] = {}  # filled while the rows are written
    page = _environment().get_template("report.html.jinja")
    return page.generate(
        generator=Markup(GENERATOR),
        report=report,
        runs=report.runs,
        comparisons=report.comparisons,
        charts=charts,
        trajectories=trajectory_rows(report.runs, templates),
        templates=templates,
        style=Markup(_read("report.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cocos.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Jinja's defaults would sort the keys and escape every character beyond ASCII.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.globals |= {
        "in_child_note": tables.IN_CHILD_NOTE,
        "no_interval": tables.NO_INTERVAL,
        "no_interval_note": tables.NO_INTERVAL_NOTE,
        "changed_counts": tables.changed_counts,
        "relative_change": tables.relative_change,
        "differing": differing,
    }
    environment.filters["p_value"] = tables.format_p_value
    environment.filters["accuracy_heading"] = tables.accuracy_heading
    environment.filters["error_rows"] = error_rows
    environment.filters["settings"] = settings
    return environment


def _read(name: str) -> str:
    return files("cocos.report").joinpath("templates", name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class ErrorRow:
    """One error type of a run. A suffix _T marks a list with one entry per turn."""

    error_type: str  # the type as in samples.jsonl; the page filters its trajectories by it
    label: str  # the type in printable characters
    counts_T: Sequence[int]  # number of programs with this error
    # Number of those that the next turn repaired; None at the last turn and for a count of 0.
    num_fixed_T: Sequence[int | None]
    # Share that the next turn repaired; None if the error occurs only at the last turn.
    repaired: Estimate | None


def error_rows(run: FinishedRun) -> list[ErrorRow]:
    """Count the error types of a run at each turn, the most frequent first."""
    rows = []
    for error_type in sorted({error_type for counts in run.metrics["errors"] for error_type in counts}):
        rates = [run.metrics["fix_rates"].get(str(pair), {}).get(error_type) for pair in run.turn_pairs]
        row = ErrorRow(
            error_type=error_type,
            label=tables.printable_error_type(error_type),
            counts_T=[counts.get(error_type, 0) for counts in run.metrics["errors"]],
            num_fixed_T=[*(rate["fixed"] if rate else None for rate in rates), None],
            repaired=run.statistics.repaired(error_type),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: -sum(row.counts_T))


def settings(run: FinishedRun) -> dict[str, Any]:
    """Return run.json as one flat dictionary: options first, versions last."""
    record = {key: value for key, value in run.record.items() if key not in ("options", "versions")}
    return {**run.record["options"], **record, **run.record["versions"]}


def trajectory_rows(runs: Sequence[FinishedRun], templates: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of all runs as the page's script reads them, one at a time.

    The key `run` is the index of the row's run, from 0. Most of a page's size is in its rows, so keys that
    the script does not read are left out, and those whose value is null or false.

    Args:
        templates: Requests without what is in the row elsewhere -> their number, which replaces them.

    """
    for number, run in enumerate(runs):
        for row in run.rows:
            turns = [_turn(turn, row, templates) for turn in row["turns"]]
            yield _compact(_only(row, SHOWN_OF_ROW) | {"turns": turns, "run": number})


SHOWN_OF_ROW = ("task_id", "sample", "text", "tests", "num_visible_tests")
SHOWN_OF_TURN = (
    *("feedback", "code", "is_right", "is_carried", "is_truncated", "is_resampled", "node", "temperature"),
    *("error_type", "infra_error", "num_completion_tokens", "generation_s", "execution_s"),
    *("thought", "num_thought_tokens"),
)
SHOWN_OF_VERDICT = ("status", "error_type", "message", "expected", "actual", "in_child_reason", "ended_at")
# In a request, these stand for the row's task, its visible tests and the turn's feedback.
TASK_MARK, TESTS_MARK, FEEDBACK_MARK = "\ue000", "\ue001", "\ue002"


def _turn(turn: TurnRow, row: SampleRow, templates: dict[str, int]) -> dict[str, Any]:
    """Keep what the page shows, without copies: of the program in the completion, and in the request.

    A verdict of which nothing can be said but that the test has passed is 1.
    """
    verdicts = [_compact(_only(verdict, SHOWN_OF_VERDICT)) for verdict in turn["verdicts"]]
    kept = _only(turn, SHOWN_OF_TURN)
    kept["verdicts"] = [1 if verdict == {"status": "passed"} else verdict for verdict in verdicts]
    if request := turn.get("request", ""):
        tests = "\n".join(row["tests"][: row["num_visible_tests"]])
        for part, mark in ((row["text"], TASK_MARK), (tests, TESTS_MARK), (turn["feedback"], FEEDBACK_MARK)):
            request = request.replace(part, mark) if part else request
        kept["request"] = templates.setdefault(request, len(templates))
    completion, code = turn["completion"], turn["code"]
    if code and code in completion:
        return kept | {"around": completion.split(code, 1)}
    return kept | {"completion": completion}


def _only(values: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


def _compact(value: Any) -> Any:
    """Drop null and false from dictionaries, and round floats to four digits: times to 0.1 ms."""
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items() if item is not None and item is not False}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value
