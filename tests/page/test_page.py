"""The page in a browser: hostile text, a phone, and an attempt that is watched token by token."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import pytest

from cocos.executor import ExecutionResult, Status, Verdict
from tests.support.browser import choose_scheme, repeat_until, resize, start_browser, unnamed_controls
from tests.support.commands import ENVIRONMENT, free_port, succeed
from tests.support.paths import ROOT, TOY
from tests.support.report import PASSED, evaluated, numbered, trajectory
from tests.support.waiting import wait_until

ATTACK = (
    "</code><img src=x onerror=\"document.title='owned'\"> ![a](http://x.invalid/y.png) <script>1</script>"
)
ATTACKED = ExecutionResult((Verdict(Status.ERROR, ATTACK, ATTACK, expected=ATTACK, actual=ATTACK),))
# Notes the collections of objects that Streamlit asks for after each run of a script.
SITE = """import gc, sys
def note(phase, info):
    if phase == 'start' and sys._getframe(1).f_code.co_name == '_on_script_finished':
        open({log!r}, 'a').write('collection\\n')
gc.callbacks.append(note)
open({log!r}, 'a').write('noting\\n')
"""


@contextmanager
def served(roots, *flags, path=""):
    """Serve the page; yield its address and what it has printed."""
    port = free_port()
    words = [sys.executable, "-m", "cocos", "page", "--roots", *map(str, roots), "--port", str(port), *flags]
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([path, ENVIRONMENT.get("PYTHONPATH", "")])}
    with (
        tempfile.NamedTemporaryFile("w+") as output,
        subprocess.Popen(words, cwd=ROOT, env=environment, stdout=output, stderr=output) as process,
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


@pytest.fixture(scope="module")
def root(tmp_path_factory, tiny_model):
    """A folder with an evaluation, a model that never ends by itself, and the log of collections."""
    folder = tmp_path_factory.mktemp("root")
    attacked = trajectory(ATTACK, ATTACKED, ATTACKED, text=ATTACK)
    evaluated(folder / "attacked", [attacked, *numbered((PASSED, PASSED))])
    shutil.copytree(tiny_model, folder / "endless")
    (folder / "site").mkdir()
    (folder / "site/sitecustomize.py").write_text(SITE.format(log=str(folder / "collections")))
    (folder / "problems.jsonl").write_text((TOY / "test.jsonl").read_text().splitlines(keepends=True)[0])
    return folder


@pytest.fixture(scope="module")
def address(root):
    flags = ("--address", "0.0.0.0", "--examples", str(root / "problems.jsonl"))
    with served([root], *flags, path=str(root / "site")) as (address, printed):
        assert "warning: other machines can reach --address 0.0.0.0" in printed
        yield address, printed.split("token for visitors: ")[1].split()[0]


SERVES = """
import sys, streamlit.starlette
streamlit.starlette.App.run = lambda *_, **__: print("serves with", *sorted({"torch", "cocos.page.try_view"} & {*sys.modules}))
sys.argv = ["page", "--roots", sys.argv[1], "--port", sys.argv[2]]
from cocos.commands.page import main
main()
"""


def test_what_takes_long_to_import_is_imported_before_the_first_visit(root):
    done = succeed(sys.executable, "-c", SERVES, root, free_port())
    assert done.stdout.splitlines()[-1] == "serves with cocos.page.try_view torch"


@pytest.fixture(scope="module")
def browser():
    running = start_browser()
    yield running
    running.quit()


@pytest.fixture
def page(browser, address):
    """Open the view Try as a new visitor."""
    resize(browser, 1280)
    return Page(browser, *address)


class Page:
    """What a visitor does and sees. Elements are replaced while the page is shown, so none is kept."""

    def __init__(self, browser, address, token):
        self.browser, self.address, self.token = browser, address, token

    def open(self, query=""):
        self.browser.get("about:blank")
        self.browser.get(self.address + query)
        self.admit()

    def admit(self):
        field = "//input[@aria-label='Token, from the terminal of the page']"
        wait_until(lambda: self.browser.find_elements("xpath", field))[0].send_keys(f"{self.token}\n")
        self.wait_for("View")

    @property
    def text(self):
        return self.browser.execute_script("return document.body.innerText")

    def wait_for(self, text):
        try:
            wait_until(lambda: text in self.text)
        except AssertionError as error:
            raise AssertionError(f"no {text!r} on the page:\n{self.text}") from error

    def click(self, xpath):
        def is_clicked():
            found = self.browser.find_element("xpath", xpath)
            # At the upper edge the page's header would get the click.
            self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
            found.click()
            return True

        repeat_until(is_clicked)

    def press(self, name):
        self.click(f"//button[contains(normalize-space(), '{name}') and not(@disabled)]")

    def choose_example(self):
        """Choose the first example, until it has filled the form."""
        filled = "return document.querySelector('textarea').value"

        def is_filled():
            self.browser.find_element("css selector", "[aria-label='Example']").click()
            self.browser.find_element("xpath", "//*[@role='listbox']//*[@role='option']").click()
            return wait_until(lambda: self.browser.execute_script(filled), timeout_s=5)

        repeat_until(is_filled)

    @contextmanager
    def report(self):
        """Look into the frame of the report."""

        def is_inside():
            self.browser.switch_to.frame(self.browser.find_element("css selector", "iframe[src*='report']"))
            return True

        repeat_until(is_inside)
        yield
        self.browser.switch_to.default_content()


def test_text_of_models_and_programs_is_shown_as_text(page):
    page.open("?view=Runs")
    with page.report():
        repeat_until(lambda: ATTACK in page.text)
        opened = "for (const one of document.querySelectorAll('details.trajectory')) one.open = true"
        page.browser.execute_script(opened)
        repeat_until(lambda: page.text.count(ATTACK) >= 3)  # the task, and the errors of two attempts
        assert page.browser.execute_script("return document.querySelectorAll('img').length") == 0
        assert page.browser.execute_script("return window.origin") == "null"  # an origin of its own
    found = "return [...document.querySelectorAll('img')].filter(i => i.src.endsWith('x') || /invalid/.test(i.src))"
    assert page.browser.execute_script(found) == [] and page.browser.title == "CoCoS-Lab"
    [link] = page.browser.find_elements("partial link text", "Full report")
    page.browser.get(link.get_attribute("href"))
    page.wait_for("1 to 2 of 2 trajectories")  # the report's script runs
    assert page.browser.execute_script("return window.origin") == "null"
    assert page.browser.execute_script("return document.querySelectorAll('img').length") == 0


def test_both_views_fit_a_phone_follow_its_scheme_and_name_every_control(page):
    for width, scheme, is_dark in ((390, "dark", True), (1280, "light", False)):
        resize(page.browser, width)
        choose_scheme(page.browser, scheme)
        for view, text in (("Try", "Solve"), ("Runs", "Full report")):
            page.open(f"?view={view}")
            page.wait_for(text)
            if view == "Try":
                page.click("//details[not(@open)]/summary[contains(., 'Settings')]")
            assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
            colour = "return getComputedStyle(document.querySelector('.stApp')).backgroundColor"
            red = int(page.browser.execute_script(colour).split("(")[1].split(",")[0])
            assert (red < 128) == is_dark
            assert unnamed_controls(page.browser) == []
    choose_scheme(page.browser, "light")


def test_an_attempt_is_watched_token_by_token_goes_on_over_a_reload_and_stops(page, root):
    page.open()
    page.choose_example()
    page.click("//details[not(@open)]/summary[contains(., 'Settings')]")
    # Minutes of tokens, also on a fast machine.
    for label, number in (("Tokens per attempt", "2048"), ("Attempts", "10")):
        field = page.browser.find_element("css selector", f"[aria-label='{label}']")
        field.send_keys("\b\b\b" + number + "\n")
    page.press("Solve")
    page.wait_for("Stop")
    seen = set()
    wait_until(lambda: len(seen.add(page.text) or seen) > 3)  # the text grows
    page.browser.refresh()
    page.admit()
    page.wait_for("Stop")
    page.press("Stop")
    page.wait_for("No further attempt: stopped")
    # A collection after each poll would hold the interpreter's lock for 0.3 s.
    assert set((root / "collections").read_text().split()) == {"noting"}
