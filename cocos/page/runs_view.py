"""Runs: the report on finished evaluations, in a frame and as a page of its own."""

import hmac
from urllib.parse import urlencode

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from cocos.page.shared import Shared, find_folders
from cocos.report.comparisons import compare_runs
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import report_page

FILES, MAX_RUNS, FRAME_HEIGHT = ("metrics.json", "run.json", "samples.jsonl"), 6, 1600


def show(page: Shared) -> None:
    """Show the report on the chosen runs."""
    folders = find_folders(page.options.roots, *FILES)
    names = st.multiselect("Evaluations", [*folders], [*folders][:1], max_selections=MAX_RUNS, key="runs")
    if not names:
        st.text("Choose an evaluation." if folders else "There is no finished evaluation.")
        return
    st.caption("The others are compared with the first one. The report takes some seconds.")
    report = f"/report?{urlencode([('key', page.report_key), *(('run', name) for name in names)])}"
    st.link_button("Full report", report)
    st.iframe(report, height=FRAME_HEIGHT, alt="Report")


def serve_report(page: Shared, request: Request) -> Response:
    """Answer a request of the link to a report."""
    if not hmac.compare_digest(request.query_params.get("key", "").encode(), page.report_key.encode()):
        return PlainTextResponse("The page has another link to this report now.", 403)
    folders = find_folders(page.options.roots, *FILES)
    try:
        runs = load_runs([folders[name] for name in request.query_params.getlist("run")])
        report = b"".join(report_page(Report(runs, compare_runs(runs))))
    except (ValueError, LookupError) as error:
        return PlainTextResponse(f"These evaluations cannot be shown together: {error}", 404)
    # The report gets an origin of its own: its script, the only one that it allows, cannot reach the page.
    return HTMLResponse(report, headers={"Content-Security-Policy": "sandbox allow-scripts"})
