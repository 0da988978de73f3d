"""Pictures of every view of the page, light, dark and on a phone; and a recording of a model that repairs a program.

    python -m tests.page.pictures build/pictures                    # make pictures: in the laboratory
    python -m tests.page.pictures build/pictures --roots outputs models --model models/cocos \\
        --examples data/public/mbpp/test.jsonl --problems 102 146
    python -m tests.page.pictures docs/page/repair.gif --roots models --model models/cocos \\
        --examples data/public/mbpp/test.jsonl --problems 102

Without --roots, evaluations and training runs of some seconds are made in the laboratory. Settings follow the model, so its
folder needs the run.json of its training. The model sees the first test of a problem alone; the others are hidden. The
recording shows each change of the page while the model writes, without the time between two changes.
"""

import argparse
import io
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from PIL import Image

from cocos.problems import Problem, load_problems, save_problems
from tests.page.test_page import Page, served
from tests.support.browser import choose_scheme, repeat_until, resize, start_browser
from tests.support.commands import ENVIRONMENT
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

SCREENS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "light")}
HIGHEST = 4000  # pixels of a picture; what is below is left out
GIF_SIZE, GIF_WIDTH, COLOURS = (1240, 980), 930, 160
TO_TOP, TO_END = (f"document.querySelector('[data-testid=stMain]').scrollTo(0, {y})" for y in ("0", "1e6"))
# The frame of the last attempt, below the page's header.
TO_LAST = (
    "[...document.querySelectorAll('[data-testid=stMarkdownBadge], .stMarkdownBadge')].pop().scrollIntoView();"
    "document.querySelector('[data-testid=stMain]').scrollBy(0, -90)"
)
STEP_S, HOLD_S, END_S = 0.12, 2.5, 5.0  # of a change, of the first verdict, of the last frame
SOLVE_S = 600  # a real model on a processor takes minutes for the attempts of a problem
LABORATORY = "data/toy/base"
# Folder -> command of the runs that the pictures show without --roots.
RUNS = {
    "blind": "test.py --test_data data/toy/test.jsonl --limit 60",
    "told": "test.py --test_data data/toy/test.jsonl --limit 60 --feedback error --num_turns 3",
    "cocos": "train.py --train_data data/toy/train.jsonl --global_batch_size 8 --max_steps 8",
    "gamma": "train.py --train_data data/toy/train.jsonl --global_batch_size 8 --max_steps 8 --gamma 1.0",
}

STARTED = time.monotonic()


def say(event: str) -> None:
    """Print what has happened, after how many seconds."""
    print(f"{time.monotonic() - STARTED:5.0f} s  {event}", flush=True)


def make_runs(folder: Path) -> None:
    """Make the runs of the laboratory that are not there yet."""
    for name, command in RUNS.items():
        if not (folder / name).exists():
            say(f"{folder / name} is made")
            words = [*command.split(), "--model_name_or_path", LABORATORY, "--output_dir", folder / name]
            subprocess.run([sys.executable, *map(str, words)], cwd=ROOT, env=ENVIRONMENT, check=True)


def picture(browser) -> Image.Image:
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


def solve(page: Page, model: str, problem: Problem) -> None:
    """Fill the form with a problem, choose the model, and start."""
    page.choose("Example", f"{problem.task_id}:")
    page.choose("Model", model)
    page.press("Solve")
    say(f"Solve was pressed: problem {problem.task_id}")


def wait_for_verdict(page: Page, shown: str) -> None:
    """Wait until the page shows the last attempt, below a task or a model that it did not show before."""
    wait_until(lambda: shown in page.text and "Download session" in page.text, timeout_s=SOLVE_S)


def add(page: Page, label: str, names: list[str]) -> None:
    """Choose further values of a field, and close its list."""
    for name in names:
        page.choose(label, name)
    page.field(label).send_keys("\ue00c")  # the key Escape


def wait_for_report(page: Page) -> None:
    """Wait until the report in the frame is complete."""
    with page.report("report"):
        wait_until(lambda: re.search(r"of \d+ trajector", page.text))


class Camera:
    """Takes a picture of the whole page on every screen."""

    def __init__(self, page: Page, folder: Path, wait_s: float) -> None:
        self.page, self.folder, self.wait_s = page, folder, wait_s
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, name: str, screens: tuple[str, ...] = tuple(SCREENS)) -> None:
        browser = self.page.browser
        scrolled = "document.querySelector('[data-testid=stMain]') || document.documentElement"
        for screen in screens:
            width, scheme = SCREENS[screen]
            resize(browser, width)
            choose_scheme(browser, scheme)
            time.sleep(self.wait_s)
            height = browser.execute_script(f"return ({scrolled}).scrollHeight")
            resize(browser, width, min(max(height + 20, 800), HIGHEST))
            time.sleep(self.wait_s / 2)
            picture(browser).save(self.folder / f"{name}-{screen}.png", optimize=True)
        resize(browser, GIF_SIZE[0])
        choose_scheme(browser, "light")
        say(name)


def views(page: Page, args: argparse.Namespace, problems: list[Problem]) -> None:
    """Take pictures of every view on every screen."""
    camera = Camera(page, args.output, args.wait_s)
    camera.take("try-form")
    for number, problem in enumerate(problems, start=1):
        solve(page, args.model, problem)
        if number == 1:
            page.wait_for("Stop")
            camera.take("try-running", ("light",))
        wait_for_verdict(page, problem.text)
        camera.take(f"try-attempts-{number}")
    for title in ("Settings", "Own wording", "Tell the model", "Change the program"):
        page.unfold(title)
    camera.take("try-unfolded")
    page.choose("Second model", args.second or args.model)
    page.press("Solve")
    wait_for_verdict(page, args.second or args.model)
    camera.take("try-two-models")
    page.open("?view=Runs")
    wait_for_report(page)
    camera.take("runs-one")
    add(page, "Evaluations", args.compared)
    wait_until(lambda: page.browser.find_elements("css selector", "iframe[src*='&run=']"))
    wait_for_report(page)
    camera.take("runs-comparison")
    link = page.browser.find_element("partial link text", "Full report").get_attribute("href")
    page.browser.get(link)
    wait_until(lambda: "trajectories" in page.text)
    camera.take("report")
    flow = "document.querySelector(\".flows button[value='wr']\")"
    repeat_until(lambda: page.browser.execute_script(f"{flow}.click(); return true"))
    opened = "const one = document.querySelector('details.trajectory'); one.open = true; one.scrollIntoView(); return true"
    repeat_until(lambda: page.browser.execute_script(opened))
    camera.take("report-trajectory")
    page.open("?view=Training")
    page.wait_for("update")
    camera.take("training-one")
    add(page, "Training runs", args.trained)
    camera.take("training-several")


def recording(page: Page, args: argparse.Namespace, problem: Problem) -> None:
    """Record the page from the empty form to the last verdict."""
    frames = [picture(page.browser)]
    seconds = [HOLD_S / 2]

    def note(held_s: float) -> None:
        frame = picture(page.browser)
        if frame.tobytes() != frames[-1].tobytes():
            frames.append(frame)
            seconds.append(held_s)

    solve(page, args.model, problem)
    page.browser.execute_script(TO_TOP)
    note(HOLD_S / 2)
    is_first = True
    while "Download session" not in page.text:
        has_verdict = "of 1 tests pass" in page.text or "tests pass;" in page.text
        note(HOLD_S if has_verdict and is_first else STEP_S)
        if is_first and has_verdict:
            say("the first attempt has its verdict")
        is_first = is_first and not has_verdict
        if not is_first:
            page.browser.execute_script(TO_END)
        time.sleep(0.05)
    say("the last attempt has its verdict")
    for scroll in (TO_LAST, TO_TOP):
        page.browser.execute_script(scroll)
        time.sleep(args.wait_s)
        note(END_S)
    height = round(frames[0].height * GIF_WIDTH / frames[0].width)
    small = [frame.resize((GIF_WIDTH, height), Image.Resampling.LANCZOS) for frame in frames]
    mosaic = Image.new("RGB", (GIF_WIDTH, 3 * height))
    for number, index in enumerate((0, -2, -1)):
        mosaic.paste(small[index], (0, number * height))
    palette = mosaic.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)  # rare colours, too: those of the verdicts
    coloured = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    lasts_ms = [round(1000 * held) for held in seconds]
    coloured[0].save(
        args.output, save_all=True, append_images=coloured[1:], duration=lasts_ms, loop=0, optimize=True
    )
    print(f"{args.output}: {len(frames)} frames, {args.output.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    """Serve the page, and take the pictures."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("output", type=Path, help="folder for the pictures, or FILE.gif for the recording")
    parser.add_argument("--roots", nargs="+", help="as of the page; by default runs of the laboratory")
    parser.add_argument("--model", default=LABORATORY, help="model below the roots")
    parser.add_argument("--second", help="model beside it; by default the same")
    parser.add_argument("--compared", nargs="+", default=["blind"], help="evaluations beside the latest")
    parser.add_argument("--trained", nargs="+", default=["cocos"], help="training runs beside the latest")
    parser.add_argument("--examples", default="data/toy/test.jsonl", help="file of problems")
    parser.add_argument("--problems", nargs="+", help="their ids; by default the first two of the file")
    parser.add_argument("--wait_s", type=float, default=4.0, help="seconds until a view is complete")
    args = parser.parse_args()
    problems = {problem.task_id: problem for problem in load_problems(args.examples)}
    chosen = [
        replace(one, test_list=one.test_list[:1], hidden_test_list=one.test_list[1:] + one.hidden_test_list)
        for one in (problems[name] for name in args.problems or list(problems)[:2])
    ]
    build = ROOT / "build"  # the page shows the path
    build.mkdir(exist_ok=True)
    if not args.roots:
        make_runs(build / "runs")
        args.roots = ["build/runs", "data/toy"]
    save_problems(chosen, build / "problems.jsonl")
    with served(args.roots, "--examples", "build/problems.jsonl") as (address, _):
        say("the page is served")
        browser = start_browser()
        try:
            resize(browser, *GIF_SIZE)
            choose_scheme(browser, "light")
            page = Page(browser, address).open()
            page.wait_for("Fill in an example")
            say("the form is there")
            time.sleep(args.wait_s)
            if args.output.suffix == ".gif":
                recording(page, args, chosen[0])
            else:
                views(page, args, chosen)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
