"""Run a laboratory from the base model to the report.

    cocos demo                    a model of 1 M parameters learns to correct itself; 2 to 4 minutes
    cocos demo --lab feedback     one attempt cannot solve the problems, two with feedback can; 6 minutes

Trains base -> Boost -> CoCoS and evaluates each model over two turns on problems that none has seen, on two
CPU cores, without GPU and network. Results of an earlier demo in the folder are replaced.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

Step = tuple[str, list[str]]  # title, words of a command
# Without its own program before it, the untrained model of the laboratory `feedback` does what tests say.
AGAIN = "--feedback none --early_stop true --num_turns 3 --temperature 0 0.8"
WAYS_TO_ASK_AGAIN = {
    "again": "--carry nothing --prompt_tests 3",
    "again-blind": "--carry nothing",
    "counterexamples": "--carry counterexamples",
    "placebo-notice": "--carry counterexamples --placebo notice",
    "placebo-other": "--carry counterexamples --placebo other",
}
MADE = ("base", *WAYS_TO_ASK_AGAIN, "boost", "cocos", "models", "report")  # folders of a demo


def main() -> int:
    """Run the steps, each as a process of its own; return the exit status of the first that fails, or 0."""
    from cocos.files.durable import save_json
    from cocos.files.extras import install_command, missing_modules
    from cocos.files.output_folder import DEMO, check_output_folder, recorded_kind

    options = demo_parser().parse_args()
    needed = {"torch", "transformers", "trl", "accelerate", "peft", "datasets"}
    missing = sorted(needed.intersection(missing_modules("train") + missing_modules("data")))
    if missing:
        raise ValueError(
            f"the demo trains a model, and {', '.join(missing)} is missing: {install_command('train')}"
        )
    out = Path(
        options.output_dir
        or f"outputs/demo/{'' if options.lab == 'first' else 'feedback/'}seed{options.seed}"
    )
    check_output_folder(out, lambda folder: recorded_kind(folder) == DEMO)
    out.mkdir(parents=True, exist_ok=True)
    save_json({"options": vars(options)}, out / "run.json")
    for name in MADE:
        shutil.rmtree(out / name, ignore_errors=True)
    for path in out.glob("boost_rows.jsonl*"):
        path.unlink()
    # No progress bars when a model of 4 MB is loaded; idle threads leave the processor to the programs.
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", OMP_WAIT_POLICY="PASSIVE")
    began = time.monotonic()
    for title, words in _steps(options.lab, out, str(options.seed)):
        print(f"\n=== {title} ({time.monotonic() - began:.0f} s) ===", flush=True)
        status = subprocess.run([sys.executable, "-m", "cocos", *words]).returncode
        if status:
            return status
    print(f"open {out}/report/report.html in a browser; every completion is in {out}/*/samples.jsonl")
    return 0


def demo_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    from cocos.config.command_line import PlainParser

    parser = PlainParser(description=__doc__)
    parser.add_argument("--lab", choices=("first", "feedback"), default="first", help="laboratory")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of training and sampling")
    parser.add_argument(
        "--output_dir", metavar="FOLDER", help="folder of the results (default: outputs/demo/seedN)"
    )
    return parser


def _steps(lab: str, out: Path, seed: str) -> Iterator[Step]:
    prefix = "configs/toy/" + ("" if lab == "first" else "feedback_")
    base = "data/toy/base" if lab == "first" else "data/toy/feedback/base"
    cocos = "configs/toy/cocos.yaml" if lab == "first" else "configs/toy/feedback.yaml"
    rows, models = str(out / "boost_rows.jsonl"), out / "models"

    def step(title: str, command: str, config: str, *words: str) -> Step:
        return title, [command, "--config", config, *words, "--seed", seed]

    def evaluate(name: str, model: str, options: str = "") -> Step:
        where = ("--model_name_or_path", model, "--output_dir", str(out / name), *options.split())
        return step(f"evaluate {name} on held-out problems", "eval", f"{prefix}eval.yaml", *where)

    yield evaluate("base", base)
    ways = WAYS_TO_ASK_AGAIN if lab == "feedback" else {}
    for name, options in ways.items():
        yield evaluate(name, base, f"{options} {AGAIN}")
    title = "Boost rows: the base model's attempts and their corrections"
    yield step(title, "boost-data", f"{prefix}boost_data.yaml", "--output", rows)
    yield step(
        "stage 1: Boost",
        *("boost", f"{prefix}boost.yaml", "--train_data", rows, "--output_dir", str(models / "boost")),
    )
    yield evaluate("boost", str(models / "boost"))
    # Every checkpoint that was evaluated stays (12 MB each), so that the training can be replayed.
    yield step(
        "stage 2: CoCoS",
        *("train", cocos, "--model_name_or_path", str(models / "boost")),
        *("--output_dir", str(models / "cocos"), "--save_total_limit", "10"),
    )
    yield evaluate("cocos", str(models / "cocos"))
    folders = [str(out / name) for name in ("base", *ways, "boost", "cocos")]
    yield "report", ["report", *folders, "--output_dir", str(out / "report")]
