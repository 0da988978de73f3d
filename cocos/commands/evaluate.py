"""Evaluation of a model: play every problem over N turns and report the accuracy per turn and the changes.

    cocos eval --model_name_or_path MODEL --test_data problems.jsonl --num_turns 2 --output_dir OUT
    cocos eval ... --num_samples 16 --temperature 0.8 0.2     pass@k; a temperature per turn
    cocos eval ... --feedback error --early_stop              prompts quote the failed test
    cocos eval ... --test_data hub:mbpp/test hub:humaneval    several sets with one loaded model
    cocos eval ... --model_name_or_path A B C                 several models, and a report that compares them
    cocos eval ... --resume                                   resume an interrupted run
    cocos eval ... --answers buggy                            the model repairs given buggy programs
    accelerate launch --num_processes 4 test.py ...               problems distributed over processes

Writes samples.jsonl (a row per trajectory, on the disk as soon as its batch is played), metrics.json,
run.json and the report, and prints the table. docs/evaluation.md explains the details.
"""

from typing import TYPE_CHECKING

from cocos.commands.runner import exit_on_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cocos.config.eval_config import EvalConfig
    from cocos.evaluation.run import Outcome
    from cocos.evaluation.sample_rows import SampleRow


def main() -> None:
    """Play the problems, write the metrics and the report, and print the table."""
    from functools import partial
    from pathlib import Path

    from cocos.config.command_line import OptionParser
    from cocos.config.eval_config import EvalSuiteConfig
    from cocos.config.ranks import is_main_process
    from cocos.evaluation.sample_files import check_folders, finished_work

    parser = OptionParser(EvalSuiteConfig, __doc__)
    suite = parser.parse()
    output_dir, configs = Path(suite.output_dir), suite.runs()
    if is_main_process():  # its first files make the folder the run's own
        check_folders(output_dir, [Path(args.output_dir) for args in configs])
    exit_on_ctrl_c(partial(finished_work, output_dir))
    if rows := play(configs, is_protocol_given=parser.gives("protocol")):
        save_reports(rows, output_dir, len({args.model_name_or_path for args in configs}))


def play(configs: "Sequence[EvalConfig]", is_protocol_given: bool) -> "dict[Path, Sequence[SampleRow]]":
    """Evaluate each model on each set; each model is loaded once.

    Returns:
        Folder of an evaluation -> its rows, on rank 0; {} on the others.

    """
    # These imports take seconds; --help and errors in options do not wait for them.
    import sys
    from functools import partial
    from pathlib import Path

    from cocos.assembly.data import plan_trajectories
    from cocos.assembly.prompts import prompt_protocol
    from cocos.evaluation.generator import chat_template_warning, open_generator
    from cocos.evaluation.resumption import open_run_executor
    from cocos.evaluation.run import evaluate, merge_and_summarize, start_line, start_or_resume
    from cocos.evaluation.sample_files import finished_work

    check_models(configs)
    protocol = prompt_protocol(configs[0])
    # All of them first, so that a mistake in the last set is found before the first is played.
    plans = [(args, Path(args.output_dir), plan_trajectories(args, protocol)) for args in configs]
    generator, loaded = None, ""
    rows: dict[Path, Sequence[SampleRow]] = {}
    for args, folder, trajectories in plans:
        exit_on_ctrl_c(partial(finished_work, folder))
        with (
            open_run_executor(args, trajectories) as executor,
            start_or_resume(args, trajectories, executor) as evaluation,
        ):
            evaluation.state.print(start_line(evaluation, protocol))
            if evaluation.missing:
                if generator is None or loaded != args.model_name_or_path:
                    generator = None  # makes room for the next model
                    generator, loaded = open_generator(args, evaluation.state.print), args.model_name_or_path
                    if not is_protocol_given and (warning := chat_template_warning(args, generator)):
                        evaluation.state.print(warning, file=sys.stderr)
                evaluate(evaluation, generator, protocol)
            outcome = merge_and_summarize(evaluation)
        if outcome is not None:  # only rank 0 reports
            rows[folder] = save_outcome(outcome, folder, is_alone=len(plans) == 1)
    return rows


def check_models(configs: "Sequence[EvalConfig]") -> None:
    """Check the files of several models: a mistake in the last is found before the first is loaded."""
    from cocos.generation.checkpoint_files import check_checkpoint

    models = dict.fromkeys(args.model_name_or_path for args in configs)
    if len(models) > 1 and configs[0].generator != "api":
        for model in models:
            check_checkpoint(model)


def save_outcome(outcome: "Outcome", folder: "Path", is_alone: bool) -> "Sequence[SampleRow]":
    """Write the metrics and, of one among several evaluations, the report; return the rows."""
    from cocos.files.durable import save_json
    from cocos.report.contents import Report
    from cocos.report.finished_runs import load_runs
    from cocos.report.report_files import save_report

    save_json(outcome.metrics, folder / "metrics.json")
    if not is_alone:
        save_report(Report(load_runs([folder], {folder: outcome.rows})), folder)
    return outcome.rows


def save_reports(rows: "Mapping[Path, Sequence[SampleRow]]", output_dir: "Path", num_models: int) -> None:
    """Write and print the report of several models per set, or of one model over all sets.

    Args:
        rows: Folder of an evaluation -> its rows.

    """
    from cocos.report.comparisons import compare_runs
    from cocos.report.contents import Report
    from cocos.report.finished_runs import load_runs
    from cocos.report.report_files import print_tables, save_report

    places = {output_dir: list(rows)}
    if num_models > 1:
        places = {folder.parent: [] for folder in rows}
        for folder in rows:
            places[folder.parent].append(folder)
    each = f" over all {'models' if num_models > 1 else 'sets'}, and a folder for each with"
    for place, compared in places.items():
        runs = load_runs(compared, rows)
        report = Report(runs, compare_runs(runs) if num_models > 1 else [])
        written = save_report(report, place)  # before the tables, whose reader may close the pipe
        print_tables(report)
        print(f"written to {place}: {written}{each if len(compared) > 1 else ''} {SAMPLES}")
        print(f"open {place / 'report.html'} in a browser")


SAMPLES = "samples.jsonl metrics.json run.json"
