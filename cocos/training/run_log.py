"""Where a training run logs: log.jsonl in its output folder, and the loggers of --report_to, such as wandb.

log.jsonl has every log entry, warning and example as it comes, and can be read while the run goes on. A
resumed run drops what was logged after its checkpoint, so that every step is there once, and continues its
run in wandb. Does not know what is trained.
"""

import json
import logging
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerState, TrainingArguments
from transformers.integrations import INTEGRATION_TO_CALLBACK

from cocos.files.durable import write_atomically
from cocos.files.json_lines import read_rows_leniently

LOG_FILE = "log.jsonl"
WITHOUT_LOGIN = ("offline", "disabled", "dryrun")  # values of WANDB_MODE
LOGGER_PACKAGES = {"azure_ml": "azureml", "flyte": "flytekit"}  # others have the logger's name


class RunLog(TrainerCallback, logging.Handler):
    """Writer of log.jsonl on the main process.

    Each line has `step`, `time` (seconds since 1970), and `metrics` with `max_steps`, or `warning`.

    Args:
        examples: Returns the last trajectories as text, which the entry of an update has, too.

    """

    def __init__(self, examples: Callable[[], Sequence[str]]) -> None:
        logging.Handler.__init__(self, logging.WARNING)
        self._examples = examples
        self._state: TrainerState | None = None
        self._path = Path()

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Keep the lines up to the step that the run continues from, and listen for warnings."""
        if not state.is_world_process_zero:
            return
        self._path, self._state = Path(str(args.output_dir)) / LOG_FILE, state
        earlier = read_log(self._path.parent) if state.global_step else []
        kept = [entry for entry in earlier if entry["step"] <= state.global_step]
        write_atomically(self._path, "".join(json.dumps(entry) + "\n" for entry in kept))
        logging.getLogger("cocos").addHandler(self)

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: dict[str, Any], **kwargs: Any
    ) -> None:
        numbers = {name: value for name, value in logs.items() if isinstance(value, int | float)}
        metrics = {name: value for name, value in numbers.items() if math.isfinite(value)}
        entry: dict[str, Any] = {"metrics": metrics, "max_steps": state.max_steps}
        if "loss" in metrics and (examples := self._examples()):  # an evaluation plays others
            entry["examples"] = examples
        self._append(entry)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a warning of this project."""
        self._append({"warning": record.getMessage()})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logging.getLogger("cocos").removeHandler(self)

    def _append(self, entry: dict[str, Any]) -> None:
        if self._state is None:
            return
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self._state.global_step, "time": time.time(), **entry}) + "\n")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of a run's log.jsonl; [] if there is none. A half-written line is left out."""
    path = folder / LOG_FILE
    rows = (row for _, row in read_rows_leniently(path)) if path.is_file() else ()
    return [row for row in rows if isinstance(row, dict) and {"step", "time"} <= row.keys()]


def check_loggers(names: Iterable[str]) -> None:
    """Check that the loggers are installed, and that wandb is logged in and can be reached.

    In a terminal, wandb asks for a missing login. Without a network the check takes 13 seconds.

    Args:
        names: Values of --report_to.

    Raises:
        ValueError: A logger is unknown or cannot be used.

    """
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            raise ValueError(
                f"--report_to {name}: unknown logger; choose from none, {', '.join(INTEGRATION_TO_CALLBACK)}"
            )
        package = LOGGER_PACKAGES.get(name, name)
        if name not in ("all", "kubeflow") and find_spec(package) is None:
            raise ValueError(f"--report_to {name}: the package is missing; pip install {package}")
        if name == "wandb":
            _check_wandb()


def _check_wandb() -> None:
    """Log in to wandb, unless it needs no login."""
    import wandb  # takes a second

    if wandb.setup().settings.mode in WITHOUT_LOGIN:
        return
    remedy = "set WANDB_MODE=offline to log to a folder, or choose --report_to tensorboard"
    try:
        if not wandb.login(prompt=sys.stdin.isatty()):
            raise ValueError(f"--report_to wandb: not logged in; run `wandb login`, {remedy}")
    except wandb.Error as error:
        raise ValueError(f"--report_to wandb: {error}; check the login and the network, {remedy}") from None


def start_wandb_run(args: TrainingArguments, folder: Path | None) -> str:
    """Start the run in wandb whose id is in a folder's run.json, else a new one; return the id.

    transformers would start a new one, so that a continued training would be two runs in wandb.

    Args:
        args: Options of the run.
        folder: Output folder of the run that is continued; None: a run from the start.

    """
    import wandb  # takes a second

    path = folder / "run.json" if folder else None
    record = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
    run_id = os.environ.get("WANDB_RUN_ID") or record.get("wandb_run_id") or secrets.token_hex(4)
    project = os.environ.get("WANDB_PROJECT", "huggingface")  # as in transformers
    wandb.init(project=project, name=args.run_name, id=run_id, resume="allow")
    return str(run_id)


def period_text(seconds: float) -> str:
    """Return a number of seconds, minutes or hours. Examples: `90 s`, `10 min`, `49 h`."""
    unit, size = next((u, n) for u, n in (("h", 3600), ("min", 60), ("s", 1)) if seconds >= 2 * n or n == 1)
    return f"{seconds / size:.0f} {unit}"
