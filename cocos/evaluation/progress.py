"""Output of a running evaluation: the progress bar with accuracies, and warnings about the context.

--verbose prints the trajectories above the bar.
"""

import sys
from collections.abc import Sequence
from typing import Any

from tqdm import tqdm

from cocos.evaluation.trajectory_text import prompt_text, trajectory_text
from cocos.generation import Completion, Generator, Progress
from cocos.generation.interface import check_room
from cocos.generation.progress import BatchBar
from cocos.metrics import scored
from cocos.prompts import PromptProtocol
from cocos.trajectories import Trajectory

REMEDY = "lower --max_completion_length or --num_turns, or leave the problem out with --task_ids"


def context_warning(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    protocol: PromptProtocol,
    num_turns: int,
    max_completion_length: int,
) -> str:
    """Return a warning if the longest transcript that is possible exceeds the context, else "".

    Feedback is not counted, because its length is known only after a program has run.

    Raises:
        ValueError: A prompt alone exceeds the context.

    """
    if generator.context_length is None:
        return ""
    problems = {trajectory.problem.task_id: trajectory.problem for trajectory in trajectories}
    prompts = {
        task_id: len(generator.start(message, protocol.is_chat, protocol.system, protocol.tools))
        for task_id, problem in problems.items()
        for message in [protocol.first_turn(problem)]
    }
    longest = max(prompts, key=lambda task_id: prompts[task_id])
    check_room(longest, prompts[longest], generator.context_length)
    later = len(generator.extend([], Completion((), ""), protocol.later_turn(), protocol.is_chat))
    needed = prompts[longest] + (num_turns - 1) * later + num_turns * max_completion_length
    if needed <= generator.context_length:
        return ""
    return (
        f"problem {longest} may take {needed} tokens (prompt {prompts[longest]}, {num_turns} turns "
        f"of at most {max_completion_length} new tokens), more than the model's context of "
        f"{generator.context_length}; {REMEDY}"
    )


def exceeded_context(trajectories: Sequence[Trajectory], context_length: int | None) -> str | None:
    """Return a warning about the longest of the played transcripts if it exceeds the context, else None."""
    lengths = [
        (len(turn.prompt_ids) + len(turn.completion.token_ids), number, trajectory.problem.task_id)
        for trajectory in trajectories
        for number, turn in enumerate(trajectory.turns, start=1)
    ]
    length, turn_number, task_id = max(lengths)
    if context_length is None or length <= context_length:
        return None
    return (
        f"warning: problem {task_id} took {length} tokens in turn {turn_number}, more than the model's "
        f"context of {context_length}; such completions are unreliable"
    )


class ProgressBar:
    """Progress bar of one rank with accuracies; ranks other than 0 print nothing.

    Args:
        total: Trajectories that this rank plays.
        batch_size: Trajectories per batch.
        is_verbose: Print every trajectory above the bar, after the prompt of the first.

    """

    def __init__(
        self,
        total: int,
        num_turns: int,
        batch_size: int,
        generator: Generator,
        is_main: bool,
        is_verbose: bool = False,
    ) -> None:
        self._generator, self._is_verbose = generator, is_verbose and is_main
        self._num_turns = num_turns
        self._num_scored = 0
        self._num_right = dict.fromkeys((0, num_turns - 1), 0)  # by turn, from 0
        self._has_shown_prompt = self._has_exceeded_context = False
        self._bar = BatchBar(
            batch_size * num_turns, total=total * num_turns, unit=" turns", disable=not is_main
        )

    def __enter__(self) -> "ProgressBar":
        self._generator.progress = self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._generator.progress = Progress()
        self._bar.__exit__(*error)

    def add(self, trajectories: Sequence[Trajectory]) -> None:
        """Advance the bar by a batch of played trajectories."""
        scored_trajectories = scored(trajectories)
        self._num_scored += len(scored_trajectories)
        for turn in self._num_right:
            self._num_right[turn] += sum(t.turns[turn].result.is_right for t in scored_trajectories)
        shares = {turn: count / max(1, self._num_scored) for turn, count in self._num_right.items()}
        self._bar.numbers = ", ".join(f"acc@{turn + 1}={share:.3f}" for turn, share in shares.items())
        self._bar.finish_batch(len(trajectories) * self._num_turns)
        self._warn_once(trajectories)
        if self._is_verbose:
            prompts = [] if self._has_shown_prompt else [prompt_text(trajectories[0], self._generator)]
            self._has_shown_prompt = True
            tqdm.write("\n".join([*prompts, *map(trajectory_text, trajectories)]), file=sys.stdout)

    def _warn_once(self, trajectories: Sequence[Trajectory]) -> None:
        warning = exceeded_context(trajectories, self._generator.context_length)
        if warning and not self._has_exceeded_context:
            self._has_exceeded_context = True
            tqdm.write(warning, file=sys.stderr)
