"""Sequences and tokens of one update of train.py: of all GPUs, and of each phase on one of them.

Does not know the model.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from cocos.assembly.objective import make_objective
from cocos.config.trl_configs import CoCoSConfig


class PassTokens(NamedTuple):
    """Tokens that one GPU processes in one pass: all of them, and those whose probabilities are computed."""

    tokens: int
    scored: int


@dataclass(frozen=True)
class Workload:
    """Sequences and tokens that one GPU processes at the same time in each phase of an update."""

    rollout_rows: int  # sequences sampled together; 0: a run without sampling
    prompt: int  # longest prompt of any turn, in tokens
    answer: int  # longest answer, in tokens
    scoring: PassTokens  # a forward pass of the policy or the reference
    update: PassTokens  # a forward and backward pass


def run_workload(args: CoCoSConfig, prompts_T: list[int]) -> Workload:
    """Return the sizes of each phase on one GPU.

    Args:
        prompts_T: Largest number of tokens before each turn's answer.

    """
    answer, micro_batch = args.max_completion_length, args.per_device_train_batch_size
    trained_turns = len(make_objective(args).trained_turns)
    trajectories = args.generation_batch_size // args.world_size  # of a rollout
    tokens = loss_tokens(args, trajectories, prompts_T)
    scored_together = min(tokens, args.rollout_batch_size * (prompts_T[-1] + answer))
    answers = trajectories * trained_turns * answer
    return Workload(
        rollout_rows=min(args.rollout_batch_size, trajectories),
        prompt=prompts_T[-1],
        answer=answer,
        scoring=PassTokens(scored_together, answers * scored_together // tokens),
        update=PassTokens(loss_tokens(args, micro_batch, prompts_T), micro_batch * trained_turns * answer),
    )


def loss_tokens(args: CoCoSConfig, trajectories: int, prompts_T: list[int]) -> int:
    """Return the tokens that one pass of the loss over some trajectories computes, padding included.

    A row of the loss is padded to the longest row. With shared prefixes, a group computes the prompt of its
    first trained turn once, and each of its trajectories the tokens after it.

    Example: a group of two with prompts of 100 and 160 and answers of 50 has four rows of 210 tokens, or a
    tree of 100 + 2 * 110 = 320.
    """
    trained_turns = len(make_objective(args).trained_turns)
    transcript = prompts_T[-1] + args.max_completion_length
    if not args.share_prefixes:
        return trajectories * trained_turns * transcript
    first = prompts_T[-trained_turns]
    return math.ceil(trajectories / args.num_generations) * first + trajectories * (transcript - first)


def updates_per_pass(args: CoCoSConfig, num_problems: int) -> int:
    """Return the number of updates in one pass over the problems.

    Remaining problems that do not fill a rollout are skipped. If there are too few for one, they are
    repeated, and a pass is one rollout.
    """
    problems_per_rollout = args.generation_batch_size // args.num_generations
    updates_per_rollout = args.steps_per_generation * args.num_iterations // args.gradient_accumulation_steps
    return max(1, num_problems // problems_per_rollout) * updates_per_rollout


def prompt_lengths(first: int, answer: int, instruction: int, turns: int) -> list[int]:
    """Return the number of tokens before each turn's answer if every answer has `answer` tokens.

    Example: a first prompt of 100, answers of 50 and an instruction of 10 give 100, 160, 220.
    """
    return [first + turn * (answer + instruction) for turn in range(turns)]
