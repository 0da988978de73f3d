"""Play from nothing what docs/results cites of a real model: untrained arms, profile, Boost, RL.

    python scripts/real.py 0.5b            # make real MODEL=0.5b: prints the steps left, and plays them
    python scripts/real.py 0.5b --small    # LIMIT=small: the path, with a few problems, updates and arms

A step is a command that makes a file. It is skipped if the file exists, and continues if it was interrupted:
the same command goes on. configs/qwen2.5-coder-MODEL-instruct has the recipe and the minutes of the steps;
results go to outputs/real/MODEL, and those of --small to outputs/real/MODEL-small.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser

PUBLIC = Path("data/public/mbpp")
# What a prompt has of the turns before, and how a turn is sampled. Two tests are visible in every arm; a
# trajectory stops when a program passes them.
UNTRAINED = {
    "Gk": "--carry nothing --num_turns 5 --temperature 0 0.8",
    "A": "--carry counterexamples --prompt_tests 0 --num_turns 5 --temperature 0 0 0 0.8",
    "A+": "--carry counterexamples --prompt_tests 0 --feedback error --num_turns 5 --temperature 0 0 0 0.8",
    "B2": "--feedback error --num_turns 3",
    "B2s": "--feedback error --num_turns 5 --temperature 0 0.8",
    "C": "--carry nothing --prompt_tests 0 --num_turns 5 --temperature 0.8",
    "D": "--carry counterexamples --feedback error --placebo notice --num_turns 3 --temperature 0 0.8",
    "E": "--carry counterexamples --feedback error --placebo other --num_turns 3 --temperature 0 0.8",
    "F": "--carry counterexamples --feedback error --placebo wrong --num_turns 3 --temperature 0 0.8",
}
ARMS = {"0.5b": list(UNTRAINED), "1.5b": ["Gk", "A", "B2", "B2s"]}
TRAINED = {  # RL, of 0.5B alone: what turns see in training, and in the evaluation of what came out
    "single": "--carry nothing",
    "G+": "--carry counterexamples --feedback error",
}


class Step(NamedTuple):
    """A command and the file that it makes, both below the output folder."""

    name: str
    made: Path
    words: str  # of the command

    def play(self) -> None:
        """Run the command. A training continues from its last checkpoint, other commands by themselves."""
        words = self.words.split()
        if list(self.made.parent.glob("checkpoint-*/trainer_state.json")):
            words += ["--resume_from_checkpoint", "last"]
        if status := subprocess.run([sys.executable, *words]).returncode:
            sys.exit(status)


def steps(model: str, out: Path, problems: list[Path], is_small: bool) -> Iterator[Step]:
    """Yield all steps in their order.

    Args:
        problems: Files that RL selects from, beside MBPP's training problems.

    """
    name = f"qwen2.5-coder-{model}"
    configs, base = f"configs/{name}-instruct", f"models/Qwen2.5-Coder-{model.upper()}-Instruct"
    data = out / "data" if is_small else PUBLIC
    boost, train_set = f"{out}/boost/model", data / "train.jsonl"
    few_tokens = " --max_completion_length 64" if is_small else ""
    few_updates = (
        f"{few_tokens} --max_steps 2 --global_batch_size 8 --max_truncated_share 1" if is_small else ""
    )

    def evaluate(name: str, weights: str, file: Path, options: str) -> Step:
        words = (
            f"test.py --config {configs}/eval.yaml --model_name_or_path {weights} --test_data {file} --resume"
        )
        words += f" --output_dir {out}/{name} {options}{few_tokens}"
        return Step(name, out / name / "metrics.json", words)

    yield Step("model", Path(base, "config.json"), f"scripts/fetch_model.py {name}")
    untrained = f"--protocol cocos-fewshot --few_shot_data {out}/examples.jsonl"
    arms = ARMS[model][: 2 if is_small else None]
    for arm in arms:
        yield evaluate(f"untrained/mbpp/{arm}", base, data / "test.jsonl", f"{untrained} {UNTRAINED[arm]}")
    played = [f"{out}/untrained/mbpp/{arm}" for arm in arms]

    def report() -> Step:
        words = f"-m cocos report {' '.join(played)} --output_dir {out}/report"
        return Step("report", out / "report/report.html", words)

    if model != "0.5b":
        yield report()
        return
    # RL of single attempts, from the untrained model with its examples: docs/results, "The published rate".
    single = f"{untrained} {TRAINED['single']} --num_turns 1"
    words = f"train.py --config {configs}/cocos.yaml --model_name_or_path {base} --seed 0 {single}"
    words += f" --train_data {train_set} --dev_data {data}/validation.jsonl"
    words += f" --output_dir {out}/rate/model{few_updates or ' --max_steps 46'}"  # each problem once
    yield Step("rate/model", out / "rate/model/adapter_config.json", words)
    for name, weights in (("untrained", base), ("trained", f"{out}/rate/model")):
        for kind, options in (("greedy", ""), ("sampled", " --num_samples 4 --temperature 0.8")):
            yield evaluate(f"rate/{name}-{kind}", weights, data / "test.jsonl", single + options)
    yield evaluate(
        "rate/trained-again", f"{out}/rate/model", data / "test.jsonl", f"{untrained} {UNTRAINED['Gk']}"
    )

    samples = "--num_turns 1 --num_samples 4 --temperature 0.8 --max_completion_length 160"
    yield evaluate("profile/mbpp-2", base, train_set, f"{untrained} {samples} --prompt_tests 2")

    # Right programs under prompts with 0, 1 and 2 tests, so that RL does not spend its updates on the format.
    rows = {
        "0": "--carry nothing --prompt_tests 0",
        "1": "--carry nothing --prompt_tests 1",
        "2": "--carry counterexamples --feedback error",
    }
    for tests, options in rows.items():
        words = f"scripts/make_boost_data.py --output {out}/boost/rows-{tests}.jsonl --train_data {train_set}"
        words += f" --samples {out}/profile/mbpp-2 --model_name_or_path {base} --prompt_signature true"
        words += f" --corrections own --first_turns right --pairs_per_problem 3 --seed 0 {options}"
        yield Step(f"boost/rows-{tests}", out / f"boost/rows-{tests}.jsonl", words)
    words = f"boost/boost_train.py --config {configs}/boost.yaml --model_name_or_path {base} --seed 0"
    words += f" --train_data {out}/boost/rows.jsonl --output_dir {boost}" + " --max_steps 2" * is_small
    yield Step("boost/model", Path(boost, "adapter_config.json"), words)

    # RL learns from the problems that the Boost model solves now and then.
    pairs = ""
    for file in [train_set, *problems]:
        profile = f"profile/boost-{file.parent.name}-{file.stem}"
        yield evaluate(profile, boost, file, f"--protocol cocos {samples}")
        pairs += f" {file} {out}/{profile}"
    words = f"scripts/select_problems.py{pairs} --output {out}/train.jsonl --solved"
    yield Step("problems", out / "train.jsonl", words + (" 0 1" if is_small else " 0.05 0.9"))
    for arm, carried in TRAINED.items():
        words = f"train.py --config {configs}/cocos.yaml --model_name_or_path {boost} --seed 0"
        words += f" --train_data {out}/train.jsonl --dev_data {data}/validation.jsonl"
        words += f" --output_dir {out}/rl/{arm}-0 {carried}{few_updates}"
        words += f" --num_turns {1 if arm == 'single' else 3}"
        yield Step(f"rl/{arm}-0", out / f"rl/{arm}-0/adapter_config.json", words)

    # Each model resampled, and as it was trained.
    models = [("boost", boost, "single"), *((f"{arm}-0", f"{out}/rl/{arm}-0", arm) for arm in TRAINED)]
    for name, weights, arm in models:
        for carried, kind in {TRAINED[arm]: arm, TRAINED["single"]: "Gk"}.items():
            options = f"--protocol cocos --num_turns 5 --temperature 0 0.8 {carried}"
            played.append(f"{out}/trained/mbpp/{name}-{kind}")
            yield evaluate(f"trained/mbpp/{name}-{kind}", weights, data / "test.jsonl", options)
    yield report()


def prepare(out: Path, is_small: bool) -> None:
    """Write MBPP's usual three examples, and for `is_small` the first problems of each set."""
    out.mkdir(parents=True, exist_ok=True)
    lines = (PUBLIC / "prompt.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (out / "examples.jsonl").write_text("".join(lines[1:4]), encoding="utf-8")
    for split in ("train", "validation", "test") if is_small else ():
        lines = (PUBLIC / f"{split}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (out / "data").mkdir(exist_ok=True)
        (out / f"data/{split}.jsonl").write_text("".join(lines[:4]), encoding="utf-8")


def recorded_minutes(model: str) -> dict[str, float]:
    """Return the minutes that steps took, by their names."""
    file = Path(f"configs/qwen2.5-coder-{model}-instruct/minutes.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def main() -> None:
    """Print the steps that are left, and play them."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("model", choices=ARMS, help="size of Qwen2.5-Coder-Instruct")
    parser.add_argument("--small", action="store_true", help="a few problems, updates and arms: the path")
    parser.add_argument(
        "--problems", nargs="+", type=Path, default=[], help="files that RL selects from, beside MBPP train"
    )
    args = parser.parse_args()
    out = Path("outputs/real", args.model + "-small" * args.small)
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # when weights are loaded
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # idle threads leave the processor to the programs under test
    prepare(out, args.small)
    minutes = {} if args.small else recorded_minutes(args.model)
    left = [step for step in steps(args.model, out, args.problems, args.small) if not step.made.exists()]
    for step in left:
        print(f"{step.name}: {minutes.get(step.name, 'not measured')}")
    known = sum(minutes.get(step.name, 0) for step in left)
    print(f"{len(left)} steps left; those with recorded minutes take {known / 60:.1f} hours on one core")
    for number, step in enumerate(left, 1):
        print(f"\n=== {number} of {len(left)}: {step.name} ({time.strftime('%H:%M')})", flush=True)
        began = time.monotonic()
        if step.name == "boost/model":
            parts = sorted((out / "boost").glob("rows-*.jsonl"))
            lines = "".join(part.read_text(encoding="utf-8") for part in parts)
            (out / "boost/rows.jsonl").write_text(lines, encoding="utf-8")
        step.play()
        with (out / "minutes.csv").open("a") as file:
            file.write(f"{step.name},{(time.monotonic() - began) / 60:.1f}\n")


if __name__ == "__main__":
    run_command(main)
