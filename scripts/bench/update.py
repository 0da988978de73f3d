"""Benchmark of training updates: rows as prefix trees against plain rows, and against TRL's RLOOTrainer.

    python scripts/bench/update.py --json build/update.json

Three parts. `passes`: old log-probabilities, loss and gradient of rows that the laboratory's base model
samples, and of made-up rows with MBPP's lengths, over group sizes, turns, prompt lengths and batches. `trl`:
the same for one turn, in TRL's own trainer. `updates`: whole updates of the laboratory (rollout, programs,
loss, optimizer).

Every shape is measured in a process of its own, in which the layouts alternate over the rounds; figures are
medians. Passes run on one thread and are measured in processor seconds, which other processes disturb less
than the time of the clock; updates are measured by the clock, on all processors. Trees come first, so that
the peak memory of the process after them is theirs. Shapes that the JSON file has already are not measured
again. `update_figures.py` draws the file.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm
from update_batches import (
    LAB,
    MBPP,
    RANDOM_MODELS,
    WHOLE,
    Shape,
    make_rows,
    operations,
    our_trainer,
    sample_rows,
    trl_trainer,
)

KIB = 1024
PHASES = ("rollout", "logprobs", "update")
PASSES = [
    *(replace(LAB, num_generations=k) for k in (4, 16, 8, 2)),
    *(replace(MBPP, num_generations=k) for k in (8, 16, 4, 2)),
    *(replace(LAB, num_turns=turns) for turns in (1, 3, 4)),
    *(replace(MBPP, num_turns=turns) for turns in (1, 3, 4)),
    *(replace(LAB, num_problems=problems) for problems in (8, 64)),
    *(replace(MBPP, prompt=tokens) for tokens in (260, 520)),
    *(replace(MBPP, num_problems=problems) for problems in (2, 4)),
    WHOLE,
]
JOBS = {
    "passes": PASSES,
    "trl": [replace(LAB, num_turns=1), replace(MBPP, num_turns=1)],
    "updates": [replace(LAB, num_generations=k, num_turns=t) for k, t in ((4, 1), (4, 2), (16, 2))],
}


def peak_mib() -> float:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB


def time_passes(trainer: Any, rows: dict[str, Any]) -> float:
    """Return the processor seconds of old log-probabilities, loss and gradient."""
    import torch

    started = time.process_time()
    with torch.no_grad():
        log_probs, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            rows["completion_ids"].size(1),
            batch_size=256,
        )
    old_logps = (log_probs * rows["completion_mask"]).sum(1)
    trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps}).backward()
    seconds = time.process_time() - started
    trainer.model.zero_grad()
    return seconds


def passes(shape: Shape, rounds: int, with_trl: bool = False) -> dict[str, Any]:
    """Measure the passes of a shape in all layouts, on one thread."""
    import torch

    torch.set_num_threads(1)
    seconds: dict[str, list[float]] = {"shared": [], "trl" if with_trl else "plain": []}
    with tempfile.TemporaryDirectory() as folder:
        trainer, executor = our_trainer(folder, shape, num_iterations=2)
        other = trl_trainer(folder, shape.model) if with_trl else trainer
    with executor:
        rows = make_rows(shape) if shape.model in RANDOM_MODELS else sample_rows(trainer, shape)
    peaks = {}
    time_passes(trainer, rows)  # compares trees with plain rows; not measured
    for _ in range(rounds):
        for layout, times in seconds.items():
            trainer.args.share_prefixes = layout == "shared"
            times.append(time_passes(trainer if layout == "shared" else other, rows))
            peaks.setdefault(layout, peak_mib())
    return {"seconds": seconds, "peaks": peaks, "operations": operations(trainer.model, rows)}


def updates(shape: Shape, rounds: int) -> dict[str, Any]:
    """Measure whole updates of the laboratory. The first one, with the comparison, is not measured."""
    seconds, peaks = {}, {}
    for layout in ("shared", "plain"):
        with tempfile.TemporaryDirectory() as folder:
            trainer, executor = our_trainer(
                folder,
                shape,
                share_prefixes=layout == "shared",
                max_steps=rounds + 1,
                learning_rate=1e-6,  # so that both layouts sample alike
            )
            with executor:
                trainer.train()
        logs = [log for log in trainer.state.log_history if "time/update_s" in log]
        seconds[layout] = [sum(log[f"time/{phase}_s"] for phase in PHASES) for log in logs[1:]]
        peaks[layout] = peak_mib()
    return {"seconds": seconds, "peaks": peaks}


def matrix_rate() -> float:
    """Return the operations per processor second of products of large float32 matrices, the best of ten."""
    import torch

    torch.set_num_threads(1)
    left, right = torch.randn(2048, 2048), torch.randn(2048, 2048)
    times = []
    for _ in range(10):
        started = time.process_time()
        left @ right
        times.append(time.process_time() - started)
    return 2 * 2048**3 / min(times)


def measure(part: str, shape: Shape, rounds: int) -> dict[str, Any]:
    """Measure a shape in this process. Return medians, ratio, peaks, operations and the matrix rate."""
    found = updates(shape, rounds) if part == "updates" else passes(shape, rounds, part == "trl")
    medians = {layout: statistics.median(times) for layout, times in found.pop("seconds").items()}
    other = medians["trl" if part == "trl" else "plain"]
    return {
        "part": part,
        **asdict(shape),
        "seconds": medians,
        "speedup_vs_trl" if part == "trl" else "speedup_vs_plain": other / medians["shared"],
        "peaks_mib": found.pop("peaks"),
        "matrix_rate": matrix_rate(),
        **found,
    }


def in_new_process(part: str, shape: Shape, rounds: int) -> dict[str, Any]:
    """Run `measure` in a new process and return its figures."""
    job = json.dumps({"part": part, "shape": asdict(shape), "rounds": rounds})
    command = [sys.executable, __file__, "--job", job]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{part} of {shape} failed:\n{run.stderr[-2000:]}")
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main() -> None:
    """Measure, print a line per shape, and write the figures after each of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="measurements of every layout")
    parser.add_argument("--only", choices=JOBS, help="measure one part")
    parser.add_argument("--json", default="build/update.json", help="file for the figures")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # one shape, in this process
    arguments = parser.parse_args()
    if arguments.job:
        job = json.loads(arguments.job)
        print(json.dumps(measure(job["part"], Shape(**job["shape"]), job["rounds"])))
        return
    file = Path(arguments.json)
    machine = (
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors, Python {platform.python_version()}"
    )
    figures = json.loads(file.read_text()) if file.exists() else {"machine": machine, "rows": []}
    done = {(row["part"], Shape(*(row[name] for name in asdict(LAB)))) for row in figures["rows"]}
    jobs = [(part, shape) for part in JOBS for shape in JOBS[part] if arguments.only in (None, part)]
    for part, shape in tqdm([job for job in jobs if job not in done], unit=" shapes", disable=None):
        row = in_new_process(part, shape, arguments.rounds)
        seconds = "  ".join(f"{layout} {time_s:6.2f} s" for layout, time_s in row["seconds"].items())
        ratio = row.get("speedup_vs_plain", row.get("speedup_vs_trl"))
        sizes = f"{shape.num_problems} x {shape.num_generations}, T={shape.num_turns}, prompt {shape.prompt}"
        print(f"{part:<8}{shape.name:<5} {sizes:<28} {seconds}  {ratio:5.2f} x", flush=True)
        figures["rows"].append(row)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
