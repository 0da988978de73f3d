"""Benchmark of report.html: how long a report of 5,000 trajectories of 5 turns takes to write and to open.

    python scripts/bench/report.py                   # needs chromium and chromedriver: scripts/ci_browser.sh
    python scripts/bench/report.py --rows 500 --turns 2 --rounds 3

The rows are those of test.py for 1,000 problems of three tests and programs of ten lines, of which no two are
equal. Opened means that the page has loaded, its list stands, and the browser has painted it; searched, that
the list shows the first search for a word that a program has. Seconds are medians of a fresh browser each.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from selenium import webdriver

from cocos.evaluation.run_metrics import run_metrics
from cocos.evaluation.sample_rows import trajectory_to_row
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.files.durable import save_json
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import save_report
from cocos.trajectories import Trajectory, Turn

SAMPLES = 5
CONDITIONS = {"protocol": "repair", "feedback": "error", "early_stop": False, "answers": [], "agent": "none"}
PASSED = Verdict(Status.PASSED, duration_s=1e-4)
ERRORS = ("TypeError", "NameError", "IndexError", "ValueError", "RecursionError")
# The page is painted two frames after its list stands.
PAINTED = """
const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() / 1000)));
"""
SEARCH = """
const done = arguments[arguments.length - 1], started = performance.now();
const box = document.getElementById("search");
box.value = arguments[0];
box.dispatchEvent(new Event("input"));
requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - started) / 1000)));
"""


def program(number: int) -> str:
    """Return a program of ten lines that differs from all others."""
    lines = "".join(
        f"    if values[{i}] > {number + i}:\n        total += values[{i}] * {number % (i + 7)}\n"
        for i in range(3)
    )
    return f"def total_of_{number}(values, limit=None):\n    total = 0\n{lines}    return total"


def verdicts(rng: random.Random, is_right: bool) -> tuple[Verdict, ...]:
    """Return the verdicts of three tests, of which a wrong program fails the last two."""
    if is_right:
        return (PASSED,) * 3
    if rng.random() < 0.5:
        error = rng.choice(ERRORS)
        return (PASSED, *[Verdict(Status.ERROR, error, f"{error} in line {rng.randrange(9)}")] * 2)
    wrong = Verdict(
        Status.FAILED, "AssertionError", "it differs", expected="[1, 2, 3]", actual=str([*range(9)])
    )
    return (PASSED, wrong, wrong)


def trajectories(num_rows: int, num_turns: int) -> Iterator[Trajectory]:
    """Yield the trajectories: half of the wrong programs of a turn are right at the next."""
    rng = random.Random(0)
    for row in range(num_rows):
        number = row // SAMPLES
        tests = tuple(
            f"assert total_of_{number}([{i}, {i + 1}, {i + 2}], {i}) == {i * number}" for i in range(3)
        )
        text = (
            f"Write a function to find the weighted total of the values above {number} in a list of numbers."
        )
        turns, is_right = [], False
        for turn in range(num_turns):
            is_right = is_right or rng.random() < 0.5
            code = program(row * num_turns + turn)
            completion = Completion(tuple(range(120)), f"Here is it:\n```python\n{code}\n```", duration_s=1.5)
            feedback = "The program above passes 1 of the 3 tests." if turn else ""
            result = ExecutionResult(verdicts(rng, is_right), duration_s=0.02)
            turns.append(
                Turn(tuple(range(200)), completion, code, result, feedback, request=f"{feedback} Again.")
            )
        yield Trajectory(Problem(str(number), text, tests), row % SAMPLES, tuple(turns))


def write_evaluation(folder: Path, num_rows: int, num_turns: int) -> None:
    """Write samples.jsonl, metrics.json and run.json."""
    played = list(trajectories(num_rows, num_turns))
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        for trajectory in played:
            file.write(json.dumps(trajectory_to_row(trajectory, **CONDITIONS)) + "\n")
    save_json(run_metrics(played, CONDITIONS), folder / "metrics.json")
    options = {"model_name_or_path": "a model", "test_data": "problems.jsonl", "num_turns": num_turns}
    save_json({"options": options | CONDITIONS, "versions": {}}, folder / "run.json")


class Times(NamedTuple):
    """Seconds of one visit."""

    opened: float  # until the page is painted
    busy: float  # of them, processor time of the page's main thread, which other processes do not lengthen
    searched: float  # of a first search


def visit(page: Path, word: str) -> Times:
    """Open a page in a fresh browser, and search."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.set_script_timeout(60)
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        browser.get(page.as_uri())
        seconds = browser.execute_async_script(PAINTED)
        assert browser.find_elements("css selector", "#list details"), "no trajectory is listed"
        metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        busy = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
        return Times(seconds, busy, browser.execute_async_script(SEARCH, word))
    finally:
        browser.quit()


def main() -> None:
    """Parse the arguments, write the report, open it, and print the medians."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--rows", type=int, default=5000, help="trajectories")
    parser.add_argument("--turns", type=int, default=5, help="turns of each")
    parser.add_argument("--rounds", type=int, default=5, help="measurements")
    parser.add_argument("--output_dir", type=Path, help="keep the evaluation and its report here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.output_dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_evaluation(folder, args.rows, args.turns)
        started = time.perf_counter()
        save_report(load_runs([folder]), folder)
        written_s = time.perf_counter() - started
        page = folder / "report.html"
        size_mb = page.stat().st_size / 1e6
        word = f"total_of_{args.rows * args.turns - 1}"
        visits = [visit(page.resolve(), word) for _ in range(args.rounds)]
    print(f"{args.rows} rows x {args.turns} turns: {size_mb:.1f} MB, written in {written_s:.1f} s")
    for name, seconds in zip(Times._fields, zip(*visits, strict=True), strict=True):
        print(f"{name}: {statistics.median(seconds):.2f} s ({', '.join(f'{one:.2f}' for one in seconds)})")


if __name__ == "__main__":
    main()
