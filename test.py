"""Evaluation: play every problem over N turns and report accuracy per turn, and what changed between turns.

    python test.py --model_name_or_path MODEL --test_data problems.jsonl --num_turns 2 --output_dir OUT

Writes samples.jsonl (one row per trajectory, as it is finished), metrics.json, run.json and the report, and
prints the table.
"""

import json
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import set_seed

from cocos.cli import parse, run
from cocos.config import EvalConfig, open_executor, prompt_protocol
from cocos.generation.opening import open_generator
from cocos.metrics import summary
from cocos.problems import load_problems, sha256
from cocos.records import as_row, resolved, save_json
from cocos.report import save_report, show
from cocos.rollout import Trajectory, begin, check_executed, rollout


def main() -> None:
    """The story of an evaluation."""
    (args,) = parse((EvalConfig,), __doc__)
    problems = load_problems(args.test_data)[args.start :][: args.limit]
    if not problems:
        raise ValueError(f"--start {args.start} --limit {args.limit} leaves no problem of {args.test_data}")
    protocol = prompt_protocol(args)
    output_dir = Path(args.output_dir)
    samples = output_dir / "samples.jsonl"
    if samples.exists():
        raise ValueError(f"{samples} exists; choose another --output_dir or remove it")
    set_seed(args.seed)
    generator = open_generator(args)
    output_dir.mkdir(parents=True, exist_ok=True)
    trajectories: list[Trajectory] = []
    with (
        open_executor(args) as executor,
        samples.open("w", encoding="utf-8") as file,
        tqdm(total=len(problems)) as bar,
    ):
        print(f"executor isolation: {executor.isolation}")
        facts = resolved(
            args,
            data_sha256={args.test_data: sha256(args.test_data)},
            isolation=executor.isolation,
            feedback="none",
        )
        save_json(facts, output_dir / "run.json")
        for start in range(0, len(problems), args.batch_size):
            batch = problems[start : start + args.batch_size]
            played = rollout(begin(batch, args.num_samples), generator, executor, protocol, args.num_turns)
            for trajectory in played:
                file.write(json.dumps(as_row(trajectory), ensure_ascii=False) + "\n")
            file.flush()
            trajectories += played
            check_executed(trajectories, args.max_infra_share)
            bar.update(len(batch))
    metrics = summary(trajectories)
    save_json(metrics, output_dir / "metrics.json")
    save_report({output_dir.name: metrics}, output_dir)
    show({output_dir.name: metrics})
    print(f"written to {output_dir}: samples.jsonl metrics.json run.json report.md report.png")


if __name__ == "__main__":
    with torch.inference_mode():
        run(main)
