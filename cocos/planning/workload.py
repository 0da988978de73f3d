"""Sequences and tokens of one update of train.py: of all GPUs, and of each phase on one of them.

Does not know the model.
"""

import math
from typing import NamedTuple

from cocos.assembly.objective import make_objective
from cocos.carry import named_carry
from cocos.config.trl_configs import CoCoSConfig


class PassTokens(NamedTuple):
    """Tokens that one GPU processes in one pass: all of them, and those whose probabilities are computed."""

    tokens: int
    scored: int


class Workload(NamedTuple):
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
    first trained turn once, and each of its trajectories the tokens after it. Without a transcript, what is
    shared is turn 1's prompt, and each trained turn adds what its prompt has more, and its answer.

    Example: a group of two with prompts of 100 and 160 and answers of 50 has four rows of 210 tokens, or a
    tree of 100 + 2 * 110 = 320; without a transcript, 100 + 2 * (50 + 110) = 420.
    """
    trained_turns, answer = len(make_objective(args).trained_turns), args.max_completion_length
    rows_T = [prompt + answer for prompt in prompts_T[-trained_turns:]]
    if not args.share_prefixes:
        return trajectories * trained_turns * rows_T[-1]
    groups = math.ceil(trajectories / args.num_generations)
    carry = named_carry(args.carry)
    shared = carry.shared_tokens(prompts_T, trained_turns)
    own = sum(row - shared for row in carry.covering(rows_T))
    return groups * shared + trajectories * own


def updates_per_pass(args: CoCoSConfig, num_problems: int) -> int:
    """Return the number of updates in one pass over the problems.

    Remaining problems that do not fill a rollout are skipped. If there are too few for one, they are
    repeated, and a pass is one rollout.
    """
    problems_per_rollout = args.generation_batch_size // args.num_generations
    updates_per_rollout = args.steps_per_generation * args.num_iterations // args.gradient_accumulation_steps
    return max(1, num_problems // problems_per_rollout) * updates_per_rollout


def problems_left_out(args: CoCoSConfig, num_problems: int) -> int:
    """Return how many problems each pass leaves out: those that do not fill a rollout."""
    problems_per_rollout = args.generation_batch_size // args.num_generations
    return num_problems % problems_per_rollout if num_problems > problems_per_rollout else 0


def left_out_text(args: CoCoSConfig, num_problems: int) -> str:
    """Return a sentence about the problems that each pass leaves out; "" if there are none."""
    if not (num_left_out := problems_left_out(args, num_problems)):
        return ""
    return (
        f"{num_left_out} of {num_problems} problems are left out of each pass, because "
        f"{args.generation_batch_size // args.num_generations} are sampled together (--rollout_batch_size)"
    )
