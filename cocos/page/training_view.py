"""Training: runs that go on or have ended, from the logs in their folders."""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from cocos.page.shared import Shared, find_folders, show_code, show_error
from cocos.training.run_log import LOG_FILE, charts_of, has_ended, read_log, run_status

REFRESH_S, MAX_RUNS = 3.0, 4
# Names of metrics -> words of a legend, which has room for few.
LEGEND = (
    (r"(?:eval_)?i2c_t(\d+)_t(\d+)", r"repaired (i→c) \1 to \2"),
    (r"(?:eval_)?c2i_t(\d+)_t(\d+)", r"spoilt (c→i) \1 to \2"),
    (r"(?:eval_)?repeated_t(\d+)_t(\d+)", r"all, \1 to \2"),
    (r"(?:eval_)?repeated_wrong_t(\d+)_t(\d+)", r"wrong ones, \1 to \2"),
    (r"(?:eval_)?(?:reward|acc|entropy|kl)_t(\d+)", r"turn \1"),
    (r"time/(\w+)_s", r"\1"),
    (r"eval_loss", "dev"),
)
SHORT_LEGEND = 22  # characters, of which two columns fit on a phone
NOTHING = 1e-6  # a loss of RLOO is 0 but for rounding, and so is the KL without --beta: no chart


def show(page: Shared) -> None:
    """Show the chosen runs, again every few seconds while one goes on."""
    folders = find_folders(page.options.roots, LOG_FILE)
    if not folders:
        st.text(f"There is no training run: no folder has a {LOG_FILE}.")
        return
    names = st.multiselect(
        "Training runs",
        list(folders),
        list(folders)[:1],
        max_selections=MAX_RUNS,
        key="training",
        help="The latest first. Several are drawn into the same charts.",
    )
    chosen = {name: folders[name] for name in names}
    goes_on = not all(has_ended(read_log(folder)) for folder in chosen.values())
    st.fragment(_show_runs, run_every=REFRESH_S if goes_on else None)(chosen)


def _show_runs(folders: Mapping[str, Path]) -> None:
    logs = {name: read_log(folder) for name, folder in folders.items()}
    for name, entries in logs.items():
        st.text(f"{name}: {run_status(entries)}" if len(logs) > 1 else run_status(entries))
        if warnings := [f"step {e['step']}: {e['warning']}" for e in entries if "warning" in e]:
            st.warning("Warnings of this run:")
            show_code("\n".join(warnings[-20:]))
    columns = st.columns(2)
    short_names = names_in_legends(list(logs))
    charts = charts_of_runs({short_names[name]: entries for name, entries in logs.items()})
    for number, (title, rows) in enumerate(charts.items()):
        column = columns[number % 2]
        column.caption(title)
        column.altair_chart(chart_of(title, rows, len(logs)))
    for name, entries in logs.items():
        if examples := [entry["examples"] for entry in entries if entry.get("examples")]:
            words = "Trajectories of the last batch"
            st.text(f"{words} of {name}" if len(logs) > 1 else words)
            show_code("\n\n".join(examples[-1]))
        _show_settings(folders[name])


def charts_of_runs(logs: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[int, dict[str, float]]]:
    """Return title -> step -> legend -> value of the charts of one run or several, without those of zeros."""
    charts: dict[str, dict[int, dict[str, float]]] = {}
    for run, entries in logs.items():
        for title, rows in charts_of(entries).items():
            if all(abs(value) < NOTHING for row in rows.values() for value in row.values()):
                continue
            for step, row in rows.items():
                legends = {legend(name, run if len(logs) > 1 else ""): value for name, value in row.items()}
                charts.setdefault(title, {}).setdefault(step, {}).update(legends)
    return charts


def names_in_legends(names: Sequence[str]) -> dict[str, str]:
    """Return the path of each run without what all of them share: a legend has room for few words."""
    shared = os.path.commonpath(names) if len(names) > 1 else ""
    return {name: os.path.relpath(name, shared or ".") for name in names}


def chart_of(title: str, rows: Mapping[int, Mapping[str, float]], num_runs: int) -> alt.Chart:
    """Return a chart with a curve per legend, which stands below it in full."""
    # Names of runs are values and no columns: the colon in a column's name would be read as its type.
    points = [(step, value, curve) for step, row in sorted(rows.items()) for curve, value in row.items()]
    data = pd.DataFrame(points, columns=["update", "value", "curve"])
    curves = data["curve"].nunique()
    num_columns = 2 if data["curve"].str.len().max() <= SHORT_LEGEND else 1
    below = alt.Legend(orient="bottom", title=None, columns=num_columns, labelLimit=0)
    return (
        alt.Chart(data)
        .mark_line(point=len(rows) == 1)  # a line of one point is not seen
        .encode(
            x=alt.X("update:Q", title=None, axis=alt.Axis(tickMinStep=1, grid=False)),
            y=alt.Y("value:Q", title=None),
            color=alt.Color("curve:N", legend=below if max(curves, num_runs) > 1 else None),
            tooltip=["update:Q", "value:Q", "curve:N"],
        )
        .properties(height=200 + 20 * math.ceil(curves / num_columns), description=title)
    )


def legend(metric: str, run: str = "") -> str:
    """Return the words for a metric in a legend; `run` is named if there are several."""
    for pattern, words in LEGEND:
        metric = re.sub(f"^{pattern}$", words, metric)
    return f"{metric}, {run}" if run else metric


def _show_settings(folder: Path) -> None:
    """Show the options of a run, folded."""
    path = folder / "run.json"
    if not path.is_file():
        return
    with st.expander(f"Settings of {folder.name}"):
        try:
            options = json.loads(path.read_text(encoding="utf-8"))["options"]
        except (ValueError, KeyError) as error:
            show_error("run.json cannot be read", error)
            return
        set_ones = {name: value for name, value in options.items() if value not in (None, "", [], False)}
        show_code("\n".join(f"{name}: {value}" for name, value in set_ones.items()))
