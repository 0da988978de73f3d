"""Runs, in this process without a browser: the frame, and what the link to a report answers."""

from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from cocos.page.runs_view import serve_report
from tests.page.test_try import opened
from tests.support.report import FAILED, PASSED, evaluated, numbered

pytestmark = pytest.mark.processes


def test_the_frame_has_the_report_on_the_chosen_evaluations_the_first_of_which_is_the_baseline(
    monkeypatch, tmp_path
):
    names = [str(evaluated(tmp_path / name, numbered((PASSED, PASSED)))) for name in ("a", "b")]
    page = opened(monkeypatch, tmp_path)
    page.segmented_control(key="view").set_value("Runs").run()
    page.multiselect(key="runs").set_value(names[::-1]).run()
    [frame] = page.get("iframe")
    assert frame.proto.src.startswith("/report?key=")
    assert frame.proto.src.endswith(urlencode([("run", name) for name in names[::-1]]))


def test_a_report_is_served_in_a_sandbox_to_whoever_has_the_link(tmp_path):
    names = [str(evaluated(tmp_path / "a", numbered((FAILED, PASSED))))]
    page = SimpleNamespace(report_key="secret", options=SimpleNamespace(roots=[str(tmp_path)]))

    def answer(key, *runs):
        query = urlencode([("key", key), *(("run", name) for name in runs)])
        return serve_report(page, Request({"type": "http", "query_string": query.encode(), "headers": []}))

    report = answer("secret", *names)
    assert report.headers["content-security-policy"] == "sandbox allow-scripts"
    assert report.status_code == 200 and b"acc@t" in report.body
    assert answer("guessed", *names).status_code == 403
    assert answer("secret", str(tmp_path / "b")).status_code == 404
