"""Benchmarks of training updates, of the generation of turns, and of one GPU.

    python scripts/bench/bench.py turns      # make bench: build/turns.json and build/turns.md
    python scripts/bench/bench.py update     # make bench: build/update.json and build/update.md
    python scripts/bench/bench.py gpu        # a part of make gpu: docs/gpu/ and docs/gpu.md
    python scripts/bench/bench.py gpu --small --json FILE    # at small size, on a processor too
    python scripts/bench/bench.py gpu --page   # write the page again, and measure nothing

`turns` compares the generation of two turns with plain calls of `model.generate`, for the laboratory's
model, and for SmolLM2-135M if it is in models/ (make real-model MODEL=smollm2-135m). `update` measures
log-probabilities, loss and gradient over group sizes, turns, prompts and batches, the same for one turn in
TRL's own trainer, and whole updates of the laboratory. `gpu` measures the laboratory's first updates,
equality in bfloat16, attention, passes, sampling, and memory beside its estimate.

Each part (a function of parts.py) runs in a process of its own and is written when it is done; parts that the
file has already are not measured again. So the same command continues. A part that fails is named and left
out. Without a GPU, `gpu` has the exit status 3.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from batches import LAB, MBPP, WHOLE, Shape
from gpu_figures import csv_text, figures_of, label, page
from tables import tables

NO_GPU = 3
LIMIT_S = 1800  # of one part
# One problem's group: prompts of 512 tokens, two turns of 256, k = 8. A micro-batch of training.
GROUP = Shape("gpu", 1, 8, 2, 512, 256, 50, "30 layers")
SMALL = Shape("small", 1, 2, 2, 24, 8, 4, "2 layers")
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
OF_ONE_TURN = [replace(LAB, num_turns=1), replace(MBPP, num_turns=1)]
UPDATES = [replace(LAB, num_generations=k, num_turns=t) for k, t in ((4, 1), (4, 2), (16, 2))]


def update_jobs() -> list[dict[str, Any]]:
    """Return the parts of `update`: name and arguments of a function of parts.py."""
    jobs: list[dict[str, Any]] = [{"part": "passes", "shape": shape} for shape in PASSES]
    jobs += [{"part": "passes", "shape": shape, "other": "trl"} for shape in OF_ONE_TURN]
    return jobs + [{"part": "updates", "shape": shape} for shape in UPDATES]


def turn_jobs() -> list[dict[str, Any]]:
    """Return the parts of `turns`; the real model on 20 problems of MBPP."""
    lab = {"model": LAB.model, "data": ["data/toy/test.jsonl", "data/toy/dev.jsonl"], "protocol": "cocos"}
    real = {
        "model": "models/SmolLM2-135M-Instruct",
        "data": ["data/public/mbpp/test.jsonl"],
        "protocol": "chat",
    }
    jobs: list[dict[str, Any]] = [
        {"part": "turns", **lab, "num_problems": 500, "batch_size": 32, "max_completion_length": 512},
        {"part": "turns", **real, "num_problems": 20, "batch_size": 20, "max_completion_length": 160},
    ]
    return [job for job in jobs if all(Path(path).exists() for path in (job["model"], *job["data"]))]


def gpu_jobs(is_small: bool) -> list[dict[str, Any]]:
    """Return the parts of `gpu` in order of importance; those of vLLM come last, as it is installed last."""
    group = SMALL if is_small else GROUP
    models = [replace(group, model=model) for model in (["2 layers"] if is_small else ["30 layers", "0.5B"])]
    laboratory = {"part": "laboratory"}
    float32 = ["--bf16", "False"]
    zero2 = {
        "launcher": ["deepspeed", "--num_gpus", "1"],
        "options": ["--deepspeed", "configs/deepspeed/zero2.json"],
    }
    training = {"part": "training", "shape": replace(models[-1], num_problems=4)}
    sampled = [replace(model, num_problems=8) for model in models]
    return [
        laboratory | {"options": float32},
        *([] if is_small else [laboratory | {"options": []}]),
        laboratory | {"options": [*float32, "--beta", "0.01"]},
        *([] if is_small else [laboratory | zero2]),
        {"part": "equality", "shape": group},
        {"part": "cached_decoding", "shape": group},
        *({"part": "attention", "shape": replace(group, num_generations=k)} for k in (4, 16)),
        *({"part": "passes", "shape": model} for model in models),
        *({"part": "decoding", "shape": shape, "engine": "transformers"} for shape in sampled),
        training,
        *([] if is_small else [training | zero2]),
        *([] if is_small else [laboratory | {"options": ["--use_vllm", "True"]}]),
        *({"part": "decoding", "shape": shape, "engine": "vllm"} for shape in sampled),
    ]


def needs_vllm(job: dict[str, Any]) -> bool:
    """Return whether a part needs vLLM."""
    return job.get("engine") == "vllm" or "--use_vllm" in job.get("options", ())


def in_new_process(job: dict[str, Any]) -> dict[str, Any]:
    """Measure a part in a new process, so that memory and failures are its own."""
    command = [sys.executable, str(Path(__file__).with_name("parts.py")), json.dumps(job)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {LIMIT_S} s"}
    if run.returncode:
        return {"error": "\n".join(run.stderr.splitlines()[-3:])}
    return dict(json.loads(run.stdout.splitlines()[-1]))


def main() -> int | None:
    """Measure the parts that are missing, and write figures and tables after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=("turns", "update", "gpu"), help="parts to measure")
    parser.add_argument("--small", action="store_true", help="gpu: small sizes, also without a GPU")
    parser.add_argument("--only", help="measure the parts of this name: passes, equality, ...")
    parser.add_argument("--minutes", type=float, default=8, help="gpu: begin no part after so many minutes")
    parser.add_argument("--page", action="store_true", help="gpu: measure nothing, write the page again")
    parser.add_argument("--json", help="file for the figures; tables go beside it")
    arguments = parser.parse_args()
    is_gpu = arguments.suite == "gpu"
    if is_gpu and not (torch.cuda.is_available() or arguments.small or arguments.page):
        print("make gpu: this machine has no GPU that PyTorch can use", file=sys.stderr)
        return NO_GPU
    started = time.monotonic()
    file = Path(arguments.json or ("docs/gpu/parts.json" if is_gpu else f"build/{arguments.suite}.json"))
    makers = {"turns": turn_jobs, "update": update_jobs, "gpu": lambda: gpu_jobs(arguments.small)}
    jobs = [
        job | ({"shape": asdict(job["shape"])} if "shape" in job else {}) for job in makers[arguments.suite]()
    ]
    if file.exists():
        figures = json.loads(file.read_text())
    elif arguments.page:
        figures = {"parts": []}
    else:
        figures = {"machine": in_new_process({"part": "machine"}), "parts": []}
    done = [part["job"] for part in figures["parts"]]
    has_vllm = find_spec("vllm") is not None
    for job in [] if arguments.page else jobs:
        if job in done or arguments.only not in (None, job["part"]) or (needs_vllm(job) and not has_vllm):
            continue
        if is_gpu and time.monotonic() - started > 60 * arguments.minutes:
            print("the time is up; the same command continues")
            break
        before = time.monotonic()
        found = in_new_process(job)
        name = label(job) if is_gpu else f"{job['part']} of {job.get('shape', job)['model']}"
        print(f"{name}: {time.monotonic() - before:.0f} s", flush=True)
        if "error" in found:
            print(f"    failed: {found['error']}", file=sys.stderr)
            continue
        figures["parts"].append({"job": job, "found": found})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        if not is_gpu:
            file.with_suffix(".md").write_text(tables(figures), encoding="utf-8")
        else:
            write_page(file, jobs, figures)
    if arguments.page:
        write_page(file, jobs, figures)
    if figures["parts"]:
        print(tables(figures))
    return None


def write_page(file: Path, jobs: list[dict[str, Any]], figures: dict[str, Any]) -> None:
    """Write figures.csv beside the JSON file, and the page beside its folder."""
    listed = figures_of(jobs, figures)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_name("figures.csv").write_text(csv_text(listed), encoding="utf-8")
    file.parent.with_suffix(".md").write_text(page(listed, figures), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
