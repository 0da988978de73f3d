"""Measurements of a training run: batch metrics, memory, and warnings about rewards.

Reads trajectories and returns plain numbers, whose names docs/training.md explains.
"""

import builtins
import logging
import resource
import sys
from collections.abc import Sequence
from typing import Any

import torch

from cocos.executor import ExecutionResult
from cocos.metrics import correction_metrics, edit_metrics, first_error, scored
from cocos.rewards import Credit
from cocos.trajectories import Trajectory

logger = logging.getLogger(__name__)

GAP_GROWTH = 0.05  # warn if the visible/hidden gap has grown by this much since the first evaluation


def mean(values: Sequence[float]) -> float:
    """Return the mean, or NaN if there are no values. Loggers skip NaN."""
    return sum(values) / len(values) if values else float("nan")


def batch_metrics(
    trajectories: Sequence[Trajectory], rewards_B_T: Sequence[Sequence[float | None]]
) -> dict[str, float]:
    """Return `trajectory_metrics` of a batch, with the reward of each turn.

    Args:
        trajectories: One generation batch of all ranks.
        rewards_B_T: Rewards of each trajectory; None where the executor failed.

    """
    metrics = trajectory_metrics(trajectories)
    for t, rewards_B in enumerate(zip(*rewards_B_T, strict=True), start=1):
        metrics[f"reward_t{t}"] = mean([reward for reward in rewards_B if reward is not None])
    return metrics


def trajectory_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return accuracies, changes between turns, repeats, lengths, time-outs and errors of trajectories."""
    metrics: dict[str, float] = {}
    for t in range(len(trajectories[0].turns)):
        turns_t = [trajectory.turns[t] for trajectory in trajectories]
        completions = [turn.completion for turn in turns_t if turn.is_sampled]
        lengths = sorted(len(c.token_ids) for c in completions)
        metrics[f"sampled_t{t + 1}"] = mean([turn.is_sampled for turn in turns_t])
        metrics[f"truncated_t{t + 1}"] = mean([c.is_truncated for c in completions])
        metrics[f"completion_length_t{t + 1}"] = mean(lengths)
        metrics[f"completion_length_p95_t{t + 1}"] = percentile(lengths, 95)
        executed = [turn.result for turn in turns_t if turn.is_sampled and not turn.result.is_infra_failure]
        errors = [first_error(result) for result in executed]
        metrics[f"timeouts_t{t + 1}"] = mean([error == "Timeout" for error in errors])
        for kind in sorted({_logged_kind(error) for error in errors if error}):
            shown = [error is not None and _logged_kind(error) == kind for error in errors]
            metrics[f"errors_t{t + 1}/{kind}"] = mean(shown)
    if usable := scored(trajectories):
        estimates = correction_metrics(usable) | edit_metrics(usable)
        metrics |= {name: estimate.value for name, estimate in estimates.items()}
    results = [turn.result for trajectory in trajectories for turn in trajectory.turns]
    metrics["infra_failures"] = sum(result.is_infra_failure for result in results)
    metrics["in_child"] = mean([verdict.in_child for result in results for verdict in result.verdicts])
    return metrics


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least `percent` % do not exceed (nearest rank); NaN if there is none.

    Example: the 95th percentile of 1..20 is 19.
    """
    return ordered[-(-percent * len(ordered) // 100) - 1] if ordered else float("nan")


def _logged_kind(error: str) -> str:
    """Return the name under which an error is logged. A program can define exceptions of any name."""
    is_known = error in ("Failed", "Timeout", "Memory") or hasattr(builtins, error)
    return error if is_known else "other"


def num_sampled_tokens(trajectories: Sequence[Trajectory], credit: Credit) -> int:
    """Return the number of tokens that the model sampled; with credit `last`, shared turns count once."""
    return sum(
        len(turn.completion.token_ids)
        for trajectory in trajectories
        for turn in (trajectory.turns[-1:] if credit == "last" and trajectory.sample else trajectory.turns)
        if turn.is_sampled
    )


def verdicts_text(result: ExecutionResult) -> str:
    """Return a summary of the verdicts. Example: two of three tests pass, one raises -> `2/3 NameError`."""
    if result.num_passed is None:
        return f"not executed: {result.infra_error}"
    share = f"{result.num_passed}/{len(result.verdicts)}"
    return f"{share} {kind}" if (kind := first_error(result)) else share


def hidden_gap(trajectories: Sequence[Trajectory]) -> float | None:
    """Return the share whose last program passes every visible test and fails a hidden one.

    Only problems with hidden tests count; None if there are none. A growing gap says that the model fits the
    visible tests instead of solving the task.
    """
    with_hidden = [t for t in scored(trajectories) if t.problem.hidden_test_list]
    if not with_hidden:
        return None
    overfitted = 0
    for trajectory in with_hidden:
        result = trajectory.turns[-1].result
        visible = result.verdicts[: len(trajectory.problem.test_list)]
        overfitted += all(verdict.passed for verdict in visible) and not result.is_right
    return overfitted / len(with_hidden)


MAX_KL = 0.1  # nats a token: runs that got better ended between 0.01 and 0.09 (docs/training.md)
DEAD_BATCHES = 10  # one in a few is usual; so many in a row mean that nothing is learned
DEAD = "no trajectory earned more than its siblings"
DEAD_REMEDY = (
    "raise --temperature or --num_generations, choose easier or harder problems, or draw others with "
    "--dynamic_sampling"
)


class RunWarnings:
    """Warnings about faults that become visible only over many batches.

    Args:
        dead_batches: Warn after this many consecutive batches without a gradient of the rewards.

    """

    def __init__(self, dead_batches: int = DEAD_BATCHES):
        self.dead_batches = dead_batches
        self._num_dead = 0  # in a row
        self.total_dead = 0  # of all batches
        self._first_gap: float | None = None
        # Not in the state: a resumed run warns again.
        self._has_warned_in_child = self._has_warned_kl = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save in a checkpoint, as plain values."""
        return {"num_dead": self._num_dead, "total_dead": self.total_dead, "first_gap": self._first_gap}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._num_dead, self._first_gap = state["num_dead"], state["first_gap"]
        self.total_dead = state.get("total_dead", 0)  # not counted before 1.2

    def check_gradient(self, is_dead: bool) -> None:
        """Warn after `dead_batches` consecutive batches that are dead: without a gradient of the rewards."""
        self._num_dead = self._num_dead + 1 if is_dead else 0
        self.total_dead += is_dead
        if self._num_dead and self._num_dead % self.dead_batches == 0:
            often = f"{DEAD} in {self._num_dead} batches in a row"
            logger.warning(f"{often}, so the rewards teach nothing; {DEAD_REMEDY}")

    def check_gap(self, gap: float) -> None:
        """Warn if the visible/hidden gap has grown since the run's first evaluation."""
        if self._first_gap is None:
            self._first_gap = gap
        elif gap > self._first_gap + GAP_GROWTH:
            logger.warning(
                f"{gap:.1%} of the dev completions pass the visible tests and fail hidden ones "
                f"({self._first_gap:.1%} at the first evaluation): the model fits the visible tests; "
                f"hide more tests of the training problems, or stop earlier"
            )

    def check_kl(self, kl: float) -> None:
        """Warn, once, that a policy without a KL penalty is far from its start; nats a token."""
        if kl > MAX_KL and not self._has_warned_kl:
            self._has_warned_kl = True
            logger.warning(
                f"the policy is {kl:.2g} nats a token from the model that the run started from, more than "
                f"{MAX_KL}: compare its checkpoints on other problems; if the last is not the best, lower "
                "--learning_rate, or give --beta"
            )

    def check_in_child(self, trajectories: Sequence[Trajectory]) -> None:
        """Warn, once, about tests that earn nothing because a program could have forged their verdicts."""
        if self._has_warned_in_child:
            return
        marked = [
            (trajectory.problem, test, verdict.in_child_reason)
            for trajectory in trajectories
            for turn in trajectory.turns
            for test, verdict in zip(trajectory.problem.scored_tests, turn.result.verdicts, strict=False)
            if verdict.in_child
        ]
        if not marked:
            return
        self._has_warned_in_child = True
        problem, test, reason = marked[0]
        logger.warning(
            f"{len({problem.task_id for problem, _, _ in marked})} problems of this batch have tests that "
            "earn nothing, because the program itself could forge the verdict (metric in_child), such as "
            f"{test[:80]!r} of problem {problem.task_id}: {reason}; drop such problems with "
            "cocos prepare ... --drop in_child, or reward them with --reward_in_child true"
        )


def peak_memory_mb() -> float:
    """Return the largest memory use so far in MiB: of the GPU where there is one, else of this process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes on macOS, in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
