"""Try, in this process without a browser: the form, what follows the model, a reload, and what comes after."""

import json
import shutil
import sys
import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from cocos.evaluation.trajectory_text import notes, turn_parts, verdicts_text
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.page import live_attempts
from cocos.page.form import ENDPOINT, example_title, models_of, suited_options
from cocos.page.page_options import PageOptions
from cocos.page.shared import in_words_of_the_page
from cocos.page.try_view import program_file
from cocos.problems import Problem, save_problems
from cocos.trajectories import Step, Turn
from tests.support.endpoint_server import serve, streamed
from tests.support.paths import ROOT, TOY
from tests.support.report import PASSED

pytestmark = pytest.mark.processes
RIGHT, WRONG = "def f(x):\n    return 2 * x", "def f(x):\n    return x"
PYTEST_FILE = (
    "import pytest\n\ndef test_double():\n    assert f(2) == 4\n\n"
    "def test_text():\n    with pytest.raises(TypeError):\n        f(None)\n"
)


def fenced(code):
    return streamed("```python\n", f"{code}\n```")


@pytest.fixture
def endpoint():
    with serve() as endpoint:
        yield endpoint


def opened(monkeypatch, root, visitor="a-visitor", **options):
    """Return the page as a visitor sees it who opens it, or loads it again."""
    values = asdict(PageOptions(roots=[str(root)], executor_workers=1, **options))
    monkeypatch.setattr(sys, "argv", ["app.py", json.dumps(values)])
    page = AppTest.from_file(ROOT / "cocos/page/app.py", default_timeout=180)
    page.query_params["visitor"] = visitor
    return page.run()


def labelled(widgets, label):
    [found] = [widget for widget in widgets if widget.label == label]
    return found


def fill(page, tests="assert f(2) == 4", **options):
    page.text_area(key="text").input("Write a function f that doubles a number.")
    page.text_area(key="tests").input(tests)
    labelled(page.text_input, "Name of the model at the endpoint").input("m")
    for name, value in options.items():
        page.number_input(key=name).set_value(value)


def solve(page):
    page.button(key="solve").click().run()
    return until(page, lambda: page.get("download_button"))


def until(page, condition):
    for _ in range(600):
        if condition():
            return page
        time.sleep(0.1)
        page.run()
    raise AssertionError([element.value for element in page.text])


def texts(page):
    return [element.value for element in page.text]


def test_a_right_program_ends_the_attempts_and_the_page_says_at_which(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_urls=[endpoint.base_url])
    fill(page, num_turns=5)
    solve(page)
    assert [element.value for element in page.success] == ["Solved at attempt 2."]
    assert len(endpoint.bodies) == 2 and not page.warning


def test_every_attempt_is_made_without_the_early_end(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT), fenced(WRONG)]
    page = opened(monkeypatch, tmp_path, base_urls=[endpoint.base_url])
    fill(page, num_turns=2)
    page.checkbox(key="early_stop").uncheck()
    solve(page)
    assert [element.value for element in page.warning] == ["Solved at attempt 1, and spoilt at attempt 2."]


def test_a_reload_finds_what_was_typed_and_chosen(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, "one", base_urls=[endpoint.base_url])
    fill(page, tests=PYTEST_FILE, num_turns=4, tokens=77)
    page.selectbox(key="protocol").select("repair")
    page.selectbox(key="agent").select("react")
    page.number_input(key="temperature").set_value(0.5)
    page.run()
    again = opened(monkeypatch, tmp_path, "one", base_urls=[endpoint.base_url])
    assert again.text_area(key="tests").value == PYTEST_FILE
    assert labelled(again.text_input, "Name of the model at the endpoint").value == "m"
    assert [again.selectbox(key=name).value for name in ("protocol", "agent")] == ["repair", "react"]
    assert [again.number_input(key=name).value for name in ("num_turns", "tokens", "temperature")] == [
        4,
        77,
        0.5,
    ]
    other = opened(monkeypatch, tmp_path, "another", base_urls=[endpoint.base_url])
    assert other.text_area(key="tests").value == "" and other.selectbox(key="protocol").value == "chat"


def test_the_tests_of_a_pytest_file_are_the_same_after_a_reload(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, "two", base_urls=[endpoint.base_url])
    fill(page, tests=PYTEST_FILE, num_turns=1)
    assert any(line.startswith("2 of 2 tests pass") for line in texts(solve(page)))
    again = opened(monkeypatch, tmp_path, "two", base_urls=[endpoint.base_url])
    again.button(key="solve").click().run()
    until(again, lambda: len(endpoint.bodies) == 2 and again.get("download_button"))
    assert any(line.startswith("2 of 2 tests pass") for line in texts(again))


def test_another_view_and_back_keeps_the_form(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, "three", base_urls=[endpoint.base_url])
    fill(page, num_turns=3)
    page.run()
    page.segmented_control(key="view").set_value("Training").run()
    page.segmented_control(key="view").set_value("Try").run()
    assert page.text_area(key="tests").value == "assert f(2) == 4"
    assert page.number_input(key="num_turns").value == 3


def test_an_example_is_one_click_and_is_listed_by_the_first_words_of_its_text(monkeypatch, tmp_path):
    examples = tmp_path / "examples.jsonl"
    problem = Problem("7", "Write a function to double.", ("assert f(1) == 2",), entry_point="f")
    save_problems([problem], examples)
    page = opened(monkeypatch, tmp_path, "four", examples=[str(examples)])
    assert labelled(page.selectbox, "Example").options == ["7: f: Write a function to double."]
    page.button(key="fill").click().run()
    assert page.text_area(key="text").value == "Write a function to double."
    assert page.text_area(key="tests").value == "assert f(1) == 2"
    assert example_title(Problem("8", "word " * 40, ())).endswith("word ...")


def test_protocol_feedback_and_attempts_follow_the_model(monkeypatch, tmp_path):
    def model(name, **files):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in {"config.json": {}, "tokenizer_config.json": {}, **files}.items():
            (folder / file).write_text(json.dumps(content))
        (folder / "model.safetensors").touch()
        return str(folder)

    plain = model("plain")
    chat = model("chat", **{"tokenizer_config.json": {"chat_template": "{{ messages }}"}})
    trained = model(
        "trained", **{"run.json": {"options": {"protocol": "cocos", "feedback": "verdict", "num_turns": 4}}}
    )
    alone = {"agent": None}
    assert suited_options(plain) == alone | {"protocol": "cocos", "feedback": "none", "num_turns": 2}
    assert suited_options(chat) == alone | {"protocol": "chat", "feedback": "error", "num_turns": 3}
    assert suited_options(trained) == alone | {"protocol": "cocos", "feedback": "verdict", "num_turns": 4}
    of_agent = model("agent", **{"run.json": {"options": {"protocol": "cocos", "agent": "react"}}})
    assert suited_options(of_agent)["agent"] == "react"
    page = opened(monkeypatch, tmp_path, "five")
    page.selectbox(key="model").select(chat).run()
    assert page.selectbox(key="protocol").options == ["cocos", "chat", "repair", "fix"]
    assert (
        page.selectbox(key="agent").value == "react"
    )  # stays: only a model that was trained with another changes it
    page.selectbox(key="agent").select("none").run()
    assert (page.selectbox(key="protocol").value, page.selectbox(key="feedback").value) == ("chat", "error")
    page.selectbox(key="model").select(plain).run()
    assert page.selectbox(key="protocol").options == ["cocos"]  # a chat would fail once the model is loaded
    assert page.selectbox(key="agent").options == ["none", "reflect", "react"]
    assert page.selectbox(key="feedback").value == "none"


def test_an_adapter_is_offered_if_its_base_is_below_a_root_or_of_the_hub(tmp_path):
    def adapter(name, base):
        folder = tmp_path / "root" / name
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
        (folder / "adapter_model.safetensors").touch()
        return str(folder)

    inside, outside = tmp_path / "root/base", tmp_path / "private"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").touch()
    (tmp_path / "root/half").mkdir()
    (tmp_path / "root/half/generation_config.json").write_text("{}")
    (tmp_path / "root/half/x.safetensors").touch()
    offered = {str(inside), adapter("of root", inside), adapter("of hub", "Qwen/Qwen2.5-Coder-0.5B")}
    for name, base in (("of others", outside), ("up", "../private"), ("gone", "/no/where")):
        adapter(name, base)
    page = SimpleNamespace(options=SimpleNamespace(roots=[str(tmp_path / "root")]))
    assert set(models_of(page)) == offered


def test_own_feedback_and_an_own_program_follow_an_attempt(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, "six", base_urls=[endpoint.base_url])
    fill(page, num_turns=1)
    solve(page)
    assert [element.value for element in page.warning] == ["Not solved after 1 attempt."]
    labelled(page.text_area, "Your program").input(RIGHT)
    labelled(page.button, "Run the tests").click().run()
    assert "1 of 1 tests pass" in texts(page)
    labelled(page.text_area, "Your feedback").input("Twice, not once.")
    labelled(page.button, "Try again").click().run()
    until(page, lambda: page.success)
    assert endpoint.bodies[1]["messages"][-1]["content"].startswith("Twice, not once.")
    assert [element.value for element in page.success] == ["Solved at attempt 2."]
    page.selectbox(key="shown").select_index(0).run()
    assert [element.value for element in page.warning] == ["Not solved after 1 attempt."]
    labelled(page.text_area, "Your program").input("def f(x): return 3 * x").run()
    labelled(page.button, "Let a model repair it").click().run()
    assert page.text_area(key="buggy_code").value == "def f(x): return 3 * x"


def test_own_messages_are_what_the_model_is_asked(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_urls=[endpoint.base_url])
    fill(page)
    page.text_area(key="system").input("Answer in Python.")
    page.text_area(key="first_turn").input("Do: {text} Mind {tests}")
    page.text_area(key="later_turn").input("{feedback} Once more.")
    solve(page)
    first, later = (body["messages"] for body in endpoint.bodies)
    assert [message["content"] for message in first] == [
        "Answer in Python.",
        "Do: Write a function f that doubles a number. Mind assert f(2) == 4",
    ]
    assert later[-1]["content"].endswith("Once more.")
    # A reload keeps them; a placeholder that is none is refused in the words of the page.
    page = opened(monkeypatch, tmp_path, base_urls=[endpoint.base_url])
    assert page.text_area(key="system").value == "Answer in Python."
    page.text_area(key="first_turn").input("Do: {task}").run()
    page.button(key="solve").click().run()
    [reason] = [text for text in texts(page) if "placeholder" in text]
    assert reason.startswith("Own wording: first_turn: unknown placeholder {task}")


def test_two_models_make_their_attempts_beside_each_other(monkeypatch, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(TOY / "base", tmp_path / name)
    page = opened(monkeypatch, tmp_path)
    page.text_area(key="text").input("Write a function f that doubles a number.")
    page.text_area(key="tests").input("assert f(2) == 4")
    page.number_input(key="tokens").set_value(4)
    model = page.selectbox(key="model").value
    other = str(tmp_path / ("two" if model.endswith("one") else "one"))
    page.selectbox(key="second").set_value(other)
    solve(page)
    captions = [element.value for element in page.caption]
    assert captions.index(model) < captions.index(other)
    assert sum(text.startswith("0 of 1 tests pass") for text in texts(page)) == 4  # two attempts of each
    assert page.selectbox(key="shown").options[0] == "1. ✗ Write a function f that doubles a number."


def test_what_follows_two_models_belongs_to_one_of_them(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    shutil.copytree(TOY / "base", tmp_path / "one")
    page = opened(monkeypatch, tmp_path, "nine", base_urls=[endpoint.base_url])
    page.selectbox(key="model").select(ENDPOINT).run()
    fill(page, num_turns=1, tokens=4)
    page.selectbox(key="second").set_value(str(tmp_path / "one"))
    solve(page)
    for number in (1, 0):  # first the local model, then the endpoint
        page.selectbox(key="shown").select_index(1).run()
        feedback = [field for field in page.text_area if field.label == "Your feedback"]
        again = [button for button in page.button if button.label == "Try again"]
        feedback[number].input("Twice, not once.")
        again[number].click().run()
        until(page, lambda: not any(button.label == "Stop" for button in page.button))
        assert len(endpoint.bodies) == 2 - number
    assert [element.value for element in page.success] == ["Solved at attempt 2."]


def test_the_page_says_while_the_model_is_loaded(monkeypatch, tmp_path):
    shutil.copytree(TOY / "base", tmp_path / "one")
    page = opened(monkeypatch, tmp_path, "eight")
    page.text_area(key="text").input("Write a function f that doubles a number.")
    page.text_area(key="tests").input("assert f(2) == 4")
    page.number_input(key="tokens").set_value(4)
    with live_attempts._lock:  # a model that takes long
        page.button(key="solve").click().run()
        assert [element.value for element in page.code] == ["The model is being loaded ..."]
    until(page, lambda: page.get("download_button"))


def test_every_field_has_a_name_and_a_help(monkeypatch, tmp_path):
    page = opened(monkeypatch, TOY, "seven")
    widgets = [*page.text_area, *page.selectbox, *page.number_input, *page.checkbox]
    without = [widget.label for widget in widgets if not (widget.label and widget.help)]
    assert len(widgets) > 10 and without == []


def test_a_message_names_fields_and_not_options():
    message = in_words_of_the_page("--temperature has 3 values, more than --num_turns 2; see --resume")
    assert message == "Temperature has 3 values, more than Attempts 2; see --resume"
    cut_off = notes(Turn((), Completion((), "x", is_truncated=True), "x", PASSED))
    assert in_words_of_the_page(cut_off) == " (cut off at Tokens per attempt)"


@pytest.mark.parametrize("code", ["x = 1", "x = 1\n", "x = 1\n\n"])
def test_a_downloaded_program_ends_with_one_line_end(code):
    assert program_file(code) == b"x = 1\n"


def test_hidden_tests_are_named_and_only_failures_have_an_outcome():
    result = ExecutionResult(
        (Verdict(Status.PASSED), Verdict(Status.FAILED, expected="4", actual="3"), Verdict(Status.PASSED))
    )
    tests = ["assert f(1) == 1", "assert f(2) == 4 ", "assert f(3) == 9"]
    assert verdicts_text(tests, 1, result).split("\n") == [
        "✓ assert f(1) == 1",
        "✗ assert f(2) == 4 (hidden from the model)",
        "    expected 4, got 3",
        "✓ assert f(3) == 9 (hidden from the model)",
    ]


def test_the_reason_of_a_call_and_of_a_refusal_are_in_view():
    call = (
        '<tool_call>{"name": "run_code", "arguments": {"code": "x = 1", "reason": "off by one"}}</tool_call>'
    )

    def shown(text, node):
        turn = Turn((), Completion((), text), "x = 1", PASSED, step=Step(node, 0.0))
        return {part.title: part.text for part in turn_parts(turn, None, [], 0) if not part.is_detail}

    assert shown(call, "run_code")["Reason"] == "off by one"
    assert shown("I cannot.", "refuse")["Refused"] == "it calls no tool"
    assert "Reason" not in shown("I cannot.", "refuse") and "Refused" not in shown(call, "run_code")
