"""Evaluation of a model: play every problem over N turns and report the accuracy per turn and the changes.

    python test.py --model_name_or_path MODEL --test_data problems.jsonl --num_turns 2 --output_dir OUT
    python test.py ... --num_samples 16 --temperature 0.8 0.2     pass@k; a temperature per turn
    python test.py ... --feedback error --early_stop              prompts quote the failed test
    python test.py ... --resume                                   resume an interrupted run
    python test.py ... --answers buggy                            the model repairs given buggy programs
    accelerate launch --num_processes 4 test.py ...               problems distributed over processes

Writes samples.jsonl (a row per trajectory, on the disk as soon as its batch is played), metrics.json,
run.json and the report, and prints the table. docs/evaluation.md explains the details.
"""

from cocos.entry_point import exit_on_ctrl_c, run_command


def main() -> None:
    """Play the problems, write the metrics and the report, and print the table."""
    from pathlib import Path

    from cocos.assembly import plan_trajectories, prompt_protocol
    from cocos.config.command_line import parse_options
    from cocos.config.eval_config import EvalConfig
    from cocos.evaluation.sample_files import finished_work
    from cocos.files.run_record import check_output_folder

    args = parse_options(EvalConfig, __doc__)
    output_dir = Path(args.output_dir)
    check_output_folder(output_dir)
    exit_on_ctrl_c(lambda: finished_work(output_dir))

    # These imports take seconds; --help and errors in options do not wait for them.
    from cocos.evaluation.generator import open_generator
    from cocos.evaluation.resumption import open_run_executor
    from cocos.evaluation.run import evaluate, merge_and_summarize, start_line, start_or_resume
    from cocos.files.durable import save_json
    from cocos.report.finished_runs import load_runs
    from cocos.report.report_files import print_tables, save_report

    protocol = prompt_protocol(args)
    trajectories = plan_trajectories(args, protocol)
    with (
        open_run_executor(args, trajectories) as executor,
        start_or_resume(args, trajectories, executor) as evaluation,
    ):
        evaluation.state.print(start_line(evaluation, protocol))
        if evaluation.missing:
            evaluate(evaluation, open_generator(args, evaluation.state.print), protocol)
        metrics = merge_and_summarize(evaluation)
    if metrics is None:  # only rank 0 reports
        return
    save_json(metrics, output_dir / "metrics.json")
    runs = load_runs([output_dir])
    save_report(runs, output_dir)
    print_tables(runs)
    print(
        f"written to {output_dir}: samples.jsonl metrics.json run.json report.md report.html\n"
        f"open {output_dir / 'report.html'} in a browser"
    )


if __name__ == "__main__":
    run_command(main)
