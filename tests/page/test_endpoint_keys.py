"""The keys that Try sends to an endpoint; the page runs in this process, without a browser."""

import json
import sys
import time
from dataclasses import asdict

import pytest
from streamlit.testing.v1 import AppTest

from cocos.page.page_options import PageOptions
from tests.support.endpoint_server import serve, streamed
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes
ANSWER = "```python\ndef f(x):\n    return x\n```"


@pytest.fixture
def endpoint():
    with serve() as endpoint:
        endpoint.behaviours = [streamed(ANSWER[:9], ANSWER[9:])]
        yield endpoint


def opened(monkeypatch, tmp_path, **options):
    """Return the page, with a problem typed and an endpoint chosen."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-owner")
    options = PageOptions(roots=[str(tmp_path)], executor_workers=1, **options)
    monkeypatch.setattr(sys, "argv", ["app.py", json.dumps(asdict(options))])
    page = AppTest.from_file(ROOT / "cocos/page/app.py", default_timeout=180).run()
    page.text_area(key="text").input("Return the argument.")
    page.text_area(key="tests").input("assert f(1) == 1")
    return page


def labelled(widgets, label):
    [found] = [widget for widget in widgets if widget.label == label]
    return found


def solve(page):
    """Play one attempt and return the texts of the page."""
    labelled(page.text_input, "Name of the model at the endpoint").input("m")
    labelled(page.selectbox, "Protocol").select("chat")
    labelled(page.number_input, "Attempts").set_value(1)
    page.button(key="solve").click().run()
    while not page.get("download_button"):
        time.sleep(0.1)
        page.run()
    return [element.value for element in page.text]


def test_an_address_of_the_owner_gets_the_owners_key(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, base_urls=[endpoint.base_url])
    assert any(line.startswith("1 of 1 tests pass") for line in solve(page))
    assert endpoint.keys == ["of-the-owner"] and endpoint.bodies[0]["stream"] is True


def test_an_address_that_a_visitor_types_gets_the_key_that_is_typed_and_no_other(
    endpoint, monkeypatch, tmp_path
):
    page = opened(monkeypatch, tmp_path)
    labelled(page.text_input, "Other address, up to /v1").input(endpoint.base_url)
    solve(page)
    labelled(page.text_input, "API key, kept in memory only").input("of-the-visitor")
    page.button(key="solve").click().run()
    while len(endpoint.keys) < 2:
        time.sleep(0.1)
    assert endpoint.keys == ["none", "of-the-visitor"]


def test_a_visitor_from_elsewhere_types_no_address(monkeypatch, tmp_path):
    options = {"allow_remote": True, "address": "0.0.0.0", "base_urls": ["http://127.0.0.1:1/v1"]}
    page = AppTest.from_file(ROOT / "cocos/page/app.py", default_timeout=180)
    page.session_state["is_admitted"] = True
    values = asdict(PageOptions(roots=[str(tmp_path)], executor_workers=1, **options))
    monkeypatch.setattr(sys, "argv", ["app.py", json.dumps(values)])
    assert labelled(page.run().selectbox, "Address").options == ["http://127.0.0.1:1/v1"]


def test_a_new_model_does_not_change_the_chosen_one(monkeypatch, tmp_path):
    def save(name):
        for file in ("config.json", "model.safetensors"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).touch()

    save("first"), save("second")
    page = opened(monkeypatch, tmp_path)
    chosen = str(tmp_path / "first")
    page.selectbox(key="model").select(chosen).run()
    save("third")
    assert page.run().selectbox(key="model").value == chosen
    assert len(page.selectbox(key="model").options) == 4  # three models and an endpoint


def test_a_text_beyond_the_limit_is_not_accepted_whatever_the_browser_sends(monkeypatch, tmp_path):
    monkeypatch.setattr("cocos.page.form.MAX_CHARACTERS", 18)
    page = opened(monkeypatch, tmp_path)
    page.button(key="solve").click().run()
    texts = [element.value for element in page.text]
    assert any("the description is empty" in text for text in texts)  # 20 characters were sent
    assert page.session_state["tests"] == "assert f(1) == 1"  # 16 characters
