"""Training for tests: single rollouts in this process, and whole runs as processes that can be interrupted."""

import functools
import sys

from cocos.problems import load_problems
from tests.support.commands import start
from tests.support.paths import TOY

# Source that a process runs before train.py: it sends itself a signal at a known place in an update.
SIGNAL_IN_UPDATE = """
import os, signal
from cocos.training.trainer import CoCoSTrainer
rows = CoCoSTrainer.rows
def signalled(trainer, trajectories):  # the programs of update {update} have run, its gradients are to come
    if trainer.state.global_step == {update} - 1:
        os.kill(os.getpid(), signal.{signal})
    return rows(trainer, trajectories)
CoCoSTrainer.rows = signalled
"""

# Options of a run whose first update changes no bit of the weights, and whose second destroys the model.
DESTRUCTIVE_AFTER_ONE = {
    "lr_scheduler_type": "cosine_warmup_with_min_lr",
    "lr_scheduler_kwargs": {"warmup_lr_rate": 1e-30, "min_lr_rate": 1.0},
    "warmup_steps": 2,
    "learning_rate": 5.0,
}


@functools.cache
def toy_problems(name="train"):
    """Return the problems of a file of the laboratory; reading the 2,000 for every trainer would take longer than its updates."""
    return load_problems(TOY / f"{name}.jsonl")


def short_run(data, out, *words):
    """Return options of train.py: 16 trajectories an update in one micro-batch, and no evaluation."""
    return (
        *("--config", "configs/toy/cocos.yaml", "--model_name_or_path", TOY / "base", "--dev_data", ""),
        *("--train_data", data / "train.jsonl", "--global_batch_size", 16, "--max_completion_length", 40),
        *("--per_device_train_batch_size", 16, "--save_strategy", "steps", "--output_dir", out, *words),
    )


def long_run(data, out):
    """Return options of train.py: six updates in two micro-batches each, an evaluation after every second one."""
    options = ("--dev_data", data / "dev.jsonl", "--max_steps", 6, "--save_steps", 2, "--eval_steps", 2)
    options += ("--per_device_train_batch_size", 8, "--disable_tqdm", True, "--beta", 0.01)
    return short_run(data, out, *options, "--lr_scheduler_type", "cosine", "--learning_rate", 1e-3)


def play(trainer, num_problems=4, numbers=None):
    """Return the trajectories of the first problems, or of these ones, and the inputs that request them."""
    group = trainer.args.num_generations
    inputs = [{"index": i} for i in numbers or range(num_problems) for _ in range(group)]
    return inputs, trainer.player.sample([trainer.prompts[i["index"]] for i in inputs])


def fractions(trajectory):
    """Return the share of passed tests of every turn."""
    return [turn.result.num_passed / len(turn.result.verdicts) for turn in trajectory.turns]


def process(script, *words, before=""):
    """Start a script in a new process, after the source in `before`; return the running command."""
    source = f"import runpy\n{before}\nrunpy.run_path({script!r}, run_name='__main__')"
    return start(sys.executable, "-c", source, *words)
