"""Runs: the tables of finished evaluations, their comparison, and their trajectories."""

from collections.abc import Sequence
from functools import partial
from itertools import islice

import pandas as pd
import streamlit as st

from cocos.config.page_options import PageOptions
from cocos.evaluation.row_filter import FLOWS, label, matches
from cocos.files.folder_search import find_folders
from cocos.page.turns_view import show_error, show_turns
from cocos.report.comparison import compare_runs
from cocos.report.finished_runs import FinishedRun, load_runs
from cocos.report.report_files import report_page
from cocos.report.tables import comparison_table, excluded_problems, run_tables

MAX_RUNS, MAX_LISTED = 6, 200


def show(options: PageOptions) -> None:
    """Show the chosen runs."""
    folders = find_folders(options.roots, "metrics.json", "run.json", "samples.jsonl")
    names = st.multiselect("Evaluations", list(folders), list(folders)[:1], max_selections=MAX_RUNS)
    if not names:
        st.text("Choose an evaluation." if folders else "There is no finished evaluation.")
        return
    try:
        runs = load_runs([folders[name] for name in names])
        comparisons = compare_runs(runs)
        for table in [*run_tables(runs), *[comparison_table(comparisons)] * bool(comparisons)]:
            st.text(table.heading)
            st.dataframe(pd.DataFrame(list(table.rows), columns=list(table.header)), hide_index=True)
            st.text("\n".join(table.notes))
        st.text("\n".join(excluded_problems(comparisons)))
        report = partial(report_page, runs, comparisons)
        st.download_button("Full report", report, "report.html", on_click="ignore")
        _show_trajectories(runs)
    except ValueError as error:
        show_error("These evaluations cannot be shown together", error)


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
