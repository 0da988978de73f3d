"""report.html: safe against model output, and usable in a browser."""

import base64
import hashlib
import json
import re
import sys
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.report.comparisons import compare_runs
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.html_report import page_parts
from cocos.report.report_files import save_report
from cocos.trajectories import Trajectory, Turn
from tests.support.browser import resize, start_browser, unnamed_controls
from tests.support.commands import succeed
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, numbered, trajectory

ATTACK = "</script><img src=x onerror=\"document.title='owned'\"><!-- <script> ]]> &lt;b&gt; {{script}}"
RIGHT = ExecutionResult((Verdict(Status.PASSED),) * 2)
WRONG = ExecutionResult(
    (
        Verdict(Status.PASSED),
        Verdict(Status.FAILED, "AssertionError", "expected 4, got 3", expected="4", actual="3"),
    )
)
ATTACKED = ExecutionResult(
    (Verdict(Status.ERROR, ATTACK, ATTACK, expected=ATTACK, actual=ATTACK, in_child_reason=ATTACK),) * 2
)
TESTS = ("assert f(0) == 0", "assert f(2) == 4")
HALF = "def f(x):\n    # twice\n    return x + 1"
WHOLE = "def f(x):\n    # twice\n    return x * 2"


def answered(
    task_id: str, *turns: tuple[ExecutionResult, str], text: str = "Write f.", **flags
) -> Trajectory:
    """Return a trajectory with two tests, the second hidden; each completion is a program and [DONE]."""
    problem = Problem(task_id, text, TESTS[:1], hidden_test_list=TESTS[1:])
    taken = [
        Turn((1,), Completion((1, 2), f"{code}\n[DONE]", **flags), code, result) for result, code in turns
    ]
    return Trajectory(problem, 0, tuple(taken))


# 45 trajectories: 20 stay right, 15 are repaired, 1 is spoilt, 6 repeat a wrong program, and three special cases.
ROWS = [
    *[answered(f"kept-{i}", (RIGHT, WHOLE), (RIGHT, WHOLE)) for i in range(20)],
    *[answered(f"repaired-{i}", (WRONG, HALF), (RIGHT, WHOLE), text="Double a number.") for i in range(15)],
    answered("spoilt", (RIGHT, WHOLE), (WRONG, HALF)),
    *[answered(f"wrong-{i}", (WRONG, HALF), (WRONG, HALF)) for i in range(6)],
    answered("attack" + ATTACK, (ATTACKED, ATTACK), (ATTACKED, ATTACK * 2), text=ATTACK),
    answered("cut", (WRONG, "def f(x):\n    return '\u202e\ud800"), (WRONG, ""), is_truncated=True),
    answered("failed", (INFRA_FAILURE, HALF), (RIGHT, WHOLE)),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the page of one evaluation."""
    folder = evaluated(tmp_path_factory.mktemp("runs") / f"run {ATTACK.replace('/', '|')}", ROWS)
    save_report(Report(load_runs([folder])), folder)
    return folder / "report.html"


class Reader(HTMLParser):
    """Elements with their attributes, and the text of each script, as a browser's parser sees them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.is_script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.is_script = tag == "script"
        if self.is_script:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.is_script = False

    def handle_data(self, data):
        if self.is_script:
            self.scripts[-1] += data


# -- the file --


def test_model_output_becomes_neither_an_element_nor_a_script_nor_a_handler(page):
    read = Reader(page.read_text(encoding="utf-8"))
    assert len(read.scripts) == 2  # the rows and our own
    assert not [tag for tag, _ in read.elements if tag in ("img", "iframe", "object", "embed", "link")]
    names = {name for _, attributes in read.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}


def test_the_page_loads_nothing_and_allows_no_script_but_its_own(page):
    text = page.read_text(encoding="utf-8")
    read = Reader(text)
    addresses = [
        v for _, a in read.elements for k, v in a.items() if k in ("src", "href", "xlink:href", "action")
    ]
    assert addresses and all(address.startswith("#") for address in addresses)
    assert not re.findall(r"@import|url\((?!#)", text.split('id="samples"')[0])
    [policy] = [a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(read.scripts[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_the_page_contains_the_rows_of_samples_jsonl(page):
    rows = json.loads(Reader(page.read_text(encoding="utf-8")).scripts[0])["rows"]
    assert [row["task_id"] for row in rows] == [row.problem.task_id for row in ROWS]
    for row, played in zip(rows, ROWS, strict=True):
        for shown, turn in zip(row["turns"], played.turns, strict=True):
            assert shown["code"] == turn.code
            whole = shown["code"].join(shown["around"]) if "around" in shown else shown["completion"]
            assert whole == turn.completion.text
            assert shown.get("is_right", False) == turn.result.all_passed
            statuses = ["passed" if verdict == 1 else verdict["status"] for verdict in shown["verdicts"]]
            assert statuses == [verdict.status for verdict in turn.result.verdicts]
    assert rows[-1]["turns"][0]["infra_error"] == "the worker died"


def test_every_chart_has_a_text_with_numbers_and_the_page_has_a_main_part(page):
    text = page.read_text(encoding="utf-8")
    labels = [a["aria-label"] for tag, a in Reader(text).elements if tag == "svg"]
    assert len(labels) == 6
    # 44 are scored: 21 are right at turn 1, 15 of the others are repaired, and 1 is spoilt.
    assert labels[0].startswith("Accuracy after each turn: run ") and labels[0].endswith(" 47.7, 79.5 %.")
    assert labels[1].startswith("Accuracy against sampled tokens: run ")
    assert labels[2].endswith("from turn to turn: turn 1 to 2: 34.1 % repaired, 2.3 % spoilt.")
    assert "Tokens and seconds of each problem, median: 4 tokens, 0 s;" in labels[5]
    assert text.count("<main>") == text.count("</main>") == 1


def test_the_requests_of_many_turns_are_few_templates_from_which_each_can_be_read(tmp_path):
    def asked(number):
        first = f"Task: write f{number}.\n\nassert f({number})\n\n[BEGIN]"
        later = f"Fails: f({number})\n\nRepair it."
        problem = Problem(str(number), f"write f{number}.", (f"assert f({number})",))
        turns = numbered((FAILED, FAILED))[0].turns
        played = (
            replace(turns[0], request=first),
            replace(turns[1], request=later, feedback=f"Fails: f({number})"),
        )
        return Trajectory(problem, 0, played)

    played = [asked(number) for number in range(20)]
    page = "".join(page_parts(Report(load_runs([evaluated(tmp_path / "a", played)])), None))
    content = json.loads(Reader(page).scripts[0])
    assert content["templates"] == ["Task: \ue000\n\n\ue001\n\n[BEGIN]", "\ue002\n\nRepair it."]
    for row, one in zip(content["rows"], played, strict=True):
        for shown, turn in zip(row["turns"], one.turns, strict=True):
            template = content["templates"][shown["request"]]
            filled = template.replace("\ue002", shown["feedback"]).replace("\ue001", "\n".join(row["tests"]))
            assert filled.replace("\ue000", row["text"]) == turn.request


def test_rows_are_copied_into_the_page_one_at_a_time(tmp_path):
    rows = [trajectory(str(i), FAILED, text="x" * 20_000) for i in range(400)]
    [run] = load_runs([evaluated(tmp_path / "run", rows)])
    sum(
        map(len, page_parts(Report([run]), None))
    )  # compiles the templates, so that their memory is not measured
    del rows
    tracemalloc.start()
    size = sum(map(len, page_parts(Report([run]), None)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 8e6
    assert peak < 2e6


# -- in a browser --


def written(runs, comparisons, folder):
    """Write the page without charts, and return its path."""
    (folder / "report.html").write_text(
        "".join(page_parts(Report(runs, comparisons), None)), encoding="utf-8"
    )
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    running = start_browser()
    yield running
    running.quit()


@pytest.fixture
def opened(browser, page):
    """Load the page anew."""
    return open_page(browser, page)


def open_page(browser, path, width=1280):
    resize(browser, width)
    browser.get("about:blank")
    browser.get(path.as_uri())
    return browser


def elements(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    return [element.text for element in elements(browser, selector)]


def click(browser, selector, text=None):
    [found] = [e for e in elements(browser, selector) if text is None or e.text.startswith(text)]
    found.click()


def choose(browser, name, label):
    [option] = [option for option in elements(browser, f"#{name} option") if option.text == label]
    option.click()


def listed(browser):
    return [task_id.split()[0] for task_id in texts(browser, ".trajectory .id")]


def test_the_flow_filter_lists_the_repaired_and_counts_every_flow(opened):
    assert texts(opened, ".flows button") == [
        *("all 45", "wrong → wrong 8", "wrong → right 15", "right → wrong 1", "right → right 20")
    ]
    assert opened.find_element("id", "status").text == "1 to 25 of 45 trajectories"
    click(opened, ".flows button", "wrong → right")
    assert listed(opened) == [f"repaired-{i}" for i in range(15)]
    click(opened, ".flows button", "right → wrong")
    assert listed(opened) == ["spoilt"]
    assert texts(opened, ".trajectory .path") == ["✓\n✗"] or texts(opened, ".trajectory .path") == ["✓✗"]
    click(opened, "#clear")
    assert opened.find_element("id", "status").text == "1 to 25 of 45 trajectories"
    assert console(opened) == []


def test_the_list_has_pages(opened):
    assert not opened.find_element("id", "previous").is_enabled()
    click(opened, "#next")
    assert opened.find_element("id", "status").text == "26 to 45 of 45 trajectories"
    assert listed(opened)[0] == "repaired-5" and len(listed(opened)) == 20
    assert not opened.find_element("id", "next").is_enabled()
    click(opened, "#previous")
    assert listed(opened)[0] == "kept-0"


def test_the_search_covers_tasks_programs_and_messages(opened):
    field = opened.find_element("id", "search")
    field.send_keys("DOUBLE a")
    assert set(listed(opened)) == {f"repaired-{i}" for i in range(15)}
    click(opened, "#clear")
    field.send_keys("got 3")
    assert opened.find_element("id", "status").text == "1 to 23 of 23 trajectories"  # 15 + 1 + 6, and cut
    click(opened, "#clear")
    field.send_keys("no such thing")
    assert opened.find_element("id", "status").text == "No trajectory matches; clear a filter."
    assert listed(opened) == [] and console(opened) == []


def test_the_list_is_filtered_by_mark_and_by_error(opened):
    choose(opened, "mark", "truncated")
    assert listed(opened) == ["cut"]
    choose(opened, "mark", "infrastructure failure")
    assert listed(opened) == ["failed"]
    choose(opened, "mark", "in_child verdict")
    assert listed(opened) == [("attack" + ATTACK).split()[0]]
    choose(opened, "mark", "same program again")
    assert opened.find_element("id", "status").text == "1 to 25 of 26 trajectories"  # kept and wrong
    choose(opened, "mark", "any")
    click(opened, ".errors button", "AssertionError")
    assert opened.find_element("id", "error").get_attribute("value") == "=AssertionError"
    assert opened.find_element("id", "status").text == "1 to 23 of 23 trajectories"
    assert console(opened) == []


def test_a_repair_shows_its_diff_its_verdicts_and_the_expected_value(opened):
    click(opened, ".flows button", "wrong → right")
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    assert texts(opened, ".turn h4") == [
        "turn 1\nwrong, AssertionError\n1 of 2 tests\nfails hidden tests only",
        "turn 2\nright\n2 of 2 tests",
    ]
    first, second = elements(opened, ".turn")
    assert [e.text for e in first.find_elements("css selector", ".tests dd")] == ["4", "3"]
    assert "hidden from the model" in first.find_elements("css selector", ".tests li")[1].text
    assert [e.text for e in second.find_elements("css selector", "del")] == ["-    return x + 1"]
    assert [e.text for e in second.find_elements("css selector", "ins")] == ["+    return x * 2"]
    assert [e.text for e in second.find_elements("css selector", "ins mark")] == ["*", " ", "2"]
    [button] = [b for b in second.find_elements("css selector", ".views button") if b.text == "completion"]
    button.click()
    assert second.find_element("css selector", "pre").text.endswith("return x * 2\n[DONE]")
    assert [e.text for e in first.find_elements("css selector", ".keyword")][:2] == ["def", "return"]
    assert first.find_element("css selector", ".comment").text == "# twice"
    assert console(opened) == []


def test_a_thought_is_folded_and_its_tokens_are_counted_apart(browser, tmp_path):
    thinking = answered("1", (RIGHT, WHOLE), thought="<think>Twice.</think>", num_thought_tokens=1)
    opened = open_page(browser, written(load_runs([evaluated(tmp_path / "a", [thinking])]), [], tmp_path))
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    assert texts(opened, ".turn .meta")[0].startswith("2 tokens (1 of a thought), ")
    assert "Twice" not in opened.find_element("css selector", ".turn").text
    click(opened, ".views button", "thought")
    assert texts(opened, ".turn pre") == ["<think>Twice.</think>"]
    assert console(opened) == []


def test_model_output_is_shown_as_text_and_runs_nothing(opened):
    opened.find_element("id", "search").send_keys("onerror=")
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    assert ATTACK in opened.find_element("css selector", ".turn pre").text
    assert opened.find_element("css selector", ".task").text == ATTACK
    assert f"in_child: {ATTACK}" in opened.find_element("css selector", ".tests li").text
    assert elements(opened, "img") == [] and opened.title != "owned"
    assert console(opened) == []


def test_characters_that_hide_or_reverse_text_are_made_visible(opened):
    choose(opened, "mark", "truncated")
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    # In turn 1, and removed in turn 2
    assert texts(opened, ".turn .invisible") == ["⟨U+202E⟩", "⟨U+D800⟩"] * 2
    assert console(opened) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser, page, width):
    opened = open_page(browser, page, width)
    click(opened, ".flows button", "wrong → right")
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    for details in elements(opened, "section details:not(.trajectory) > summary"):
        details.click()
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    assert console(opened) == []


def test_a_printed_page_has_the_numbers_and_no_controls(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = {
        s: elements(opened, s)[0].is_displayed()
        for s in ("#filters", ".pages", "header nav", ".numbers", "#list")
    }
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == {"#filters": False, ".pages": False, "header nav": False, ".numbers": True, "#list": True}


def test_every_control_can_be_reached_with_the_keyboard_and_has_a_name(opened):
    assert unnamed_controls(opened) == []
    from selenium.webdriver import Keys

    first = elements(opened, ".trajectory summary")[0]
    opened.execute_script("arguments[0].focus()", first)
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(opened, ".turn")
    opened.switch_to.active_element.send_keys(Keys.TAB)
    assert opened.switch_to.active_element.tag_name == "button"


def test_gained_and_lost_problems_link_to_their_trajectories_in_both_runs(browser, tmp_path):
    a = evaluated(tmp_path / "a", numbered((FAILED, FAILED), (PASSED, PASSED), (PASSED, PASSED)))
    b = evaluated(tmp_path / "b", numbered((PASSED, PASSED), (FAILED, FAILED), (PASSED, PASSED)))
    runs = load_runs([a, b])
    opened = open_page(browser, written(runs, compare_runs(runs), tmp_path))
    gained, lost = elements(opened, "#comparison details")
    assert [d.text for d in (gained, lost)] == [
        "1 problem gained at the last turn",
        "1 problem lost at the last turn",
    ]
    lost.find_element("css selector", "summary").click()
    lost.find_element("css selector", "button").click()
    assert texts(opened, ".trajectory .id") == ["1 a", "1 b"]
    click(opened, "#only")
    # Attempts at one problem stand together, and its text stands once.
    assert texts(opened, ".trajectory .id") == [f"{n} {run}" for n in range(3) for run in "ab"]
    assert texts(opened, ".trajectory .gist") == ["t", ""] * 3 and console(opened) == []


def test_a_large_run_is_shown_one_page_at_a_time(browser, tmp_path):
    rows = [
        answered(f"p{i}", *[(WRONG if (i + t) % 3 else RIGHT, f"x = {t}\n" * 40) for t in range(5)])
        for i in range(500)
    ]
    runs = load_runs([evaluated(tmp_path / "large", rows)])
    opened = open_page(browser, written(runs, [], tmp_path), 390)
    assert opened.find_element("id", "status").text == "1 to 25 of 500 trajectories"
    assert opened.execute_script("return document.querySelectorAll('*').length") < 3000
    opened.find_element("id", "search").send_keys("p499")
    assert listed(opened) == ["p499"] and console(opened) == []


@pytest.mark.processes
@pytest.mark.nightly
def test_an_evaluation_of_the_toy_over_five_turns_writes_a_working_page(browser, tmp_path):
    words = ("--config", "configs/toy/eval.yaml", "--model_name_or_path", "data/toy/base")
    words += ("--num_turns", 5, "--limit", 24, "--output_dir", tmp_path / "base")
    succeed(sys.executable, "test.py", *words)
    metrics = json.loads((tmp_path / "base/metrics.json").read_text())["metrics"]
    opened = open_page(browser, tmp_path / "base/report.html", 390)
    shares = [f"{100 * metrics[f'acc_t{turn}']['value']:.1f}" for turn in range(1, 6)]
    assert texts(opened, "#accuracy table.numbers td:nth-child(2) b") == shares
    assert [figure.size["width"] > 300 for figure in elements(opened, "figure svg")] == [True] * 6
    assert len(elements(opened, ".trajectory")[0].find_elements("css selector", ".mark")) == 5
    elements(opened, ".trajectory summary")[0].click()
    wait_for(opened, ".turn")
    assert len(elements(opened, ".turn")) == 5 and console(opened) == []


def wait_for(browser, selector):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda _: elements(browser, selector))


def console(browser):
    """Return the messages in the browser's console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]
