"""Run the study on both laboratories: every arm with several seeds, each trained and evaluated.

    python scripts/study.py                              run what is missing, then write tables and figure
    python scripts/study.py --labs feedback --seeds 0 1  run a part of it, for example beside another part
    python scripts/study.py --figures                    write tables and figure from the committed CSV file

configs/toy/study.yaml lists the arms. An arm is trained with train.py, in one stage or more, and evaluated
with test.py once per kind of feedback. A finished step is not run again. When nothing of the laboratories to
run is missing, their results go to evaluations.csv in docs/results/study, from which tables and a figure are
made.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import yaml
from result_rows import Evaluation, load_csv, merge_csv, read_evaluation
from results import DOCS, accuracy, write_pages

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.output_folder import check_output_folder

ROOT = Path(__file__).resolve().parent.parent
STUDY = DOCS / "results/study"
FEEDBACK = ("none", "verdict", "error")
MARKERS = ".osv^DXP"  # of the lines in the figure
QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTHONWARNINGS": "ignore",
    # PyTorch's idle threads must not take processor time from the executed programs.
    "OMP_WAIT_POLICY": "PASSIVE",
}


@dataclass(frozen=True)
class Arm:
    """One way of training."""

    # Options of each call of train.py; none: the model that the arm starts from.
    stages: list[dict[str, Any]] = field(default_factory=list)
    # Options of the rows of its Boost model, besides those of the laboratory.
    boost: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)  # options of its evaluations
    model: str = ""  # model that the arm starts from instead of a Boost model, or ""


@dataclass(frozen=True)
class Laboratory:
    """Arms that share problems, base model and evaluation."""

    seeds: list[int]  # seeds of every arm
    boost_data: dict[str, Any]  # options of make_boost_data.py
    # Options of boost_train.py. Arms with equal `Arm.boost` share a Boost model per seed.
    boost: dict[str, Any]
    train: dict[str, Any]  # options of train.py for every arm
    test: dict[str, Any]  # options of test.py for every arm
    feedback: list[str]  # kinds of feedback at test time
    arms: dict[str, Arm]  # arms by name, in the order of the tables


@dataclass(frozen=True)
class Run:
    """An arm with a seed, and its folder."""

    lab: str
    laboratory: Laboratory
    name: str
    seed: int
    outputs: Path

    @property
    def arm(self) -> Arm:
        return self.laboratory.arms[self.name]

    @property
    def folder(self) -> Path:
        return self.outputs / self.lab / f"seed{self.seed}" / slug(self.name)

    def test_folder(self, feedback: str) -> Path:
        return self.folder / f"test-{feedback}"

    @property
    def is_finished(self) -> bool:
        return all(
            (self.test_folder(feedback) / "metrics.json").exists() for feedback in self.laboratory.feedback
        )


def load_study(path: Path) -> dict[str, Laboratory]:
    """Read the laboratories by name."""
    study = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {
        name: Laboratory(**content | {"arms": {arm: Arm(**words) for arm, words in content["arms"].items()}})
        for name, content in study.items()
    }


def all_runs(study: Mapping[str, Laboratory], outputs: Path) -> Iterator[Run]:
    """Yield every arm of every laboratory with every seed, seed by seed."""
    for lab, laboratory in study.items():
        for seed in laboratory.seeds:
            for name in laboratory.arms:
                yield Run(lab, laboratory, name, seed, outputs)


def command(script: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Run one command of the pipeline; append its output to log.txt in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, script]
    for name, value in options.items():
        words += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        done = subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, env={**os.environ, **QUIET})
    if done.returncode:
        sys.exit(f"error: {' '.join(words)}\nexited with status {done.returncode}; see {folder / 'log.txt'}")


def start_model(run: Run) -> str:
    """Return the model that an arm starts from; train its Boost model if it does not exist."""
    if run.arm.model:
        return run.arm.model
    folder = run.folder.parent / slug(" ".join(["boost", *map(str, run.arm.boost.values())]))
    model, rows = folder / "model", folder / "rows.jsonl"
    if not (model / "config.json").exists():
        shutil.rmtree(model, ignore_errors=True)
        if not rows.exists():
            own = {"output": rows, "seed": run.seed}
            command("scripts/make_boost_data.py", folder, run.laboratory.boost_data | run.arm.boost | own)
        own = {"train_data": rows, "output_dir": model, "seed": run.seed}
        command("boost/boost_train.py", folder, run.laboratory.boost | own)
    return str(model)


def train(run: Run) -> str:
    """Train an arm's missing stages, each from the model of the one before; return the last model."""
    model = start_model(run)
    for number, options in enumerate(run.arm.stages, start=1):
        stage = run.folder / f"stage{number}"
        if not (stage / "config.json").exists():
            shutil.rmtree(stage, ignore_errors=True)  # train.py rejects a folder with checkpoints
            own = {"model_name_or_path": model, "output_dir": stage, "seed": run.seed}
            command("train.py", stage, run.laboratory.train | options | own)
        model = str(stage)
    return model


def finish(run: Run) -> None:
    """Train and evaluate one arm with one seed, as far as it is missing."""
    if run.is_finished:
        return
    began = time.monotonic()
    model = train(run)
    for feedback in run.laboratory.feedback:
        folder = run.test_folder(feedback)
        if not (folder / "metrics.json").exists():
            # test.py rejects a folder with samples. Those of an interrupted evaluation are removed.
            (folder / "samples.jsonl").unlink(missing_ok=True)
            own = {"model_name_or_path": model, "output_dir": folder, "seed": run.seed}
            command("test.py", folder, run.laboratory.test | {"feedback": feedback} | run.arm.test | own)
    print(f"{run.lab}, seed {run.seed}: {run.name}, {time.monotonic() - began:.0f} s", flush=True)


def slug(name: str) -> str:
    """Return an arm's name as the name of a folder."""
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in name.lower()).split())


def collect(runs: Sequence[Run]) -> None:
    """Add the evaluations of runs to evaluations.csv, arm by arm."""
    evaluations = []
    for run in sorted(runs, key=lambda run: list(run.laboratory.arms).index(run.name)):
        for feedback in run.laboratory.feedback:
            name = f"{run.lab}/{run.name}/seed{run.seed}/{feedback}"
            evaluation = read_evaluation(run.test_folder(feedback), name)
            evaluations.append(evaluation._replace(visible="", edits=""))  # no table needs them
    merge_csv(evaluations, STUDY / "evaluations.csv")


def by_arm(
    evaluations: Iterable[Evaluation], lab: str, feedback: str | None = None
) -> dict[str, list[Evaluation]]:
    """Group a laboratory's evaluations by arm, in the order of the file."""
    groups: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        of_lab, arm, _, of_feedback = evaluation.folder.split("/")
        if of_lab == lab and feedback in (None, of_feedback):
            groups.setdefault(arm, []).append(evaluation)
    return groups


def plot_turns(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draw the accuracy of the second laboratory's arms over the turns: a panel per kind of feedback."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    arms = by_arm(evaluations, "feedback")
    styles = line_styles(list(arms))
    num_turns = max((len(evaluation.right_T) for own in arms.values() for evaluation in own), default=0)
    turns = range(1, num_turns + 1)
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 4.2), sharey=True, layout="constrained")
    for axes, feedback in zip(panels, FEEDBACK, strict=True):
        for arm, own in by_arm(evaluations, "feedback", feedback).items():
            values = [100 * mean(accuracy(e, str(turn)).value for e in own) for turn in turns]
            axes.plot(turns, values, label=arm, linewidth=1.2, markersize=5, **styles[arm])
        axes.set(title=f"feedback at test time: {feedback}", xlabel="turn", xticks=turns, ylim=(0, 103))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("held-out problems solved, %")
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})  # the same numbers give the same bytes
    pyplot.close(figure)


def line_styles(arms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return matplotlib's options of each arm's line: a colour per feedback in training, a marker per arm."""
    colors = {"verdict": "tab:orange", "error": "tab:green"}
    feedback = [next((kind for kind in colors if kind in arm), "none") for arm in arms]
    return {
        arm: {"color": colors.get(kind, "tab:gray"), "marker": MARKERS[feedback[:number].count(kind)]}
        for number, (arm, kind) in enumerate(zip(arms, feedback, strict=True))
    }


def main() -> None:
    """Run what is missing, then write tables and the figure."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=ROOT / "configs/toy/study.yaml", help="arms and seeds")
    parser.add_argument("--output_dir", type=Path, default=ROOT / "outputs/study", help="folder of its runs")
    parser.add_argument("--labs", nargs="+", help="laboratories to run (default: all)")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds to run (default: all)")
    parser.add_argument("--figures", action="store_true", help="only write tables and the figure")
    options = parser.parse_args()
    if not options.figures:
        study = load_study(options.config)
        if unknown := set(options.labs or ()) - study.keys():
            raise ValueError(f"--labs {' '.join(sorted(unknown))}: {options.config} has {', '.join(study)}")
        # Unfinished stages of the study are removed; nobody else's are.
        check_output_folder(options.output_dir, lambda folder: any((folder / lab).is_dir() for lab in study))
        runs = [run for run in all_runs(study, options.output_dir) if run.lab in (options.labs or study)]
        for run in runs:
            if run.seed in (options.seeds or [run.seed]):
                finish(run)
        if missing := [run for run in runs if not run.is_finished]:
            print(f"{len(missing)} of {len(runs)} runs are missing, so the page is left as it is")
            return
        collect(runs)
    plot_turns(load_csv(STUDY / "evaluations.csv", Evaluation), STUDY / "turns.png")
    write_pages()


if __name__ == "__main__":
    run_command(main)
