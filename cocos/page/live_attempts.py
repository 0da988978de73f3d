"""Attempts at one problem while somebody watches: in a thread, with the text so far and a way to stop.

`run_archive` packs them as a ZIP archive of folders that test.py and the report read.
"""

import io
import json
import logging
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from cocos.assembly import conditions, make_rules, prompt_protocol, system_text
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_endpoint, open_player
from cocos.evaluation.resumption import evaluation_record
from cocos.evaluation.run_metrics import run_metrics
from cocos.evaluation.sample_files import row_to_line
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import Executor, ExecutorError
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer
from cocos.given_answers import given_answers
from cocos.problems import Problem
from cocos.prompts import agent_protocol
from cocos.rollout import Play, RolloutContext
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)
IDLE_S = 600.0
_lock = threading.Lock()  # one model is not loaded twice at the same time


@lru_cache(maxsize=2)
def _load(name_or_path: str) -> tuple[Any, Any]:
    return load_model(name_or_path), load_tokenizer(name_or_path)


def open_model(args: EvalConfig, key: str = "") -> Generator:
    """Return a generator for one watcher. The weights of a model folder are loaded once for all of them.

    Args:
        key: API key of an endpoint; "": those in the environment variable `--api_key_env`.

    """
    if args.generator == "api":
        return open_endpoint(args, logger.info, key)
    with _lock:
        model, tokenizer = _load(args.model_name_or_path)
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, batch_size=1)


class Stopped(Exception):
    """The watcher has stopped the attempts."""


class LiveAttempts:
    """Attempts that begin at once, in a thread.

    Args:
        open_generator: Returns the generator; called in the thread, because it may load a model.
        own_feedback: What the watcher says of the last attempt, for one more; "": play as the options say.

    Raises:
        ValueError: The protocol does not suit the agent, or a file of prompts cannot be read.

    Attributes:
        trajectory: The attempts that are finished.
        text: Completion so far of the attempt that is being made.
        end_reason: What went wrong, or `stopped`; "" for nothing.
        is_running: Whether attempts are still being made.
        is_loading: Whether the model is still being loaded, which may take a minute.
        beside: Attempts of another model at the same problem, to be shown beside these; None for none.

    """

    def __init__(
        self,
        args: EvalConfig,
        trajectory: Trajectory,
        open_generator: Callable[[], Generator],
        executor: Executor,
        own_feedback: str = "",
    ) -> None:
        self.args, self.trajectory, self.own_feedback = args, trajectory, own_feedback
        self.beside: LiveAttempts | None = None
        self.text = self.end_reason = ""
        self.is_running = self.is_loading = True
        self._has_to_stop = False
        self.open_generator, self._executor = open_generator, executor
        self._protocol = agent_protocol(prompt_protocol(args), args.agent, system_text(args))
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End the attempts at the next token, or before the next attempt."""
        self._has_to_stop = True

    @property
    def is_complete(self) -> bool:
        """Return True if the trajectory is a row of a run: every attempt was made as the options say."""
        return len(self.trajectory.turns) == self.args.num_turns and not self.own_feedback

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
            generator = self.open_generator()
            self.is_loading = False
            generator.on_text = self._hear
            self._hear("")
            if self.own_feedback:
                self.trajectory = self._play_once_more(generator)
            else:
                play = open_player(self.args, generator, self._executor, self._protocol, self._see)
                [self.trajectory] = play([self.trajectory])
        except Stopped:
            self.end_reason = "" if self.is_complete else "stopped"
        except (ValueError, OSError, ImportError, ExecutorError) as error:
            self.end_reason = str(error)
        except Exception as error:  # nobody else would see why the thread has ended
            logger.exception("an attempt failed")
            self.end_reason = f"{type(error).__name__}; the terminal has the details"
        finally:
            self.is_running = False

    def _play_once_more(self, generator: Generator) -> Trajectory:
        rules = make_rules(self.args, self.args.temperatures, self.args.seed)
        play = Play(self.trajectory, RolloutContext(generator, self._executor, self._protocol, rules))
        prompt = play.next_prompt(self.own_feedback)
        seeds = None if rules.seed is None else [play.seed()]
        [completion] = generator.generate([prompt], rules.temperature(len(play.turns) + 1), seeds)
        play.add(prompt, completion, self.own_feedback)
        return play.finish(len(play.turns))

    def _see(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self._hear("")

    def _hear(self, text: str) -> None:
        self.text = text
        if self._has_to_stop:
            raise Stopped


@dataclass
class Visit:
    """Form and attempts of a visitor; a reload of the page finds them again."""

    form: dict[str, Any] = field(default_factory=dict)  # field of the form -> value
    attempts: list[LiveAttempts] = field(default_factory=list)
    seen_s: float = 0.0  # time of the last request, on the clock of `time.monotonic`


class Visitors:
    """The visits of a page. A visitor who has been away for IDLE_S makes room for another one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._visits: dict[str, Visit] = {}
        self._lock = threading.Lock()

    def visit_of(self, visitor: str) -> Visit | None:
        """Return the visit of a visitor, a new one for a new visitor; None if there is no room."""
        now = time.monotonic()
        with self._lock:
            if visitor not in self._visits and len(self._visits) >= self._limit:
                idle = min(self._visits, key=lambda name: self._visits[name].seen_s)
                if now - self._visits[idle].seen_s < IDLE_S:
                    return None
                del self._visits[idle]
            visit = self._visits.setdefault(visitor, Visit())
            visit.seen_s = now
            return visit


def live_options(problem: Problem, **options: Any) -> EvalConfig:
    """Return the options of test.py for attempts at one problem, whose program to repair is the first one.

    For an agent it is not if the task shows it: an agent counts a repetition of that program as a failure.
    """
    is_shown = options.get("agent", "none") != "none" and problem.buggy_code in problem.text
    answers = ["buggy"] if problem.buggy_code.strip() and not is_shown else []
    return EvalConfig(test_data="page", output_dir="page", batch_size=1, answers=answers, **options)


def begin_attempts(
    problem: Problem, args: EvalConfig, earlier: Sequence[LiveAttempts], executor: Executor, key: str = ""
) -> LiveAttempts:
    """Start attempts at a problem; those at the same problem with the same options are further samples."""
    sample = sum(other.args == args and other.trajectory.problem == problem for other in earlier)
    [given] = given_answers(args.answers, [Trajectory(problem)], prompt_protocol(args))
    trajectory = Trajectory(problem, sample, given=given[: args.num_turns])
    return LiveAttempts(args, trajectory, lambda: open_model(args, key), executor)


def begin_another(earlier: LiveAttempts, own_feedback: str, executor: Executor) -> LiveAttempts:
    """Start one more attempt after earlier ones, with what the watcher says of the last program."""
    turns = tuple(turn for turn in earlier.trajectory.turns if not turn.is_carried)
    args = replace(earlier.args, num_turns=len(turns) + 1)
    trajectory = replace(earlier.trajectory, turns=turns)
    return LiveAttempts(args, trajectory, earlier.open_generator, executor, own_feedback)


def run_archive(played: Sequence[tuple[EvalConfig, Trajectory]], executor: Executor) -> bytes:
    """Return a ZIP archive with a folder per configuration: samples.jsonl, metrics.json and run.json."""
    configs: list[EvalConfig] = []
    for args, _ in played:
        if args not in configs:
            configs.append(args)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for number, args in enumerate(configs, start=1):
            trajectories = [trajectory for other, trajectory in played if other == args]
            rows = [trajectory_to_row(trajectory, **conditions(args)) for trajectory in trajectories]
            # As after a run of test.py: the metrics are those of the rows.
            stored = [trajectory_from_row(row, t.problem) for row, t in zip(rows, trajectories, strict=True)]
            record = evaluation_record(args, executor, checksums={})
            files.writestr(f"run{number}/samples.jsonl", b"".join(map(row_to_line, rows)))
            files.writestr(
                f"run{number}/metrics.json", json.dumps(run_metrics(stored, conditions(args)), indent=2)
            )
            files.writestr(f"run{number}/run.json", json.dumps(record, indent=2, default=str))
    return archive.getvalue()
