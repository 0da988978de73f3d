"""What a training run says about itself: metrics of a batch, seconds per phase, and warnings.

Everything here reads trajectories and returns plain numbers under the names that docs/cocos.md explains; does
not know tensors, models or loggers.
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cocos.executor import ExecutionResult, Executor
from cocos.metrics import correction_metrics, error_type, scored
from cocos.rewards import Score
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)

GAP_GROWTH = 0.05  # a visible/hidden gap this much above the first one is warned about


def mean(values: Sequence[float]) -> float:
    """NaN, which no logger shows, where there are none."""
    return sum(values) / len(values) if values else float("nan")


def batch_metrics(
    trajectories: Sequence[Trajectory], scores: Sequence[Score], turns: Sequence[int]
) -> dict[str, float]:
    """Per turn: reward, accuracy and its changes, answer length, truncation, KL; and the executor's failures.

    Args:
        trajectories: Of one generation batch, all processes'.
        scores: One per trajectory.
        turns: The trained ones, from 1.

    """
    metrics: dict[str, float] = {}
    for t in range(len(trajectories[0].turns)):
        completions = [trajectory.turns[t].completion for trajectory in trajectories]
        known = [reward for score in scores if (reward := score.rewards_T[t]) is not None]
        metrics[f"reward_t{t + 1}"] = mean(known)
        metrics[f"truncated_t{t + 1}"] = mean([c.is_truncated for c in completions])
        metrics[f"completion_length_t{t + 1}"] = mean([len(c.token_ids) for c in completions])
    if usable := scored(trajectories):
        metrics |= {name: estimate.value for name, estimate in correction_metrics(usable).items()}
    for k, turn in enumerate(turns):
        metrics[f"kl_t{turn}"] = mean([score.kl_K[k] for score in scores])
    results = [turn.result for trajectory in trajectories for turn in trajectory.turns]
    metrics["infra_failures"] = sum(result.is_infra_failure for result in results)
    return metrics


def verdicts_in_words(result: ExecutionResult) -> str:
    """Example: two of three tests pass and one raises -> `2/3 NameError`."""
    if result.num_passed is None:
        return f"not executed: {result.infra_error}"
    share = f"{result.num_passed}/{len(result.verdicts)}"
    return f"{share} {kind}" if (kind := error_type(result)) else share


def hidden_gap(trajectories: Sequence[Trajectory]) -> float | None:
    """Share whose last program passes every visible test and fails a hidden one; None without hidden tests.

    A growing gap says that answers fit the tests that the prompt shows instead of the task.
    """
    split = [t for t in scored(trajectories) if t.problem.hidden_test_list]
    if not split:
        return None
    fitted = 0
    for trajectory in split:
        verdicts = trajectory.turns[-1].result.verdicts
        shown = verdicts[: len(trajectory.problem.test_list)]
        fitted += all(v.passed for v in shown) and not trajectory.turns[-1].result.all_passed
    return fitted / len(split)


class Warnings:
    """Says once per occurrence what a person should know about a run that goes wrong slowly.

    Args:
        dead_batches: Warn after this many batches in a row in which no group's returns differ.

    """

    def __init__(self, dead_batches: int):
        self.dead_batches = dead_batches
        self._dead = 0
        self._first_gap: float | None = None

    def note_spread(self, zero_spread_K: Sequence[float]) -> None:
        """A batch in which every group is without spread at every turn is dead."""
        self._dead = self._dead + 1 if min(zero_spread_K) == 1.0 else 0
        if self._dead and self._dead % self.dead_batches == 0:
            logger.warning(
                f"{self._dead} batches in a row without a group whose returns differ: nothing is learnt; "
                f"raise --temperature or --num_generations, or choose problems of another difficulty"
            )

    def note_gap(self, gap: float) -> None:
        """Compared with the gap of the run's first evaluation."""
        if self._first_gap is None:
            self._first_gap = gap
        elif gap > self._first_gap + GAP_GROWTH:
            logger.warning(
                f"{gap:.1%} of the dev answers pass the visible tests and fail hidden ones, "
                f"{self._first_gap:.1%} at the first evaluation: the model learns the shown tests; "
                f"hide more tests of the training problems, or stop earlier"
            )


class Clock:
    """Seconds per phase of an update on this process, and what passed through the model and the executor in
    them.

    Args:
        executor: Its counters are read, never reset.

    """

    def __init__(self, executor: Executor):
        self._executor = executor
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._programs: Counter[str] = Counter()
        self._update_began = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the seconds and the executed programs of its body to a phase."""
        began, executed = time.perf_counter(), self._executor.stats.programs
        yield
        self._seconds[name] += time.perf_counter() - began
        self._programs[name] += self._executor.stats.programs - executed

    def begin_update(self) -> None:
        """An update's first forward pass is about to be prepared."""
        self._update_began = time.perf_counter()

    def read(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Metrics of the generation batch that this process has just played.

        Generation and execution overlap: `time/execution_s` is only what the model waited for verdicts.
        """
        completions = [turn.completion for trajectory in trajectories for turn in trajectory.turns]
        rollout_s = self._seconds["rollout"]
        generation_s = min(sum(completion.duration_s for completion in completions), rollout_s)
        programs = self._programs["rollout"]
        return {
            "time/rollout_s": rollout_s,
            "time/generation_s": generation_s,
            "time/execution_s": rollout_s - generation_s,
            "time/logprobs_s": self._seconds["logprobs"],
            "tokens_per_s": sum(len(c.token_ids) for c in completions) / max(generation_s, 1e-9),
            "executor/programs": programs,
            "executor/programs_per_s": programs / max(rollout_s, 1e-9),
        }

    def end_update(self) -> float:
        """Seconds of the update that were neither rollout nor log-probabilities; clears the phases."""
        elsewhere = sum(self._seconds.values())
        self._seconds.clear()
        self._programs.clear()
        return time.perf_counter() - self._update_began - elsewhere
