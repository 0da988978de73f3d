"""Numbers that only a GPU can confirm, each beside what is expected: docs/gpu/figures.csv and docs/gpu.md.

`bench.py gpu` writes both after each part. Expected are what a processor computes, the assumptions of
cocos/planning/schedule.py, and the accuracies of docs/real.md. A number without a measurement says so.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tables import FORWARD_PASSES, MODELS, tables

from cocos.files.markdown import markdown_table
from cocos.planning.schedule import LAUNCH_S, UTILISATION

LAYERS = {"2 layers": 2, "30 layers": 30, "0.5B": 24}
REAL = Path("outputs/real/qwen/seed0")
NOT_MEASURED = "not measured"
PAGE = """# One GPU

What only a GPU can confirm, in the order of its value. `make gpu`, or `scripts/gpu_kit.sh run` on a machine
without network, measures it with [scripts/bench/bench.py](../scripts/bench/bench.py) and writes this page and
[gpu/figures.csv](gpu/figures.csv).
[performance.md](performance.md) explains the parts, [scaling.md](scaling.md) the plan.
"""


class Figure(NamedTuple):
    """A number that a GPU has to confirm."""

    part: str  # what was run
    figure: str  # what is measured, with its unit
    expected: str
    measured: str  # NOT_MEASURED, or the value


Found = dict[str, Any]


def label(job: dict[str, Any]) -> str:
    """Return the name of a part: what is run, of which model, by which engine or layout."""
    words = [str(job["part"])]
    if "shape" in job:
        shape = job["shape"]
        words.append(MODELS.get(shape["model"], shape["model"]))
        words += [f"k = {shape['num_generations']}"] * (job["part"] == "attention")
    if "deepspeed" in job.get("launcher", ()):
        words.append("ZeRO-2")
    elif job["part"] == "training":
        words.append("one process")
    elif job["part"] == "laboratory":
        words.append(" ".join(job["options"]).replace("--", "") or "bfloat16")
    if "engine" in job:
        words.append(job["engine"])
    return ", ".join(words)


def quantities(job: dict[str, Any]) -> list[tuple[str, str, Callable[[Found], float]]]:
    """Return the figures of a part: name with unit, expected value, and where it stands in what was found."""
    part = job["part"]
    if part == "laboratory":
        options = " ".join(job["options"])
        first: list[tuple[str, str, Callable[[Found], float]]] = [
            (
                f"reward_t{turn} of update {update}",
                f"{expected}{'' if 'bf16' in options else ', nearly'}",
                lambda found, turn=turn, update=update: found["updates"][update - 1][f"reward_t{turn}"],
            )
            for update, turn, expected in ((1, 1, 0.378), (1, 2, 0.076), (2, 1, 0.495), (2, 2, 0.299))
        ]
        if "beta" in options:
            return [("kl_t1 of update 1", "0", lambda found: found["updates"][0]["kl_t1"])]
        if "vllm" in options:
            return [
                (
                    "engine/kl, nats a token",
                    "below 0.001",
                    lambda found: max(u["engine/kl"] for u in found["updates"]),
                ),
                (
                    "engine/limited",
                    "below 0.01",
                    lambda found: max(u["engine/limited"] for u in found["updates"]),
                ),
                ("s per update", "", lambda found: found["updates"][-1]["step_time"]),
            ]
        return [*first, ("s per update", "", lambda found: found["updates"][-1]["step_time"])]
    if part == "equality":
        return [
            (
                "log p, trees against plain rows, mean difference",
                "below 3 times the next line",
                lambda found: found["shared"]["logps_mean"],
            ),
            (
                "log p, plain rows in passes of two sizes",
                "",
                lambda found: found["plain, passes of 1"]["logps_mean"],
            ),
            ("gradient, relative difference", "about 0.01", lambda found: found["shared"]["gradient"]),
        ]
    if part == "cached_decoding":
        return [("ids that a pass over the text prefers too", "above 0.98", lambda found: found["same"])]
    if part == "attention":
        return [
            (
                "dense mask, s / by segment, s",
                "above 1",
                lambda found: found["seconds"]["dense"] / found["seconds"]["segments"],
            ),
            ("by segment, ms a layer", "", lambda found: 1e3 * found["seconds"]["segments"]),
            ("largest relative difference", "below 0.02", lambda found: found["difference"]),
        ]
    if part == "passes":
        return [
            (
                "plain rows, s / trees, s",
                "above 1",
                lambda found: found["seconds"]["plain"] / found["seconds"]["shared"],
            ),
            (
                "TFLOP/s of trees",
                f"{UTILISATION:.0%} of the card's peak",
                lambda found: (
                    FORWARD_PASSES * found["operations"]["shared"] / found["seconds"]["shared"] / 1e12
                ),
            ),
            ("MiB of trees", "", lambda found: found["peaks_mib"]["shared"]),
        ]
    if part == "decoding":
        shape, sampler = job["shape"], {"vllm": "vLLM"}.get(job["engine"], job["engine"])
        return [
            (
                "ms a layer and step",
                f"{1e3 * LAUNCH_S[sampler]:.3g}",
                lambda found: 1e3 * found["seconds"] / shape["answer"] / LAYERS[shape["model"]],
            ),
            ("tokens/s", "", lambda found: found["tokens"] / found["seconds"]),
        ]
    assert part == "training", part
    return [
        ("peak, GiB / the dry run's", "0.8 to 1.2", lambda found: found["peak_gib"] / found["estimated_gib"]),
        ("s per update", "", lambda found: found["seconds"]),
    ]


def real_figures() -> list[Figure]:
    """Return the figures of the real recipe: accuracies, and the hours of all steps so far."""
    figures = []
    # Of the run on a processor that sampled the same recipe; its interval on 500 problems is 4 points wide.
    for who, expected in (
        ("untrained", "30.4, 30.4, 30.4"),
        ("boost", "36.8, 37.8, 37.8"),
        ("cocos", "37.4, 39.6, 40.6"),
    ):
        file = REAL / "mbpp" / who / "metrics.json"
        measured = NOT_MEASURED
        if file.exists():
            metrics = json.loads(file.read_text())["metrics"]
            measured = ", ".join(f"{100 * metrics[f'acc_t{turn}']['value']:.1f}" for turn in (1, 2, 3))
        figures.append(
            Figure("real recipe", f"MBPP test, {who}: accuracy of turns 1 to 3, %", expected, measured)
        )
    times = REAL / "times.csv"
    spent = (
        [float(line.rpartition(",")[2]) for line in times.read_text().splitlines()] if times.exists() else []
    )
    hours = f"{sum(spent) / 3600:.2f}" if spent else NOT_MEASURED
    return [*figures, Figure("real recipe", "hours of all steps so far", "", hours)]


def figures_of(jobs: Sequence[dict[str, Any]], measured: dict[str, Any]) -> list[Figure]:
    """Return every figure of the parts, measured or not.

    Args:
        jobs: All parts of the suite, with shapes as dictionaries.
        measured: What bench.py has written so far.

    """
    figures = []
    for job in jobs:
        found = next((part["found"] for part in measured["parts"] if part["job"] == job), None)
        for name, expected, value in quantities(job):
            figures.append(
                Figure(label(job), name, expected, _text(value, found, is_reward="reward" in name))
            )
    return figures + real_figures()


def _text(value: Callable[[Found], float], found: Found | None, is_reward: bool) -> str:
    if found is None:
        return NOT_MEASURED
    try:
        return f"{value(found):.3f}" if is_reward else f"{value(found):.3g}"
    except (KeyError, TypeError):  # a layout that did not fit into the memory has no seconds
        return "out of memory"


def csv_text(figures: Sequence[Figure]) -> str:
    """Return the figures as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([Figure._fields, *figures])
    return file.getvalue()


def page(figures: Sequence[Figure], measured: dict[str, Any]) -> str:
    """Return docs/gpu.md: the card, every figure, and the tables of the parts that were measured."""
    num_measured = sum(figure.measured != NOT_MEASURED for figure in figures)
    card = measured.get("machine", {}).get("device")
    head = (
        f"**{card}: {num_measured} of {len(figures)} figures are measured.**"
        if num_measured
        else ("**No GPU has run this yet: none of the figures is measured.**")
    )
    parts = [PAGE, head, markdown_table(["part", "figure", "expected", "measured"], figures)]
    if measured["parts"]:
        parts.append(re.sub(r"\A# .*\n\n.*\n", "## In full\n", tables(measured)).rstrip())
    return "\n\n".join(part.strip() for part in parts) + "\n"
