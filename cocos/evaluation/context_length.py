"""Warnings about transcripts that are longer than the context that the model was trained on."""

from collections.abc import Sequence

from cocos.generation import Completion, Generator
from cocos.prompts import PromptProtocol
from cocos.trajectories import Trajectory

REMEDY = "lower --max_completion_length or --num_turns, or leave the problem out with --task_ids"


def context_warning(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    protocol: PromptProtocol,
    num_turns: int,
    max_completion_length: int,
) -> str | None:
    """Return a warning if the longest transcript that is possible exceeds the context, else None.

    Feedback is not counted, because its length is known only after a program has run.
    """
    if generator.context_length is None:
        return None
    problems = {trajectory.problem.task_id: trajectory.problem for trajectory in trajectories}
    prompts = {
        task_id: len(generator.start(message, protocol.is_chat, protocol.system, protocol.tools))
        for task_id, problem in problems.items()
        for message in [protocol.first_turn(problem)]
    }
    longest = max(prompts, key=lambda task_id: prompts[task_id])
    later = len(generator.extend([], Completion((), ""), protocol.later_turn(), protocol.is_chat))
    needed = prompts[longest] + (num_turns - 1) * later + num_turns * max_completion_length
    if needed <= generator.context_length:
        return None
    return (
        f"warning: problem {longest} may take {needed} tokens (prompt {prompts[longest]}, {num_turns} turns "
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
