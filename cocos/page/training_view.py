"""Training: a run that goes on or has ended, from the log in its folder."""

from pathlib import Path

import pandas as pd
import streamlit as st

from cocos.page.shared import Shared, find_folders, show_code
from cocos.training.run_log import LOG_FILE, charts_of, has_ended, read_log, run_status

REFRESH_S = 3.0


def show(page: Shared) -> None:
    """Show the chosen run, again every few seconds while it goes on."""
    folders = find_folders(page.options.roots, LOG_FILE)
    if not folders:
        st.text(f"There is no training run: no folder has a {LOG_FILE}.")
        return
    name = st.selectbox("Training run", list(folders), key="run")
    interval_s = None if has_ended(read_log(folders[name])) else REFRESH_S
    st.fragment(_show_run, run_every=interval_s)(folders[name])


def _show_run(folder: Path) -> None:
    entries = read_log(folder)
    st.text(run_status(entries))
    if warnings := [f"step {e['step']}: {e['warning']}" for e in entries if "warning" in e]:
        st.warning("Warnings of this run:")
        show_code("\n".join(warnings[-20:]))
    columns = st.columns(2)
    for number, (title, rows) in enumerate(charts_of(entries).items()):
        columns[number % 2].caption(title)
        draw = columns[number % 2].line_chart if len(rows) > 1 else columns[number % 2].scatter_chart
        draw(pd.DataFrame.from_dict(rows, orient="index"), height=220)
    if examples := [entry["examples"] for entry in entries if entry.get("examples")]:
        st.caption("Trajectories of the last batch")
        show_code("\n\n".join(examples[-1]))
