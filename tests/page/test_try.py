"""Try, in this process without a browser: the form, what follows the model, attempts, and their downloads."""

import json
import shutil
import sys
import time
from dataclasses import asdict
from secrets import token_urlsafe

import pytest
from streamlit.testing.v1 import AppTest

from cocos.evaluation.trajectory_text import marked_tests, turn_parts
from cocos.executor import ExecutionResult, ExecutorError, Status, Verdict
from cocos.generation import Completion
from cocos.page import live_attempts
from cocos.page.form import ENDPOINT, example_title, model_title, models_of, own_examples, suited_options
from cocos.page.page_options import PageOptions
from cocos.page.shared import Shared, shared, show_error
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


def opened(monkeypatch, root, visitor="", **options):
    """Return the page as a visitor sees it who opens it, or loads it again."""
    values = asdict(PageOptions(roots=[str(root)], executor_workers=1, **options))
    monkeypatch.setattr(sys, "argv", ["app.py", json.dumps(values)])
    page = AppTest.from_file(ROOT / "cocos/page/app.py", default_timeout=180)
    page.query_params["visitor"] = visitor or token_urlsafe()
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
    return [element.value for element in (*page.text, *page.error)]


def test_a_right_program_ends_the_attempts_and_the_page_says_at_which(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=5)
    solve(page)
    assert [element.value for element in page.success] == ["Solved at attempt 2."]
    assert len(endpoint.bodies) == 2 and not page.warning
    assert not any("no further attempt" in text for text in texts(page))


def test_every_attempt_is_made_without_the_early_end(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT), fenced(WRONG)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=2)
    page.checkbox(key="early_stop").uncheck()
    solve(page)
    assert [element.value for element in page.warning] == ["Solved at attempt 1, and spoilt at attempt 2."]


def test_a_reload_finds_the_attempts_of_the_same_visitor_and_of_no_other(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, "one", base_url=endpoint.base_url)
    fill(page)
    solve(page)
    for visitor, number in (("one", 1), ("another", 0)):
        again = opened(monkeypatch, tmp_path, visitor, base_url=endpoint.base_url)
        assert len(again.success) == number


def test_earlier_problems_of_the_session_are_shown_again(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT), fenced(WRONG)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=1)
    solve(page)
    page.text_area(key="text").input("Double it.")
    page.button(key="solve").click().run()
    until(page, lambda: page.warning)
    session = labelled(page.selectbox, "Problems of this session")
    assert session.options == ["1. Write a function f that doubles a number.", "2. Double it."]
    session.select_index(0).run()
    assert [element.value for element in page.success] == ["Solved at attempt 1."]


def test_each_function_of_a_pytest_file_has_a_verdict(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, tests=PYTEST_FILE, num_turns=1)
    assert any(line.startswith("2 of 2 tests pass") for line in texts(solve(page)))


def test_tests_that_are_none_are_refused_with_their_line(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, tests="assert f(1) == 1\nf(2)")
    page.button(key="solve").click().run()
    assert any("tests, line 2: 'f(2)' is no test" in text for text in texts(page))


def test_another_view_and_back_keeps_the_form(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=3)
    page.run()
    page.segmented_control(key="view").set_value("Runs").run()
    page.segmented_control(key="view").set_value("Try").run()
    assert page.text_area(key="tests").value == "assert f(2) == 4"
    assert page.number_input(key="num_turns").value == 3


def test_a_chosen_example_fills_the_form_and_is_listed_by_the_first_words_of_its_text(monkeypatch, tmp_path):
    examples = tmp_path / "examples.jsonl"
    problem = Problem("7", "Write a function to double.", ("assert f(1) == 2",), entry_point="f")
    save_problems([problem], examples)
    page = opened(monkeypatch, tmp_path, examples=[str(examples)])
    assert labelled(page.selectbox, "Example").options == ["7: f: Write a function to double."]
    labelled(page.selectbox, "Example").select_index(0).run()
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
    again = model("again", **{"run.json": {"options": {"protocol": "cocos", "carry": "nothing"}}})
    transcript, fresh = {"carry": "transcript"}, {"carry": "counterexamples"}
    assert suited_options(plain) == transcript | {"protocol": "cocos", "feedback": "none", "num_turns": 2}
    assert suited_options(chat) == fresh | {"protocol": "chat", "feedback": "error", "num_turns": 3}
    assert suited_options(trained) == transcript | {
        "protocol": "cocos",
        "feedback": "verdict",
        "num_turns": 4,
    }
    assert suited_options(again)["carry"] == "nothing"
    page = opened(monkeypatch, tmp_path)
    page.selectbox(key="model").select(chat).run()
    assert page.selectbox(key="protocol").options == ["cocos", "chat", "repair", "fix"]
    assert page.selectbox(key="agent").options == ["none", "reflect", "react", "tools"]
    assert (page.selectbox(key="protocol").value, page.selectbox(key="feedback").value) == ("chat", "error")
    assert page.number_input(key="num_turns").value == 3
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
    offered.add(adapter("of/relative", "base"))
    for name, base in (("of others", outside), ("up", "../private"), ("gone", "/no/where")):
        adapter(name, base)
    assert set(models_of(PageOptions(roots=[str(tmp_path / "root")]))) == offered


def test_a_model_is_listed_with_the_size_of_its_weights(tmp_path):
    for part in ("model-1.safetensors", "model-2.safetensors"):
        (tmp_path / part).write_bytes(bytes(1_250_000))
    assert model_title(str(tmp_path)) == f"{tmp_path} (2.5 MB)"
    (tmp_path / "adapter_config.json").write_text("{}")
    assert model_title(str(tmp_path)) == f"{tmp_path} (adapter, 2.5 MB)"
    assert model_title(ENDPOINT) == ENDPOINT


def test_an_agent_is_followed_from_node_to_node(endpoint, monkeypatch, tmp_path):
    endpoint.behaviours = [fenced(WRONG), fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=4)
    page.selectbox(key="agent").select("react").run()
    assert page.selectbox(key="feedback").disabled and page.checkbox(key="early_stop").disabled
    solve(page)
    assert [element.value for element in page.success] == ["Solved at attempt 2."]
    badges = " ".join(element.value for element in page.markdown)
    assert badges.count("propose") == 2 and "attempt 2" in badges
    assert [element.value for element in page.caption].count("Feedback before this attempt") == 1


def test_the_owners_endpoint_gets_the_owners_key(endpoint, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-owner")
    endpoint.behaviours = [fenced(RIGHT)]
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, num_turns=1)
    solve(page)
    assert endpoint.keys == ["of-the-owner"] and endpoint.bodies[0]["stream"] is True


def test_without_an_endpoint_only_models_are_offered_and_without_both_the_page_says_so(monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path)
    assert any("There is no model" in text for text in texts(page))
    shutil.copytree(TOY / "base", tmp_path / "one")
    page.run()
    assert page.selectbox(key="model").options == [model_title(str(tmp_path / "one"))]


def test_a_new_model_does_not_change_the_chosen_one(endpoint, monkeypatch, tmp_path):
    def save(name):
        for file in ("config.json", "model.safetensors"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).touch()

    save("first"), save("second")
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    chosen = str(tmp_path / "first")
    page.selectbox(key="model").select(chosen).run()
    save("third")
    assert page.run().selectbox(key="model").value == chosen
    assert len(page.selectbox(key="model").options) == 4  # three models and the endpoint


def test_a_text_that_is_too_long_is_refused_with_its_length_in_the_red_box(endpoint, monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, base_url=endpoint.base_url)
    fill(page, tests="assert f(2) == 4\n" + "#" * 20_000)
    page.button(key="solve").click().run()
    said = "tests: 20,017 characters; at most 20,000 are accepted"
    assert [element.value for element in page.error] == [f"No attempt: ` {said} `"]


def test_a_reason_that_quotes_backticks_is_shown_as_code(monkeypatch):
    shown = []
    monkeypatch.setattr("streamlit.error", shown.append)
    show_error("No attempt", "line 2: '```![a](b) `'\n\n# is no test")
    assert shown == ["No attempt: ```` line 2: '```![a](b) `' # is no test ````"]


def test_the_examples_are_those_of_the_model_or_of_the_one_from_which_it_was_trained(monkeypatch, tmp_path):
    for lab in ("first", "second"):
        (tmp_path / lab / "base").mkdir(parents=True)
        save_problems([Problem("1", lab, ("assert f(1) == 2",))], tmp_path / lab / "test.jsonl")
    sources = [str(tmp_path / lab / "test.jsonl") for lab in ("first", "second")]
    trained = tmp_path / "outputs/cocos"
    for folder, start in ((tmp_path / "outputs/boost", tmp_path / "second/base"), (trained, "outputs/boost")):
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"options": {"model_name_or_path": str(start)}}))
    monkeypatch.chdir(tmp_path)
    chosen = [
        own_examples(str(model), sources) for model in (tmp_path / "first/base", "second/base", trained)
    ]
    assert chosen == [sources[0], sources[1], sources[1]]
    assert own_examples(ENDPOINT, sources) is None


def test_every_model_of_a_fresh_clone_comes_with_its_own_problems(monkeypatch):
    page = opened(monkeypatch, TOY, examples=PageOptions().examples)
    for name in ("base", "feedback/base", "base"):
        page.selectbox(key="model").select(str(TOY / name)).run()
        assert page.selectbox(key="source").value == str((TOY / name).parent.relative_to(ROOT) / "test.jsonl")


def test_a_visitor_from_elsewhere_needs_the_token(monkeypatch, tmp_path):
    page = opened(monkeypatch, tmp_path, address="0.0.0.0")
    label = "Token, from the terminal of the page"
    labelled(page.text_input, label).input("guessed").run()
    assert [element.value for element in page.error] == ["This is not the token."] and not page.text_area
    labelled(page.text_input, label).input(shared(sys.argv[1]).token).run()
    assert page.text_area and not page.error


def test_the_page_refuses_to_start_without_isolation_or_folders():
    with pytest.raises(ExecutorError, match="below the minimum isolation 'seccomp'"):
        Shared(PageOptions(roots=[str(TOY)], sandbox="rlimits"))
    with pytest.raises(ValueError, match="--roots: no folder no/where"):
        PageOptions(roots=["no/where"])
    assert models_of(PageOptions(roots=["no/where"], base_url="http://127.0.0.1:9/v1")) == [ENDPOINT]


def test_an_attempt_at_a_local_model_can_be_downloaded(monkeypatch, tmp_path):
    shutil.copytree(TOY / "base", tmp_path / "one")
    page = opened(monkeypatch, tmp_path)
    page.text_area(key="text").input("Write a function f that doubles a number.")
    page.text_area(key="tests").input("assert f(2) == 4")
    page.number_input(key="max_completion_length").set_value(4)
    solve(page)
    assert sum(text.startswith("0 of 1 tests pass") for text in texts(page)) == 2
    assert "(cut off at --max_completion_length)" in " ".join(texts(page))
    assert len(page.get("download_button")) == 2


def test_the_page_says_while_the_model_is_loaded(monkeypatch, tmp_path):
    shutil.copytree(TOY / "base", tmp_path / "one")
    page = opened(monkeypatch, tmp_path)
    page.text_area(key="text").input("Write a function f that doubles a number.")
    page.text_area(key="tests").input("assert f(2) == 4")
    page.number_input(key="max_completion_length").set_value(4)
    with live_attempts._lock:  # a model that takes long
        page.button(key="solve").click().run()
        assert [element.value for element in page.code] == ["The model is being loaded ..."]
    until(page, lambda: page.get("download_button"))


def test_every_field_has_a_name_and_a_help(monkeypatch, tmp_path):
    page = opened(monkeypatch, TOY)
    widgets = [*page.text_area, *page.selectbox, *page.number_input, *page.checkbox]
    without = [widget.label for widget in widgets if not (widget.label and widget.help)]
    assert len(widgets) > 10 and without == []


@pytest.mark.parametrize("code", ["x = 1", "x = 1\n", "x = 1\n\n"])
def test_a_downloaded_program_ends_with_one_line_end(code):
    assert program_file(code) == b"x = 1\n"


def test_hidden_tests_are_named_and_only_failures_have_an_outcome():
    result = ExecutionResult(
        (Verdict(Status.PASSED), Verdict(Status.FAILED, expected="4", actual="3"), Verdict(Status.PASSED))
    )
    tests = ["assert f(1) == 1", "assert f(2) == 4 ", "assert f(3) == 9"]
    assert marked_tests(tests, 1, result).split("\n") == [
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
