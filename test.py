"""Evaluation: play every problem over N turns and report accuracy per turn, and what changed between turns.

    python test.py --model_name_or_path MODEL --test_data problems.jsonl --num_turns 2 --output_dir OUT
    python test.py ... --num_samples 16 --temperature 0.8 0.2     pass@k; a temperature per turn
    python test.py ... --feedback error --early_stop              what failed is told; reported apart
    python test.py ... --resume                                   continue a run that was interrupted
    accelerate launch --num_processes 4 test.py ...               problems spread over processes

Writes samples.jsonl (a row per trajectory, on the disk as soon as its batch is played), metrics.json,
run.json and the report, and prints the table. docs/evaluation.md says more.
"""

from pathlib import Path

import torch

from cocos.cli import parse, run
from cocos.config import EvalConfig, open_executor, prompt_protocol
from cocos.evaluation import chosen_problems, evaluate, finish, join_ranks, open_run
from cocos.generation.opening import open_generator
from cocos.records import save_json
from cocos.report import load_runs, save_report, show


def main() -> None:
    """The story of an evaluation."""
    (args,) = parse((EvalConfig,), __doc__)
    problems, protocol = chosen_problems(args), prompt_protocol(args)
    state = join_ranks()
    with open_executor(args) as executor, open_run(args, problems, executor, state) as samples:
        state.print(
            f"executor isolation: {executor.isolation}; {len(samples.missing)} of "
            f"{len(problems) * args.num_samples} trajectories to play"
        )
        if samples.missing:
            evaluate(samples, args, problems, open_generator(args), executor, protocol)
        metrics = finish(samples, args, problems, executor)
    if metrics is None:  # rank 0 reports
        return
    output_dir = Path(args.output_dir)
    save_json(metrics, output_dir / "metrics.json")
    runs = load_runs([output_dir])
    save_report(runs, output_dir)
    show(runs)
    print(
        f"written to {output_dir}: samples.jsonl metrics.json run.json, and to be read: report.html report.md"
    )


if __name__ == "__main__":
    with torch.inference_mode():
        run(main)
