"""Output of a training run: its start, a line per log entry, examples of trajectories, and its end.

Loggers receive all metrics.
"""

import json
import math
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from cocos.config.eval_config import EvalConfig
from cocos.config.option import default_values, option_names
from cocos.dataprep.named_sets import parse_reference
from cocos.files.bundled import command_line
from cocos.generation.huggingface import slowness
from cocos.generation.progress import FILE_S, TERMINAL_S, BatchProgress
from cocos.rewards import Score
from cocos.training.checkpoints import evaluation_at, saved_step
from cocos.training.model_card import ModelCard
from cocos.training.monitor import DEAD, verdicts_text
from cocos.training.run_log import period_text
from cocos.trajectories import Trajectory

SHOWN = ("reward_t", "acc_t", "i2c_t", "c2i_t")
SHOWN_OTHERWISE = ("loss", "mean_token_accuracy")  # for supervised training, which has no turns
WIDTH = 96  # columns of an example, for a terminal of 100
MAX_LINES = 12  # lines of an example's program


def show_lines(trainer: Trainer) -> None:
    """Print one line per log entry, above a progress bar if the terminal can show one."""
    has_bar = not trainer.args.disable_tqdm and sys.stderr.isatty()
    trainer.remove_callback(ProgressCallback)
    trainer.remove_callback(PrinterCallback)
    lines = LineWithBar() if has_bar else LineCallback()
    trainer.add_callback(lines)
    if trainer.is_world_process_zero() and (player := getattr(trainer, "player", None)):
        player.progress = BatchProgress(lines.show_sampling, TERMINAL_S if has_bar else FILE_S)


class LineCallback(PrinterCallback):
    """Lines with the most important metrics, without a progress bar."""

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: dict[str, Any], **kwargs: Any
    ) -> None:
        """Print the line on the main process."""
        if state.is_world_process_zero and (line := format_line(logs)):
            self.write(f"update {state.global_step:>4} {line}{clock_text(logs, state.max_steps)}")

    def write(self, line: str) -> None:
        """Print a line."""
        print(line, flush=True)

    def show_sampling(self, text: str) -> None:
        """Print the progress of sampling; "" at its end."""
        if text:
            self.write(f"sampling: {text}")


class LineWithBar(LineCallback, ProgressCallback):
    """Progress bar with the most important metrics printed above it."""

    def write(self, line: str) -> None:
        """Print a line above the bar."""
        if self.training_bar is not None:
            self.training_bar.write(line)

    def show_sampling(self, text: str) -> None:
        """Show the progress of sampling behind the bar; "" at its end."""
        if self.training_bar is not None:
            self.training_bar.set_postfix_str(text)


def clock_text(logs: Mapping[str, Any], max_steps: int) -> str:
    """Return how long the run still takes. Example: ` (of 1500, 118 s each, 49 h left)`."""
    if "time/left_s" not in logs:
        return ""
    each_s, left = logs["time/each_s"], period_text(logs["time/left_s"])
    return f" (of {max_steps}, {each_s:.3g} s each, {left} left)"


def format_line(logs: dict[str, Any]) -> str:
    """Return the shown metrics as `name=value`, with `dev` in front for an evaluation; "" for no metrics."""
    is_dev = any(key.startswith("eval_") for key in logs)
    numbers = {key.removeprefix("eval_"): v for key, v in logs.items() if isinstance(v, (int, float))}
    shown = {k: v for k, v in numbers.items() if k.startswith(SHOWN)} or {
        k: v for k, v in numbers.items() if k in SHOWN_OTHERWISE
    }
    dead = numbers.get("frac_batches_dead", 0.0)
    of_some = "" if dead == 1 else f" in {100 * dead:.0f} % of the updates"
    lesson = f"; nothing learnt from rewards{of_some}: {DEAD}" if dead and shown else ""
    return ("dev " if is_dev and shown else "") + " ".join(f"{k}={v:.3f}" for k, v in shown.items()) + lesson


def example_text(trajectory: Trajectory, score: Score, advantage_K: Sequence[float]) -> str:
    """Return one trajectory in lines of at most 96 columns.

    Args:
        trajectory: A played trajectory.
        score: Its rewards.
        advantage_K: Advantages of the trained turns.

    """
    verdicts = [verdicts_text(turn.result) for turn in trajectory.turns]
    rewards = ["none" if reward is None else f"{reward:.2f}" for reward in score.rewards_T]
    advantages = [f"{value:+.2f}" for value in advantage_K]
    facts = f"tests {' -> '.join(verdicts)}; reward {' -> '.join(rewards)}; advantage {', '.join(advantages)}"
    program = trajectory.turns[-1].code.splitlines() or ["(no program)"]
    shown = program[:MAX_LINES] + ["..."] * (len(program) > MAX_LINES)
    task = f"{trajectory.problem.task_id}: {trajectory.problem.text}"
    return "\n".join(
        [
            f"  {textwrap.shorten(task, WIDTH - 2, placeholder=' ...')}",
            *(f"  {line}" for line in textwrap.wrap(facts, WIDTH - 2)),
            *(_cut(f"  | {line}") for line in shown),
        ]
    )


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."


PROBLEMS = "PROBLEMS.jsonl"  # in a command whose file of problems only the user knows

# Options that a model should be evaluated with as it was trained.
EVALUATED_AS_TRAINED = option_names(EvalConfig, "wording", "prompt", "rule", "length", "executor")


class StartLines(TrainerCallback):
    """Lines about a run that begins: model, device, batch, updates, output and loggers.

    Args:
        card: Facts of the run.
        checkpoint: Checkpoint that the run continues from; None: it starts anew.

    """

    def __init__(self, card: ModelCard, checkpoint: str | None) -> None:
        self.card = card
        self.checkpoint = checkpoint

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: Any, model: nn.Module, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero:
            print(start_lines(self.card, args, state, model, self.checkpoint), flush=True)


def start_lines(
    card: ModelCard, args: TrainingArguments, state: TrainerState, model: nn.Module, checkpoint: str | None
) -> str:
    """Return three lines about a run that begins, and the first prompt."""
    factors = (args.world_size, args.per_device_train_batch_size, args.gradient_accumulation_steps)
    batch = f"{' x '.join(map(str, factors))} = {math.prod(factors)}"
    updates = f"{state.max_steps} update{'s' * (state.max_steps != 1)}"
    start = f"continues after update {state.global_step} ({checkpoint})" if checkpoint else "from the start"
    if checkpoint and state.global_step >= state.max_steps:
        start += ": none is left; raise --max_steps to go on"
    sample = "trajectories" if card.stage == "CoCoS" else "rows"
    loggers = ", ".join(args.report_to) or "no logger"
    count = card.num_rows.get(getattr(args, "train_data", None), 0)
    per_update = math.prod(factors) // getattr(args, "num_generations", 1)
    passes = f"{state.max_steps * per_update / count:.1f} passes over {count} " if count else ""
    units = passes and ("problems, " if card.stage == "CoCoS" else "rows, ")
    isolation = f"; programs isolated by {card.record['isolation']}" if "isolation" in card.record else ""
    return (
        f"{card.stage}: {card.options['model_name_or_path']}, {_parameters_text(model)}; "
        f"{_device_text(args)}, {_precision_text(args, model)}\n"
        f"{updates} of {batch} {sample} (processes x batch x accumulation), {passes}{units}{start}\n"
        f"saves to {args.output_dir}; logs to {loggers}{isolation}\n"
        f"first prompt:\n{textwrap.indent(card.first_message.strip(), '  | ', lambda line: True)}"
    )


def end_lines(card: ModelCard, args: TrainingArguments, state: TrainerState, remarks: Sequence[str]) -> str:
    """Return lines about a finished run: remarks, the saved weights, their folder, and what comes next."""
    step = saved_step(state, args.load_best_model_at_end)
    if args.load_best_model_at_end:
        metric = str(args.metric_for_best_model).removeprefix("eval_")
        value = evaluation_at(state, step).get(metric, float("nan"))
        weights = f"best checkpoint: update {step} of {state.max_steps}, dev {metric} {value:.3f}"
    else:
        weights = f"final weights, after update {step}"
    following = [f"stage 2: {_cocos_command(args)}"] if card.stage == "Boost" else []
    following.append(f"evaluate it: {_test_command(card, args)}")
    if any(PROBLEMS in line for line in following):
        following.insert(0, f"next, with your file of problems for {PROBLEMS}:")
    return "\n".join([*remarks, weights, f"model saved in {args.output_dir}", *following])


def _cocos_command(args: TrainingArguments) -> str:
    """Return the command of the stage after Boost, whose problems this stage does not know."""
    words = ("--model_name_or_path", args.output_dir, "--train_data", PROBLEMS)
    folder = f"{os.path.normpath(str(args.output_dir))}_cocos"
    return command_line("train", *words, "--output_dir", folder)


def _test_command(card: ModelCard, args: TrainingArguments) -> str:
    """Return the command that evaluates the saved model, on the test data of the training data if any."""
    options: dict[str, Any] = {
        "model_name_or_path": args.output_dir,
        "test_data": _test_data(card.options["train_data"]),
        "output_dir": f"{os.path.normpath(str(args.output_dir))}_eval",
    }
    defaults = default_values(EvalConfig)
    trained = {name: card.options.get(name, defaults[name]) for name in EVALUATED_AS_TRAINED}
    options |= {name: value for name, value in trained.items() if value != defaults[name]}
    words: list[str] = []
    for name, value in options.items():
        text = value if isinstance(value, str | list) else json.dumps(value)
        words += [f"--{name}", *([text] if isinstance(text, str) else text)]
    return command_line("eval", *words)


def _test_data(train_data: str) -> str:
    """Return the test data that belong to training data: the file beside them, or the split of their set."""
    beside = Path(train_data).parent / "test.jsonl"
    if beside.exists():
        return str(beside)
    chosen = parse_reference(train_data) if train_data.startswith("hub:") else None
    return f"hub:{chosen.source.name}/test" if chosen and "test" in chosen.source.splits else PROBLEMS


def _parameters_text(model: nn.Module) -> str:
    # Under ZeRO-3 a parameter is empty until it is gathered; DeepSpeed keeps its size in ds_numel.
    sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in model.parameters()]
    total, trained = sum(size for size, _ in sizes), sum(size for size, is_trained in sizes if is_trained)
    text = f"{total / 1e6:,.1f} M parameters"
    return text if trained == total else f"{text}, {trained / 1e6:,.4g} M of them trained (LoRA)"


def _device_text(args: TrainingArguments) -> str:
    return torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else str(args.device)


def _precision_text(args: TrainingArguments, model: nn.Module) -> str:
    weights = str(next(model.parameters()).dtype).removeprefix("torch.")
    autocast = "bfloat16" if args.bf16 else "float16" if args.fp16 else None
    text = f"{weights} with {autocast} autocast" if autocast and autocast != weights else weights
    return text + slowness(autocast or weights, args.device, "--dtype float32 --bf16 false")
