"""Run the study on the laboratory: every objective with several seeds, each trained and evaluated.

    python scripts/study.py                 run what is missing, then write the tables and figures
    python scripts/study.py --figures       write the tables and figures only, from the committed CSV files

For each arm and seed, the study trains Boost (once per seed, for all arms), trains with train.py and
evaluates with test.py. configs/toy/study.yaml lists the arms. A finished step is not run again. The results
go to docs/study/results.csv and docs/study/curves.csv; study_figures.py makes tables and figures of them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from result_files import save_csv
from study_figures import STUDY, Point, Result, show

ROOT = Path(__file__).resolve().parent.parent
QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
    # PyTorch's idle threads must not take processor time from the executed programs.
    "OMP_WAIT_POLICY": "PASSIVE",
}


def command(script: str, config: str, **options: Any) -> None:
    """Run one command of the pipeline; append its output to log.txt beside its results."""
    folder = Path(options.get("output_dir") or Path(options["output"]).parent)
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, script, "--config", config]
    for name, value in options.items():
        words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        done = subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **QUIET})
    if done.returncode:
        sys.exit(f"error: {' '.join(words)}\nexited with status {done.returncode}; see {folder / 'log.txt'}")


def train_boost(seed: int, folder: Path) -> Path:
    """Return the Boost model of a seed; train it if it does not exist."""
    model = folder / "model"
    if not (model / "config.json").exists():
        shutil.rmtree(model, ignore_errors=True)
        rows = folder / "rows.jsonl"
        if not rows.exists():
            command("scripts/make_boost_data.py", "configs/toy/boost_data.yaml", output=rows, seed=seed)
        command(
            "boost/boost_train.py", "configs/toy/boost.yaml", train_data=rows, output_dir=model, seed=seed
        )
    return model


def train_stages(arm: Mapping[str, Any], seed: int, start: Path, folder: Path) -> Path:
    """Train an arm's missing stages, each from the model of the one before; return the last model."""
    model = start
    for number, options in enumerate(arm.get("stages", []), start=1):
        stage = folder / f"stage{number}"
        if not (stage / "config.json").exists():
            shutil.rmtree(stage, ignore_errors=True)  # train.py rejects a folder with checkpoints
            command(
                "train.py",
                "configs/toy/cocos.yaml",
                model_name_or_path=model,
                output_dir=stage,
                seed=seed,
                **options,
            )
        model = stage
    return model


def run_arm(study: Mapping[str, Any], name: str, seed: int, outputs: Path) -> None:
    """Train and evaluate one arm with one seed, unless its evaluation exists."""
    arm = study["arms"][name]
    folder = outputs / f"seed{seed}" / slug(name)
    if (folder / "test" / "metrics.json").exists():
        return
    began = time.monotonic()
    boost = train_boost(seed, outputs / f"seed{seed}" / "boost")
    trained = arm.get("model", name)
    model = train_stages(study["arms"][trained], seed, boost, outputs / f"seed{seed}" / slug(trained))
    # test.py rejects a folder with samples. Those of an interrupted evaluation are removed.
    (folder / "test" / "samples.jsonl").unlink(missing_ok=True)
    test = {**study["test"], **arm.get("test", {})}
    command(
        "test.py",
        "configs/toy/eval.yaml",
        model_name_or_path=model,
        output_dir=folder / "test",
        seed=seed,
        **test,
    )
    print(f"seed {seed}  {name}: {time.monotonic() - began:.0f} s", flush=True)


def slug(name: str) -> str:
    """Return an arm's name as the name of a folder."""
    return "".join(c if c.isalnum() or c == "." else "-" for c in name.lower()).replace("--", "-")


def read_result(name: str, seed: int, folder: Path) -> Result:
    """Read the metrics that test.py wrote for an arm and a seed."""
    contents = json.loads((folder / "test" / "metrics.json").read_text(encoding="utf-8"))
    values = {key: estimate["value"] for key, estimate in contents["metrics"].items()}
    missing = float("nan")
    return Result(
        name,
        seed,
        acc_1=values["acc_t1"],
        acc_2=values.get("acc_t2", missing),
        delta=values.get("delta_t1_t2", missing),
        i2c=values.get("i2c_t1_t2", missing),
        c2i=values.get("c2i_t1_t2", missing),
        best_of_2=contents["pass_at_k"].get("pass@2_t1", missing),
    )


def read_curve(name: str, seed: int, folder: Path) -> list[Point]:
    """Read the dev evaluations of an arm's stages; updates are counted across stages."""
    points, num_before = [], 0
    for stage in sorted(folder.glob("stage*")):
        states = stage.glob("checkpoint-*/trainer_state.json")
        latest = max(states, key=lambda path: int(path.parent.name.rpartition("-")[2]))
        state = json.loads(latest.read_text(encoding="utf-8"))
        for log in state["log_history"]:
            if "eval_acc_t1" in log:
                second = log.get("eval_acc_t2", float("nan"))
                points.append(Point(name, seed, num_before + log["step"], log["eval_acc_t1"], second))
        num_before += state["global_step"]
    return points


def run(study: Mapping[str, Any], outputs: Path) -> None:
    """Run every arm with every seed, then write results.csv and curves.csv."""
    for seed in study["seeds"]:
        for name in study["arms"]:
            run_arm(study, name, seed, outputs)
    results, curves = [], []
    for name in study["arms"]:
        for seed in study["seeds"]:
            folder = outputs / f"seed{seed}" / slug(name)
            results.append(read_result(name, seed, folder))
            curves += read_curve(name, seed, folder)
    save_csv(results, STUDY / "results.csv")
    save_csv(curves, STUDY / "curves.csv")


def main() -> None:
    """Run what is missing, then write tables and figures."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument(
        "--config", type=Path, default=ROOT / "configs/toy/study.yaml", help="YAML file with arms and seeds"
    )
    parser.add_argument(
        "--output_dir",
        type=Path,
        default=ROOT / "outputs/study",
        help="folder for models, logs and evaluations",
    )
    parser.add_argument(
        "--figures", action="store_true", help="run nothing; write tables and figures from the CSV files"
    )
    options = parser.parse_args()
    if not options.figures:
        run(yaml.safe_load(options.config.read_text(encoding="utf-8")), options.output_dir)
    print(show())


if __name__ == "__main__":
    main()
