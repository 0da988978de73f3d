"""Attempts at one problem while somebody watches: in a thread, with the text so far and a way to stop.

`run_archive` packs them as a ZIP archive of folders that test.py and the report read.
"""

import io
import json
import logging
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from cocos.agents.words import agent_protocol
from cocos.assembly.given_answers import given_answers
from cocos.assembly.prompts import prompt_protocol
from cocos.assembly.rules import conditions
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_endpoint, open_player
from cocos.evaluation.resumption import evaluation_record
from cocos.evaluation.sample_files import row_to_line
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import Executor, ExecutorError
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer
from cocos.metrics import run_metrics
from cocos.problems import Problem
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)
OpenGenerator = Callable[[], Generator]
_lock = threading.Lock()  # one model is not loaded twice at the same time


@lru_cache(maxsize=2)
def _load(name_or_path: str) -> tuple[Any, Any]:
    return load_model(name_or_path), load_tokenizer(name_or_path)


def open_model(args: EvalConfig) -> Generator:
    """Return a generator for one watcher. The weights of a model folder are loaded once for all of them."""
    if args.generator == "api":
        return open_endpoint(args, logger.info)
    with _lock:
        model, tokenizer = _load(args.model_name_or_path)
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, batch_size=1)


UNWATCHED_S = 60  # attempts go on for so long without a watcher, who may load the page again


class Stopped(Exception):
    """The watcher has stopped the attempts, or is gone."""


class LiveAttempts:
    """Attempts that begin at once, in a thread.

    Args:
        open_generator: Returns the generator; called in the thread, because it may load a model.
        is_watched: Returns whether the watcher is there; asked at every token.

    Raises:
        ValueError: The protocol does not suit the agent, or a file of prompts cannot be read.

    Attributes:
        trajectory: The attempts that are finished.
        text: Completion so far of the attempt that is being made.
        end_reason: What went wrong, or why the attempts were stopped; "" for nothing.
        is_running: Whether attempts are still being made.
        is_loading: Whether the model is still being loaded, which may take a minute.

    """

    def __init__(
        self,
        args: EvalConfig,
        trajectory: Trajectory,
        open_generator: OpenGenerator,
        executor: Executor,
        is_watched: Callable[[], bool] = lambda: True,
    ) -> None:
        self.args, self.trajectory = args, trajectory
        self.text = self.end_reason = ""
        self.is_running = self.is_loading = True
        self._stop_reason = ""
        self._is_watched, self._watched_s = is_watched, time.monotonic()
        self._open_generator, self._executor = open_generator, executor
        self._protocol = agent_protocol(prompt_protocol(args), args.agent, args.system_prompt is not None)
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End the attempts at the next token, or before the next attempt."""
        self._stop_reason = "stopped"

    @property
    def is_complete(self) -> bool:
        """True if the trajectory is a row of a run: every attempt was made."""
        return len(self.trajectory.turns) == self.args.num_turns

    @property
    def verdict(self) -> str:
        """The outcome in a sentence; "" while there is none."""
        right = [turn.result.is_right for turn in self.trajectory.turns if not turn.is_carried]
        if self.is_running or not right:
            return ""
        if True not in right:
            return f"Not solved after {len(right)} attempt{'s' * (len(right) > 1)}."
        first = right.index(True) + 1
        later = right[first:]
        spoilt = f", and spoilt at attempt {first + later.index(False) + 1}" if not right[-1] else ""
        return f"Solved at attempt {first}{spoilt}."

    def _run(self) -> None:
        try:
            generator = self._open_generator()
            self.is_loading = False
            generator.on_text = self._hear
            self._hear("")
            play = open_player(self.args, generator, self._executor, self._protocol, self._see)
            [self.trajectory] = play([self.trajectory])
        except Stopped:
            self.end_reason = "" if self.is_complete else self._stop_reason
        except (ValueError, OSError, ImportError, ExecutorError) as error:
            self.end_reason = str(error) or type(error).__name__
        except Exception as error:  # nobody else would see why the thread has ended
            logger.exception("an attempt failed")
            reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" ...")
            self.end_reason = f"{reason}; the terminal has the details"
        finally:
            self.is_running = False

    def _see(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self._hear("")

    def _hear(self, text: str) -> None:
        self.text = text
        if self._is_watched():
            self._watched_s = time.monotonic()
        elif time.monotonic() > self._watched_s + UNWATCHED_S:
            self._stop_reason = f"stopped, because nobody has watched for {UNWATCHED_S} s"
        if self._stop_reason:
            raise Stopped


def live_options(problem: Problem, **options: Any) -> EvalConfig:
    """Return the options of test.py for attempts at one problem, whose program to repair is the first one.

    Such a program is edited, so it stays in the prompt whatever later prompts have.

    For an agent it is not if the task shows it: an agent counts a repetition of that program as a failure.
    """
    is_shown = options.get("agent", "none") != "none" and problem.buggy_code in problem.text
    answers = ["buggy"] if problem.buggy_code.strip() and not is_shown else []
    options |= {"carry": "transcript"} if answers else {}
    return EvalConfig(test_data="page", output_dir="page", batch_size=1, answers=answers, **options)


def begin_attempts(
    problem: Problem,
    args: EvalConfig,
    earlier: Sequence[LiveAttempts],
    executor: Executor,
    is_watched: Callable[[], bool] = lambda: True,
) -> LiveAttempts:
    """Start attempts at a problem; those at the same problem with the same options are further samples."""
    sample = sum(other.args == args and other.trajectory.problem == problem for other in earlier)
    [given] = given_answers(args.answers, [Trajectory(problem)], prompt_protocol(args))
    trajectory = Trajectory(problem, sample, given=given[: args.num_turns])
    return LiveAttempts(args, trajectory, lambda: open_model(args), executor, is_watched)


def run_archive(played: Sequence[LiveAttempts], executor: Executor) -> bytes:
    """Return a ZIP archive with a folder per configuration: samples.jsonl, metrics.json and run.json."""
    configs = [one.args for one in played]
    configs = [args for number, args in enumerate(configs) if args not in configs[:number]]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for number, args in enumerate(configs, start=1):
            group, recorded = [one.trajectory for one in played if one.args == args], conditions(args)
            rows = [trajectory_to_row(trajectory, **recorded) for trajectory in group]
            # As after a run of test.py: the metrics are those of the rows.
            stored = [trajectory_from_row(row, t.problem) for row, t in zip(rows, group, strict=True)]
            record = evaluation_record(args, executor, checksums={})
            files.writestr(f"run{number}/samples.jsonl", b"".join(map(row_to_line, rows)))
            files.writestr(f"run{number}/metrics.json", json.dumps(run_metrics(stored, recorded), indent=2))
            files.writestr(f"run{number}/run.json", json.dumps(record, indent=2, default=str))
    return archive.getvalue()
