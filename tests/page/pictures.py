"""Pictures of every view of the page, light, dark and on a phone; and a recording of a model that repairs a program.

    python -m tests.page.pictures build/pictures                    # make pictures: with the laboratory's model
    python -m tests.page.pictures build/pictures --roots outputs models --model outputs/cocos
    python -m tests.page.pictures docs/page/repair.gif --roots models --model models/cocos \\
        --examples data/public/mbpp/test.jsonl --problem 102

Settings follow the model, so its folder needs the run.json of its training. The recording is of the real page: a problem
whose first test alone the model sees, and each change of the page while it writes, without the time between two changes.
"""

import argparse
import io
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from PIL import Image

from cocos.problems import load_problems, save_problems
from tests.page.test_page import Page, served
from tests.support.browser import choose_scheme, resize, start_browser
from tests.support.paths import ROOT

SCREENS = {"light": (1280, 1500, "light"), "dark": (1280, 1500, "dark"), "phone": (390, 2600, "light")}
GIF_SIZE, GIF_WIDTH, COLOURS = (1240, 860), 930, 96
TO_END = "document.querySelector('[data-testid=stMain]').scrollTo(0, 1e6)"
STEP_S, HOLD_S, END_S = 0.12, 2.5, 5.0  # of a change, of the first verdict, of the last frame


STARTED = time.monotonic()


def say(event: str) -> None:
    """Print what has happened, after how many seconds."""
    print(f"{time.monotonic() - STARTED:5.0f} s  {event}", flush=True)


def picture(browser) -> Image.Image:
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


def solve(page: Page, args: argparse.Namespace) -> None:
    """Fill the form and start."""
    page.press("Fill in an example")
    page.choose("Model", args.model)
    page.press("Solve")
    say("Solve was pressed")


def views(page: Page, args: argparse.Namespace) -> None:
    """Take a picture of every view on every screen."""
    args.output.mkdir(parents=True, exist_ok=True)
    solve(page, args)
    page.wait_for("Download session")
    solved = page.browser.current_url
    for screen, (width, height, scheme) in SCREENS.items():
        resize(page.browser, width, height)
        choose_scheme(page.browser, scheme)
        for name, address in (
            ("new", ""),
            ("try", solved),
            ("runs", "?view=Runs"),
            ("training", "?view=Training"),
        ):
            page.browser.get("about:blank")
            page.browser.get(address if address == solved else page.address + address)
            page.wait_for("CoCoS-Lab")
            time.sleep(args.wait_s)
            picture(page.browser).save(args.output / f"{name}-{screen}.png", optimize=True)


def recording(page: Page, args: argparse.Namespace) -> None:
    """Record the page from the empty form to the last verdict."""
    frames = [picture(page.browser)]
    seconds = [HOLD_S / 2]

    def note(held_s: float) -> None:
        frame = picture(page.browser)
        if frame.tobytes() != frames[-1].tobytes():
            frames.append(frame)
            seconds.append(held_s)

    solve(page, args)
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
    page.browser.execute_script(TO_END)
    time.sleep(args.wait_s)
    note(END_S)
    seconds[-1] = END_S
    height = round(frames[0].height * GIF_WIDTH / frames[0].width)
    small = [frame.resize((GIF_WIDTH, height), Image.Resampling.LANCZOS) for frame in frames]
    mosaic = Image.new("RGB", (GIF_WIDTH, 3 * height))
    for number, index in enumerate((0, len(small) // 2, -1)):
        mosaic.paste(small[index], (0, number * height))
    palette = mosaic.quantize(COLOURS)
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
    parser.add_argument("--roots", nargs="+", default=["outputs", "data/toy"], help="as of the page")
    parser.add_argument("--model", default="data/toy/base", help="model below the roots")
    parser.add_argument("--examples", default="data/toy/test.jsonl", help="file of problems")
    parser.add_argument("--problem", help="id of the problem; by default the first of the file")
    parser.add_argument("--wait_s", type=float, default=4.0, help="seconds until a view is complete")
    args = parser.parse_args()
    problems = load_problems(args.examples)
    problem = next(p for p in problems if args.problem in (None, p.task_id))
    if args.output.suffix == ".gif":
        hidden = problem.test_list[1:] + problem.hidden_test_list
        problem = replace(problem, test_list=problem.test_list[:1], hidden_test_list=hidden)
    build = ROOT / "build"  # the page shows the path
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build, prefix="") as folder:
        save_problems([problem], Path(folder) / "example.jsonl")
        examples = (Path(folder) / "example.jsonl").relative_to(ROOT)
        roots = [root for root in args.roots if Path(root).is_dir()]
        with served(roots, "--examples", str(examples)) as (address, _):
            say("the page is served")
            browser = start_browser()
            try:
                resize(browser, *GIF_SIZE)
                choose_scheme(browser, "light")
                page = Page(browser, address).open()
                page.wait_for("Fill in an example")
                say("the form is there")
                time.sleep(args.wait_s)
                (recording if args.output.suffix == ".gif" else views)(page, args)
            finally:
                browser.quit()


if __name__ == "__main__":
    main()
