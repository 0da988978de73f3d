"""Summary of a training run in the terminal: what starts, and what was made.

Does not know what is trained; the model card has the facts of the run.
"""

import math
import os
import shlex
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from cocos.config.eval_config import EvalConfig
from cocos.training.artifacts.model_card import ModelCard, evaluation_at, saved_step

# Options that a model should be evaluated with as it was trained.
EVALUATED_AS_TRAINED = (
    *("num_turns", "protocol", "few_shot_data", "max_completion_length"),
    *("feedback", "feedback_failures", "feedback_chars", "early_stop"),
    *("on_repeat", "visible_tests", "prompt_tests"),
)


class StartLines(TrainerCallback):
    """Lines about a run that begins: model, device, batch, updates, output and loggers.

    Args:
        card: Facts of the run.
        checkpoint: Checkpoint that the run continues from; None: it starts at step 0.

    """

    def __init__(self, card: ModelCard, checkpoint: str | None) -> None:
        self.card = card
        self.checkpoint = checkpoint

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        if state.is_world_process_zero and model is not None:
            print(start_lines(self.card, args, state, model, self.checkpoint), flush=True)


def start_lines(
    card: ModelCard,
    args: TrainingArguments,
    state: TrainerState,
    model: nn.Module,
    checkpoint: str | None,
) -> str:
    """Return three lines about a run that begins, and the first prompt."""
    factors = (args.world_size, args.per_device_train_batch_size, args.gradient_accumulation_steps)
    batch = f"{' x '.join(map(str, factors))} = {math.prod(factors)}"
    updates = f"{state.max_steps} update{'s' * (state.max_steps != 1)}"
    start = f"continues after update {state.global_step} ({checkpoint})" if checkpoint else "from the start"
    sample = "trajectories" if card.stage == "CoCoS" else "rows"
    loggers = ", ".join(args.report_to) or "no logger"
    isolation = f"; programs isolated by {card.record['isolation']}" if "isolation" in card.record else ""
    return (
        f"{card.stage}: {card.options['model_name_or_path']}, {_parameters_text(model)}; "
        f"{_device_text(args)}, {_precision_text(args, model)}\n"
        f"{updates} of {batch} {sample} (processes x batch x accumulation), {start}\n"
        f"saves to {args.output_dir}; logs to {loggers}{isolation}\n"
        f"first prompt:\n{textwrap.indent(card.first_message.strip(), '  | ', lambda line: True)}"
    )


def end_lines(card: ModelCard, args: TrainingArguments, state: TrainerState) -> str:
    """Return three lines about a finished run: the saved weights, their folder, how to evaluate them."""
    step = saved_step(state, args.load_best_model_at_end)
    if args.load_best_model_at_end:
        metric = str(args.metric_for_best_model).removeprefix("eval_")
        value = evaluation_at(state, step).get(metric, float("nan"))
        weights = f"best checkpoint: update {step} of {state.max_steps}, dev {metric} {value:.3f}"
    else:
        weights = f"final weights, after update {step}"
    return f"{weights}\nmodel saved in {args.output_dir}\nevaluate it: {_test_command(card, args)}"


def _test_command(card: ModelCard, args: TrainingArguments) -> str:
    """Return the command that evaluates the saved model, on the test file beside the training data if any."""
    sibling = Path(card.options["train_data"]).parent / "test.jsonl"
    options = {
        "model_name_or_path": args.output_dir,
        "test_data": str(sibling) if sibling.exists() else "test.jsonl",
        "output_dir": f"{os.path.normpath(str(args.output_dir))}_eval",
    }
    defaults = {option.name: option.default for option in fields(EvalConfig)}
    for name in EVALUATED_AS_TRAINED:
        if card.options.get(name, defaults[name]) != defaults[name]:
            options[name] = str(card.options[name])
    return shlex.join(["python", "test.py", *(w for k, v in options.items() for w in (f"--{k}", str(v)))])


def _parameters_text(model: nn.Module) -> str:
    # Under ZeRO-3 a parameter is empty until it is gathered; DeepSpeed keeps its size in ds_numel.
    sizes = [(getattr(p, "ds_numel", p.numel()), p.requires_grad) for p in model.parameters()]
    total, trained = sum(size for size, _ in sizes), sum(size for size, is_trained in sizes if is_trained)
    text = f"{_count_text(total)} parameters"
    return text if trained == total else f"{text}, {_count_text(trained)} of them trained (LoRA)"


def _count_text(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.2f} B"
    return f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"


def _device_text(args: TrainingArguments) -> str:
    return torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else str(args.device)


def _precision_text(args: TrainingArguments, model: nn.Module) -> str:
    weights = str(next(model.parameters()).dtype).removeprefix("torch.")
    autocast = "bfloat16" if args.bf16 else "float16" if args.fp16 else None
    return f"{weights} with {autocast} autocast" if autocast and autocast != weights else weights
