"""Runs: the tables of finished evaluations, their comparison, their trajectories, and their full report."""

import hmac
from collections.abc import Sequence
from itertools import islice
from urllib.parse import urlencode

import pandas as pd
import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from cocos.evaluation.sample_rows import SampleRow
from cocos.page.shared import Shared, find_folders, show_error, show_turns
from cocos.report.finished_runs import FinishedRun, compare_runs, load_runs
from cocos.report.report_files import report_page
from cocos.report.tables import comparison_table, excluded_problems, run_tables

FILES, MAX_RUNS, MAX_LISTED = ("metrics.json", "run.json", "samples.jsonl"), 6, 200


def show(page: Shared) -> None:
    """Show the chosen runs."""
    folders = find_folders(page.options.roots, *FILES)
    names = st.multiselect("Evaluations", [*folders], [*folders][:1], max_selections=MAX_RUNS, key="runs")
    if not names:
        st.text("Choose an evaluation." if folders else "There is no finished evaluation.")
        return
    try:
        runs = load_runs([folders[name] for name in names])
        comparisons = compare_runs(runs)
        for table in run_tables(runs) + ([comparison_table(comparisons)] if comparisons else []):
            st.text(table.heading)
            st.dataframe(pd.DataFrame(list(table.rows), columns=list(table.header)), hide_index=True)
            st.text("\n".join(table.notes))
        st.text("\n".join(excluded_problems(comparisons)))
        query = [("key", page.report_key), *(("run", name) for name in names)]
        st.link_button("Full report", f"/report?{urlencode(query)}")
        _show_trajectories(runs)
    except ValueError as error:
        show_error("These evaluations cannot be shown together", error)


def serve_report(page: Shared, request: Request) -> Response:
    """Answer a request of the link to a full report."""
    if not hmac.compare_digest(request.query_params.get("key", "").encode(), page.report_key.encode()):
        return PlainTextResponse("The page has another link to this report now.", 403)
    folders = find_folders(page.options.roots, *FILES)
    try:
        runs = load_runs([folders[name] for name in request.query_params.getlist("run")])
        report = report_page(runs, compare_runs(runs))
    except (ValueError, LookupError) as error:
        return PlainTextResponse(f"There is no such report: {error}", 404)
    # The report gets an origin of its own: its script, the only one that it allows, cannot reach the page.
    return HTMLResponse(report, headers={"Content-Security-Policy": "sandbox allow-scripts"})


def _show_trajectories(runs: Sequence[FinishedRun]) -> None:
    first, second, third = st.columns(3)
    names = [run.name for run in runs]
    run = runs[names.index(first.selectbox("Trajectories of", names))]
    flow = second.selectbox("First → last attempt", list(FLOWS))
    words = third.text_input("Search in task, program and error", max_chars=200, key="words")
    rows = list(islice((row for row in run.rows() if matches(row, flow, words)), MAX_LISTED + 1))
    st.text(f"{'the first ' * (len(rows) > MAX_LISTED)}{min(len(rows), MAX_LISTED)} trajectories")
    if rows:
        show_turns(st.selectbox("Trajectory", rows[:MAX_LISTED], format_func=label))


FLOWS: dict[str, tuple[bool, bool] | None] = {  # whether the first and the last attempt are right
    "all": None,
    "wrong → right": (False, True),
    "right → wrong": (True, False),
    "right → right": (True, True),
    "wrong → wrong": (False, False),
}


def matches(row: SampleRow, flow: str, words: str) -> bool:
    """Return whether a row has this flow, and the words in its task, a program or an error."""
    turns, wanted = row["turns"], FLOWS[flow]
    if wanted is not None and (turns[0]["is_right"], turns[-1]["is_right"]) != wanted:
        return False
    texts = [row["task_id"], row["text"]]
    texts += [text for turn in turns for text in (turn["code"], turn["error_type"] or "")]
    return words.casefold() in "\n".join(texts).casefold()


def label(row: SampleRow) -> str:
    """Return a line such as `✗✓ test-3, sample 0`."""
    marks = "".join("✓" if turn["is_right"] else "✗" for turn in row["turns"])
    return f"{marks} {row['task_id']}, sample {row['sample']}"
