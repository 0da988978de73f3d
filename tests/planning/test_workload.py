"""Tokens and updates of a run, calculated by hand, and compared with what TRL and the trees of rows make of them."""

import math

import pytest
from trl.trainer.utils import RepeatSampler

from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.planning.workload import (
    left_out_text,
    loss_tokens,
    problems_left_out,
    run_workload,
    updates_per_pass,
)
from tests.training.test_prefix_tree import packed


def options(*words) -> CoCoSConfig:
    """Return options with groups of two, two turns and answers of at most 50 tokens; `words` override them."""
    needed = ("--model_name_or_path", "m", "--train_data", "t", "--output_dir", "o", "--report_to", "none")
    sizes = ("--rloo_k", 2, "--num_turns", 2, "--max_completion_length", 50, "--global_batch_size", 128)
    return parse_options(CoCoSConfig, "", [*map(str, (*needed, *sizes, *words))])


def test_problems_that_fill_no_rollout_are_left_out_of_a_pass_and_named():
    # 128 trajectories of groups of two are 64 problems; 374 = 5 x 64 + 54.
    assert [problems_left_out(options(), n) for n in (374, 128, 63)] == [54, 0, 0]
    assert left_out_text(options(), 374).startswith("54 of 374 problems are left out of each pass")
    assert left_out_text(options(), 128) == ""


def test_tokens_of_a_pass_by_hand():
    # Two rows of 160 + 50 tokens per trajectory; as trees, prompts of 100 once per group and 110 tokens after it.
    assert loss_tokens(options("--share_prefixes", "false"), 4, [100, 160]) == 4 * 2 * 210
    assert loss_tokens(options(), 4, [100, 160]) == 2 * 100 + 4 * 110
    assert loss_tokens(options(), 1, [100, 160]) == 210  # half a group
    assert loss_tokens(options("--credit", "last"), 4, [100, 160]) == 2 * 160 + 4 * 50
    # Without a transcript: prompts of 100 once per group, an answer of 50, then 60 tokens more and an answer.
    fresh = options("--carry", "counterexamples")
    assert loss_tokens(fresh, 4, [100, 160]) == 2 * 100 + 4 * (50 + 60 + 50)


def test_the_estimated_tokens_are_those_of_the_layout():
    """Two groups of three trajectories of two turns, whose answers of two tokens all differ."""
    rows = []
    for problem in (1, 2):
        for sibling in (3, 4, 5):
            first = [problem] * 6
            second = [*first, sibling, 6, 7, 7, 7]
            rows += [(first, [sibling, 6]), (second, [sibling, 8])]
    groups_of_three = options("--rloo_k", 3, "--max_completion_length", 2, "--global_batch_size", 12)
    estimated = loss_tokens(groups_of_three, 6, [6, 11])
    trees, _ = packed(*rows)
    # The first prompt's last token is repeated for each answer, and the last token of a row is left out.
    assert estimated == len(trees) + 2 == 2 * (6 + 3 * 7)


def test_without_a_transcript_the_estimate_is_the_layout_too():
    """A group of two; each trajectory has a second prompt of its own, which begins with the first one."""
    rows = []
    for sibling in (3, 4):
        first = [1] * 6
        rows += [(first, [sibling, 6]), ([*first, sibling + 5, 7], [sibling, 8])]
    words = ("--max_completion_length", 2, "--global_batch_size", 4, "--carry", "counterexamples")
    trees, _ = packed(*rows)
    # Four rows leave out their last token, and three of the four branches repeat the prompt's.
    assert loss_tokens(options(*words), 2, [6, 8]) == 6 + 2 * (2 + 2 + 2) == len(trees) + 4 - 3


def test_a_workload_by_hand():
    words = ("--global_batch_size", 16, "--rollout_batch_size", 12, "--per_device_train_batch_size", 4)
    workload = run_workload(options(*words), [100, 160])
    assert (workload.rollout_rows, workload.prompt, workload.answer) == (12, 160, 50)
    assert workload.update == (640, 4 * 2 * 50)
    # 16 trajectories have 8 x 320 = 2,560 tokens; twelve rows have 12 x 210 = 2,520.
    assert workload.scoring == (2520, 16 * 2 * 50 * 2520 // 2560)


@pytest.mark.parametrize(
    ("problems", "rollout", "updates_per_rollout"), [(374, 64, 1), (374, 128, 2), (63, 64, 1), (128, 64, 3)]
)
def test_a_pass_has_as_many_updates_as_trls_sampler_yields(problems, rollout, updates_per_rollout):
    args = options("--global_batch_size", 2 * rollout, "--num_iterations", updates_per_rollout)
    given = problems * math.ceil(rollout / problems)  # CoCoSTrainer repeats too few problems
    sampler = RepeatSampler(range(given), 2, rollout, repeat_count=updates_per_rollout)
    assert updates_per_pass(args, problems) == len(list(sampler)) / (2 * rollout)
