"""Attempts at one problem while somebody watches: in a thread, with the text so far and a way to stop."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from cocos.config.eval_config import EvalConfig
from cocos.config.shared_options import prompt_protocol
from cocos.dataprep.given_answers import given_answers
from cocos.evaluation.generator_from_options import open_endpoint
from cocos.executor import Executor, ExecutorError
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import Problem
from cocos.rollout import rollout
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)
_lock = threading.Lock()  # one model is not loaded twice at the same time


@lru_cache(maxsize=2)
def _load(name_or_path: str) -> tuple[Any, Any]:
    return load_model(name_or_path), load_tokenizer(name_or_path)


def open_model(args: EvalConfig, key: str = "") -> Generator:
    """Return a generator for one watcher. The weights of a model folder are loaded once for all of them.

    Args:
        args: The options of test.py.
        key: API key of an endpoint; "": those in the environment variable `--api_key_env`.

    """
    if args.generator == "api":
        return open_endpoint(args, logger.info, key)
    with _lock:
        model, tokenizer = _load(args.model_name_or_path)
    return HuggingFaceGenerator(model, tokenizer, args.max_completion_length, batch_size=1)


def self_correction(
    trajectory: Trajectory, args: EvalConfig, generator: Generator, executor: Executor
) -> Iterator[Trajectory]:
    """Yield the trajectory after each attempt. An agent would be another function with these arguments."""
    protocol, rules = prompt_protocol(args), args.rules(args.temperatures, args.seed)
    for turn in range(1, args.num_turns + 1):
        [trajectory] = rollout([trajectory], generator, executor, protocol, turn, rules)
        yield trajectory


class Stopped(Exception):
    """The watcher has stopped the attempts."""


class LiveAttempts:
    """Attempts that begin at once, in a thread.

    Args:
        args: The options of test.py.
        trajectory: A trajectory without turns.
        open_generator: Returns the generator; called in the thread, because it may load a model.
        executor: Executes the programs.

    Attributes:
        trajectory: The attempts that are finished.
        text: Completion so far of the attempt that is being made.
        end_reason: What went wrong, or `stopped`; "" for nothing.
        is_running: Whether attempts are still being made.

    """

    def __init__(
        self,
        args: EvalConfig,
        trajectory: Trajectory,
        open_generator: Callable[[], Generator],
        executor: Executor,
    ) -> None:
        self.args, self.trajectory = args, trajectory
        self.text = self.end_reason = ""
        self.is_running, self._has_to_stop = True, False
        self._open_generator, self._executor = open_generator, executor
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End the attempts at the next token, or before the next attempt."""
        self._has_to_stop = True

    @property
    def is_complete(self) -> bool:
        """Whether every attempt was made, so that the trajectory is a row of a run."""
        return len(self.trajectory.turns) == self.args.num_turns

    def _run(self) -> None:
        try:
            generator = self._open_generator()
            generator.on_text = self._hear
            self._hear("")
            for trajectory in self_correction(self.trajectory, self.args, generator, self._executor):
                self.trajectory = trajectory
                self._hear("")
        except Stopped:
            self.end_reason = "" if self.is_complete else "stopped"
        except (ValueError, OSError, ImportError, ExecutorError) as error:
            self.end_reason = str(error)
        except Exception as error:  # nobody else would see why the thread has ended
            logger.exception("an attempt failed")
            self.end_reason = f"{type(error).__name__}; the terminal has the details"
        finally:
            self.is_running = False

    def _hear(self, text: str) -> None:
        self.text = text
        if self._has_to_stop:
            raise Stopped


def begin_attempts(
    problem: Problem, args: EvalConfig, earlier: Sequence[LiveAttempts], executor: Executor, key: str = ""
) -> LiveAttempts:
    """Start attempts at a problem; those at the same problem with the same options are further samples.

    Args:
        problem: The problem.
        args: The options of test.py.
        earlier: All earlier attempts of the same watcher.
        executor: Executes the programs.
        key: See `open_model`.

    """
    sample = sum(other.args == args and other.trajectory.problem == problem for other in earlier)
    [given] = given_answers(args.answers, [Trajectory(problem)], prompt_protocol(args))
    trajectory = Trajectory(problem, sample, given=given[: args.num_turns])
    return LiveAttempts(args, trajectory, lambda: open_model(args, key), executor)
