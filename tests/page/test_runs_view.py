"""Runs, in this process without a browser: the evaluation with which the others are compared."""

import os

import pytest

from tests.page.test_try import opened
from tests.support.report import PASSED, evaluated, numbered

pytestmark = pytest.mark.processes


def test_the_oldest_run_is_the_baseline_until_the_visitor_chooses_one(monkeypatch, tmp_path):
    names = [str(tmp_path / name) for name in ("first", "second", "third")]
    for seconds, name in enumerate(names):
        folder = evaluated(tmp_path / name, numbered((PASSED, PASSED)))
        for path in folder.iterdir():
            os.utime(path, (1e9 + seconds, 1e9 + seconds))
    page = opened(monkeypatch, tmp_path)
    page.segmented_control(key="view").set_value("Runs").run()
    page.multiselect(key="runs").set_value([names[2], names[1]]).run()
    assert page.selectbox(key="baseline").value == names[1]
    page.multiselect(key="runs").set_value(names[::-1]).run()  # an older run is added later
    assert page.selectbox(key="baseline").value == names[0]
    page.selectbox(key="baseline").set_value(names[2]).run()
    page.multiselect(key="runs").set_value([names[1], names[2]]).run()
    assert page.selectbox(key="baseline").value == names[2]
    page.multiselect(key="runs").set_value(names[:2]).run()  # without the chosen one
    assert page.selectbox(key="baseline").value == names[0]
