"""Benchmark of a GPU: equality in bfloat16, speed of updates and sampling, memory beside its estimate.

    python scripts/bench/gpu.py                       # make gpu: docs/gpu.json and docs/gpu.md
    python scripts/bench/gpu.py --small --json FILE   # every part at small size, on a processor too

On one GPU it takes less than nine minutes. Each part runs in a process of its own and is written when it is
done; parts that the file has already are not measured again, and none begins after `--minutes`. So the same
command continues. A part that fails is named and left out. Without a GPU the exit status is 3.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from gpu_table import tables
from update_batches import Shape

NO_GPU = 3
LIMIT_S = 240  # of one part
# One problem's group: prompts of 512 tokens, two turns of 256, k = 8. A micro-batch of training.
GROUP = Shape("gpu", 1, 8, 2, 512, 256, 50, "30 layers")
SMALL = Shape("small", 1, 2, 2, 24, 8, 4, "2 layers")


def jobs(is_small: bool) -> list[dict[str, Any]]:
    """Return the parts in order of importance: name and arguments of a function of gpu_parts.py."""
    group = SMALL if is_small else GROUP
    models = ["2 layers"] if is_small else ["30 layers", "0.5B"]
    layouts = ["shared", "plain"]
    plain, zero2 = [sys.executable], ["deepspeed", "--num_gpus", "1"]
    engines = ["transformers"] + ["vllm"] * (find_spec("vllm") is not None)
    found: list[dict[str, Any]] = [
        {"part": "equality", "shape": group},
        {"part": "cached_decoding", "shape": group},
        *({"part": "update", "shape": replace(group, model=model), "layouts": layouts} for model in models),
        *(
            {"part": "decoding", "shape": replace(group, model=model, num_problems=8), "engine": engine}
            for engine in engines
            for model in models
        ),
        {"part": "training", "shape": replace(group, model=models[-1], num_problems=4), "launcher": plain},
    ]
    if not is_small:
        options = ["--deepspeed", "configs/deepspeed/zero2.json"]
        found.append(found[-1] | {"launcher": zero2, "options": options})
    return [job | {"shape": asdict(job["shape"])} for job in found]


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Measure a part in this process."""
    import gpu_parts

    arguments = {name: value for name, value in job.items() if name != "part"}
    shape = Shape(**arguments.pop("shape"))
    with tempfile.TemporaryDirectory() as folder:
        if job["part"] in ("decoding", "training"):
            arguments["folder"] = Path(folder)
        figures: dict[str, Any] = getattr(gpu_parts, job["part"])(shape, **arguments)
    return figures


def in_new_process(job: dict[str, Any]) -> dict[str, Any]:
    """Run `measure` in a new process, so that memory and failures are the part's own."""
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {LIMIT_S} s"}
    if run.returncode:
        return {"error": "\n".join(run.stderr.splitlines()[-3:])}
    return dict(json.loads(run.stdout.splitlines()[-1]))


def machine() -> dict[str, Any]:
    """Return what the figures depend on: device, its matrix rate, and versions."""
    from gpu_parts import DEVICE, matrix_rate

    name = torch.cuda.get_device_name() if DEVICE == "cuda" else f"{platform.machine()} processor"
    versions = {name: version(name) for name in ("torch", "transformers", "trl")}
    return {
        "device": name,
        "matrix_rate": matrix_rate(8192 if DEVICE == "cuda" else 256),
        "versions": versions,
    }


def main() -> int | None:
    """Measure the parts that are missing, and write figures and tables after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="small sizes, also without a GPU")
    parser.add_argument("--only", help="measure the parts of this name: equality, update, ...")
    parser.add_argument("--minutes", type=float, default=8, help="begin no part after so many minutes")
    parser.add_argument("--json", default="docs/gpu.json", help="file for the figures; tables go beside it")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # one part, in this process
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(json.loads(arguments.job))))
        return None
    if not (torch.cuda.is_available() or arguments.small):
        print("make gpu: this machine has no GPU that PyTorch can use", file=sys.stderr)
        return NO_GPU
    started, file = time.monotonic(), Path(arguments.json)
    figures = json.loads(file.read_text()) if file.exists() else {"machine": machine(), "parts": []}
    done = [part["job"] for part in figures["parts"]]
    for job in jobs(arguments.small):
        if job in done or arguments.only not in (None, job["part"]):
            continue
        if time.monotonic() - started > 60 * arguments.minutes:
            print("the time is up; the same command continues")
            break
        before = time.monotonic()
        found = in_new_process(job)
        print(f"{job['part']} of {job['shape']['model']}: {time.monotonic() - before:.0f} s", flush=True)
        if "error" in found:
            print(f"    failed: {found['error']}", file=sys.stderr)
            continue
        figures["parts"].append({"job": job, "found": found})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        file.with_suffix(".md").write_text(tables(figures), encoding="utf-8")
    if figures["parts"]:
        print(tables(figures))
    return None


if __name__ == "__main__":
    sys.exit(main())
