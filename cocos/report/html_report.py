"""report.html: one or several evaluations in one file that loads nothing from the network.

Model output, data sets and folder names are untrusted. Jinja escapes them in HTML, its filter `tojson`
escapes them in the JSON from which the page's script reads the trajectories, and the script inserts them as
text nodes only. The page's Content-Security-Policy allows no other script.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cocos.report import page_data
from cocos.report.cells import NO_INTERVAL, NO_INTERVAL_NOTE, format_p_value
from cocos.report.chart_style import GRID, INK
from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun, group_by_conditions
from cocos.report.tables import (
    IN_CHILD_NOTE,
    accuracy_heading,
    excluded_problems,
    further_tables,
)

CHARTS_OF_A_RUN = (
    *("flow", "problems", "errors", "fix_rates", "pass_at_k", "equal_tokens"),
    *("tokens", "generation", "execution"),
)


def save_page(
    runs: Sequence[FinishedRun],
    comparisons: Sequence[RunComparison],
    charts: Mapping[tuple[str, str], str],
    path: Path,
) -> None:
    """Write the page, copying the rows of samples.jsonl into it one at a time.

    Args:
        runs: Finished runs.
        comparisons: Comparisons of the runs with their baselines.
        charts: SVG elements as `chart_files.save_charts` returns them.

    """
    script = _read("programs.js") + _read("trajectories.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    svgs = {key: _in_page_colours(svg) for key, svg in charts.items()}
    template = _environment().get_template("report.html.jinja")
    page = template.generate(
        runs=runs,
        groups=[
            (accuracy_heading(conditions), group, svgs["accuracy", conditions])
            for conditions, group in group_by_conditions(runs).items()
        ],
        further_tables=further_tables(runs),
        comparisons=comparisons,
        excluded=list(excluded_problems(comparisons)),
        charts={
            run.name: [svgs[name, run.name] for name in CHARTS_OF_A_RUN if (name, run.name) in svgs]
            for run in runs
        },
        trajectories=page_data.trajectory_rows(runs),
        style=Markup(_read("report.css")),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )
    # UTF-8 cannot encode a lone surrogate; backslashreplace writes it as JSON's escape \udXXX.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(page)


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
        "in_child_note": IN_CHILD_NOTE,
        "no_interval": NO_INTERVAL,
        "no_interval_note": NO_INTERVAL_NOTE,
    }
    environment.filters["p_value"] = format_p_value
    environment.filters["error_table"] = page_data.error_table
    environment.filters["settings"] = page_data.settings
    return environment


def _read(name: str) -> str:
    return files("cocos.report").joinpath("templates", name).read_text(encoding="utf-8")


def _in_page_colours(svg: str) -> Markup:
    """Replace the chart's text and grid colours with the page's, which follow its light or dark scheme."""
    return Markup(svg.replace(INK, "var(--ink)").replace(GRID, "var(--line)"))
