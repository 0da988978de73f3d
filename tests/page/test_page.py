"""The page in a browser: each view from end to end, hostile text, and what visitors may not do."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.report.finished_runs import load_runs
from cocos.trajectories import Step
from tests.support.browser import choose_scheme, repeat_until, resize, start_browser, unnamed_controls
from tests.support.commands import ENVIRONMENT, complaint, free_port
from tests.support.paths import ROOT, TOY
from tests.support.report import FAILED, PASSED, TYPE_ERROR, evaluated, numbered, trajectory
from tests.support.waiting import wait_until

ATTACK = (
    "</code><img src=x onerror=\"document.title='owned'\"> ![a](http://x.invalid/y.png) <script>1</script>"
)
ATTACKED = ExecutionResult((Verdict(Status.ERROR, ATTACK, ATTACK, expected=ATTACK, actual=ATTACK),))
TASK = "Write a function to find the largest of the squares of the numbers in a list."
TESTS = "assert most([1, 2]) == 4\nassert most([3]) == 9"


@contextmanager
def served(roots, *flags, **environment):
    """Serve the page; yield its address and what it has printed."""
    port = free_port()
    words = [sys.executable, "-m", "cocos.page", "--roots", *map(str, roots), "--port", str(port), *flags]
    with (
        tempfile.NamedTemporaryFile("w+") as output,
        subprocess.Popen(
            words, cwd=ROOT, env={**ENVIRONMENT, **environment}, stdout=output, stderr=output
        ) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or accepts(port), timeout_s=120)
            assert process.poll() is None, pathlib.Path(output.name).read_text()
            yield f"http://127.0.0.1:{port}/", pathlib.Path(output.name).read_text()
        finally:
            process.kill()


def accepts(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def log(folder, step, **entry):
    folder.mkdir(exist_ok=True)
    with open(folder / "log.jsonl", "a") as file:
        file.write(json.dumps({"step": step, "time": time.time(), **entry}) + "\n")


@pytest.fixture(scope="module")
def root(tmp_path_factory, tiny_model):
    """A folder with three evaluations, a training run, and a model that never ends by itself."""
    folder = tmp_path_factory.mktemp("root")
    attacked = trajectory(ATTACK, ATTACKED, ATTACKED, text=ATTACK)
    attacked = replace(attacked, turns=tuple(replace(t, step=Step(ATTACK, 0.0)) for t in attacked.turns))
    evaluated(folder / "attacked", [attacked, *numbered((PASSED, PASSED))])
    evaluated(folder / "other", numbered((PASSED, PASSED), (FAILED, FAILED), (TYPE_ERROR, PASSED)))
    evaluated(folder / "base", numbered((FAILED, FAILED), (FAILED, PASSED), (PASSED, FAILED)))
    log(folder / "training", 1, metrics={"reward_t1": 0.25, "acc_t1": 0.5}, examples=[ATTACK])
    shutil.copytree(tiny_model, folder / "endless")
    return folder


@pytest.fixture(scope="module")
def address(root):
    with served([root, TOY], "--max_visitors", "50") as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser():
    running = start_browser()
    yield running
    running.quit()


@pytest.fixture
def page(browser, address):
    """Open the view Try as a new visitor."""
    resize(browser, 1280)
    return Page(browser, address).open()


class Page:
    """What a visitor does and sees. Elements are replaced while the page is shown, so none is kept."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def open(self, query=""):
        self.browser.get("about:blank")
        self.browser.get(self.address + query)
        self.wait_for("CoCoS-Lab")
        return self

    @property
    def text(self):
        return self.browser.execute_script("return document.body.innerText")

    def wait_for(self, text):
        try:
            wait_until(lambda: text in self.text)
        except AssertionError as error:
            raise AssertionError(f"no {text!r} on the page:\n{self.text}") from error

    def field(self, label):
        found = f'[aria-label="{label}"]'
        return wait_until(lambda: self.browser.find_elements("css selector", found))[0]

    def type(self, label, text):
        self.field(label).send_keys(text)

    def choose(self, label, option):
        """Choose the option whose text contains `option`, in a field of one or of several values."""
        values = (
            f"const field = document.querySelector('[aria-label=\"{label}\"]').closest('[data-testid]');"
            "return [...field.querySelectorAll('input, [data-tag]')].map(e => e.value || e.title || e.textContent)"
        )
        listed = f"//*[@role='listbox']//*[@role='option' and contains(., '{option}')]"

        def is_chosen():
            self.field(label).click()
            self.browser.find_element("xpath", listed).click()
            return wait_until(lambda: option in " ".join(self.browser.execute_script(values)), timeout_s=5)

        repeat_until(is_chosen)

    def press(self, name):
        """Click with the mouse, which also ends the typing into a field."""
        button = f"//button[contains(normalize-space(), '{name}') and not(@disabled)]"

        def is_pressed():
            found = self.browser.find_element("xpath", button)
            # At the upper edge the page's header would get the click.
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
            found.click()
            return True

        repeat_until(is_pressed)

    @contextmanager
    def report(self, name):
        """Look into the frame of the report on an evaluation."""

        def is_inside():
            frame = self.browser.find_element("css selector", f"iframe[src*='{name}']")
            self.browser.switch_to.frame(frame)
            return True

        repeat_until(is_inside)
        yield
        self.browser.switch_to.default_content()

    def unfold(self, title):
        """Open a part of the page that is folded."""

        def is_open():
            found = f"//details[not(@open)]/summary[contains(., '{title}')]"
            self.browser.find_element("xpath", found).click()
            return True

        repeat_until(is_open)

    def solve(self, model, tests=TESTS):
        self.type("What should the program do?", TASK)
        self.type("Tests: assert lines or pytest functions", tests)
        self.choose("Model", model)
        self.press("Solve")

    def session(self, folder):
        """Download the session, and return its first run and that run's rows."""
        target = {"behavior": "allow", "downloadPath": str(folder)}
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", target)

        def archives():
            self.press("Download session")  # again, if a rerun of the page has cancelled the download
            time.sleep(2)
            return list(folder.glob("session*.zip"))

        with zipfile.ZipFile(wait_until(archives)[0]) as archive:
            archive.extractall(folder)
        [run] = load_runs([folder / "run1"])
        return run, list(run.rows())


def test_a_problem_is_solved_and_the_session_is_a_run_of_the_report(page, tmp_path):
    page.solve("data/toy/base")
    page.wait_for("attempt 2")
    page.wait_for("Download session")
    assert "0 of 2 tests pass" in page.text or "1 of 2 tests pass" in page.text or "2 of 2" in page.text
    assert "assert most([3]) == 9" in page.text
    assert "Changes since the attempt before" in page.text or "The same program" in page.text
    _, [row] = page.session(tmp_path)
    assert (row["text"], row["tests"], len(row["turns"])) == (TASK, TESTS.split("\n"), 2)
    page.press("Solve")
    page.wait_for("Problems of this session")
    title = "2. ✓ Write" if "2 of 2" in page.text else "2. ✗ Write"
    wait_until(lambda: page.field("Problems of this session").get_attribute("value").startswith(title))


def test_an_agent_is_followed_from_node_to_node_and_its_row_names_them(page, tmp_path):
    page.unfold("Settings")
    page.choose("Agent", "react")
    page.type("Attempts", "\b3\n")
    page.type("Tokens per attempt", "\b\b\b40\n")
    page.solve("data/toy/base", "assert most([1, 2]) == 'no program returns this'")
    page.wait_for("Download session")
    for number in (1, 2, 3):
        assert f"attempt {number}\npropose\n" in page.text.replace("\n\n", "\n")
    assert page.text.count("Feedback before this attempt") == 2
    run, [row] = page.session(tmp_path)
    assert run.conditions.startswith("the agent react")
    assert [turn["node"] for turn in row["turns"]] == ["propose"] * 3
    assert (
        "This one fails" in row["turns"][1]["feedback"]
        or "ends before any test" in row["turns"][1]["feedback"]
    )


def test_tests_that_are_none_are_refused_with_their_line(page):
    page.type("What should the program do?", TASK)
    page.type("Tests: assert lines or pytest functions", "assert f(1) == 1\nf(2)")
    page.press("Solve")
    page.wait_for("tests, line 2: 'f(2)' is no test")


def test_attempts_go_on_over_a_reload_belong_to_one_visitor_and_stop(page):
    page.browser.execute_script("document.title = 'first'")
    page.unfold("Settings")
    page.type("Tokens per attempt", "\b\b\b2048\n")
    page.solve("endless")
    page.wait_for("Stop")
    page.browser.refresh()
    page.wait_for("Stop")
    wait_until(lambda: page.field("What should the program do?").get_attribute("value") == TASK)
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    other = Page(page.browser, page.address).open()
    other.wait_for("Choose an example or type a problem")
    page.browser.close()
    page.browser.switch_to.window(first)
    page.press("Stop")
    page.wait_for("No further attempt:\nstopped".replace("\n", "\n\n"))
    page.press("Solve")  # it can be pressed again
    page.press("Stop")
    page.wait_for("Problems of this session")


def test_a_watched_attempt_asks_for_no_collection_of_all_objects(browser, root, tmp_path):
    # Streamlit collects after each run of a page by default, with the interpreter's lock: 0.3 s beside torch.
    log = tmp_path / "collections"
    (tmp_path / "sitecustomize.py").write_text(
        "import gc, sys\n"
        "def note(phase, info):\n"
        "    if phase == 'start' and sys._getframe(1).f_code.co_name == '_on_script_finished':\n"
        f"        open({str(log)!r}, 'a').write('collection\\n')\n"
        "gc.callbacks.append(note)\n"
        f"open({str(log)!r}, 'a').write('noting\\n')\n"
    )
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT.get("PYTHONPATH", "")])
    with served([root], PYTHONPATH=path) as (address, _):
        page = Page(browser, address).open()
        page.solve("endless")
        page.wait_for("Stop")
        texts = {wait_until(lambda: page.text) for _ in range(20) if not time.sleep(0.2)}
        assert len(texts) > 1  # the attempt was watched while it went on
    assert set(log.read_text().split()) == {"noting"}


def test_runs_are_compared_and_their_trajectories_found(page):
    page.open("?view=Runs")
    page.choose("Evaluations", "other")
    with page.report("other"):
        # 2 of 3 problems, with Wilson's interval
        repeat_until(lambda: "66.7 [20.8, 93.9]" in " ".join(page.text.split()))
        page.browser.find_element("css selector", ".flows button[value='wr']").click()
        page.browser.find_element("css selector", "#search").send_keys("TypeError")
        repeat_until(lambda: "1 to 1 of 1 trajectory" in page.text)


def test_the_full_report_opens_in_the_browser_in_an_origin_of_its_own(page):
    page.open("?view=Runs")
    page.choose("Evaluations", "attacked")
    addresses = "return [...document.links].map(link => link.href)"
    [link] = wait_until(lambda: [a for a in page.browser.execute_script(addresses) if "attacked" in a])
    page.browser.get(link)
    wait_until(lambda: re.search(r"1 to \d of \d trajectories", page.text))  # its script runs
    assert page.browser.execute_script("return window.origin") == "null"
    assert page.browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert page.browser.title != "owned"
    page.browser.get(link.replace("attacked", "unknown"))
    page.wait_for("These evaluations cannot be shown together")
    page.browser.get(link.replace("key=", "key=x"))
    page.wait_for("another link to this report")


def test_a_training_run_that_grows_is_shown_without_a_reload(page, root):
    page.open("?view=Training")
    page.wait_for("update 1, last written")
    log(root / "training", 2, metrics={"reward_t1": 0.5})
    log(root / "training", 2, warning=ATTACK)
    page.wait_for("update 2, last written")
    page.wait_for(f"step 2: {ATTACK}")
    assert_harmless(page)
    log(root / "training", 3, metrics={"train_runtime": 9.0})
    page.wait_for("ended after update 3")


def test_text_of_models_and_programs_is_shown_as_text(page):
    page.open("?view=Runs")
    page.choose("Evaluations", "attacked")
    assert_harmless(page)
    with page.report("attacked"):
        repeat_until(lambda: ATTACK in page.text)
        opened = "for (const one of document.querySelectorAll('details.trajectory')) one.open = true"
        page.browser.execute_script(opened)
        repeat_until(lambda: page.text.count(ATTACK) >= 3)  # the task, and the errors of two attempts
        assert page.browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert_harmless(page)


def assert_harmless(page):
    found = "return [...document.querySelectorAll('img')].filter(i => i.src.endsWith('x') || /invalid/.test(i.src))"
    assert page.browser.execute_script(found) == [] and page.browser.title == "CoCoS-Lab"


@pytest.mark.parametrize("width, scheme, is_dark", [(390, "dark", True), (1280, "light", False)])
def test_every_view_fits_the_screen_and_follows_the_scheme(page, width, scheme, is_dark):
    resize(page.browser, width)
    choose_scheme(page.browser, scheme)
    for view, text in (("Try", "Solve"), ("Runs", "Full report"), ("Training", "Reward per turn")):
        page.open(f"?view={view}")
        page.wait_for(text)
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
        colour = "return getComputedStyle(document.querySelector('.stApp')).backgroundColor"
        red = int(page.browser.execute_script(colour).split("(")[1].split(",")[0])
        assert (red < 128) == is_dark
    choose_scheme(page.browser, "light")


def test_every_control_of_every_view_has_a_name_for_screen_readers(page):
    page.unfold("Settings")
    page.solve("data/toy/base")
    page.wait_for("Download session")
    page.unfold("Tell the model what to change")
    assert unnamed_controls(page.browser) == []
    for view, text in (("Runs", "Full report"), ("Training", "Reward per turn")):
        page.open(f"?view={view}")
        page.wait_for(text)
        assert unnamed_controls(page.browser) == []


def test_a_visitor_from_elsewhere_needs_the_token_and_the_last_place_is_not_shared(browser, root):
    flags = ("--allow_remote", "true", "--max_visitors", "1")
    with served([root], *flags) as (address, printed):
        token = printed.split("token: ")[1].split()[0]
        page = Page(browser, address).open()
        page.type("Token, from the terminal of the page", "guessed\n")
        page.wait_for("This is not the token.")
        assert "Solve" not in page.text
        page.open().type("Token, from the terminal of the page", f"{token}\n")
        page.wait_for("Solve")
        page.open().type("Token, from the terminal of the page", f"{token}\n")
        page.wait_for("All places are taken")


@pytest.mark.processes
def test_the_page_refuses_to_start_without_isolation_or_open_to_others():
    page = (sys.executable, "-m", "cocos.page", "--roots", TOY)
    assert "below the minimum isolation 'seccomp'" in complaint(*page, "--sandbox", "rlimits")
    assert "--allow_remote" in complaint(*page, "--address", "0.0.0.0")
    assert "no folder no/where" in complaint(*page[:-1], "no/where")
