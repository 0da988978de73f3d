"""Flat groups give way to other problems, which are drawn in passes over all of them."""

import json
from dataclasses import replace
from itertools import chain

import pytest
import torch
from safetensors.torch import load_file
from transformers import set_seed

from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.rewards import Objective
from cocos.training.dynamic_sampling import Group, ProblemDraw, fill_batch
from cocos.training.rollouts import share_of_groups
from cocos.trajectories import Trajectory, Turn
from tests.support.training import fractions

OBJECTIVE = Objective(2, 2, "turn", 0.5, 0.0, None, [0.0, 0.0])
SOLVED, HOPELESS, MIXED = [[1.0, 1.0]] * 2, [[0.0, 0.0]] * 2, [[0.0, 1.0], [0.0, 0.0]]
PARTLY = [[0.5, 0.5]] * 2  # flat, and all programs are wrong


def group(problem, rewards_G_T=MIXED, objective=OBJECTIVE):
    """A group whose programs are right where they earn 1."""
    turn = Turn((1,), Completion((2,), "x"), "x", ExecutionResult((Verdict(Status.PASSED),)))
    trajectories = [
        Trajectory(Problem(str(problem), "text", ("assert f()",)), i, (turn,) * len(rewards_T))
        for i, rewards_T in enumerate(rewards_G_T)
    ]
    return Group(problem, trajectories, rewards_G_T, objective)


# -- the draw --


def test_every_pass_contains_every_problem_once_in_an_order_of_its_own():
    draw, drawn = ProblemDraw(6, seed=1), []
    for _ in range(9):  # three passes of six, two problems at a time
        drawn += (chosen := draw.choose(2))
        assert draw.choose(2) == chosen, "choosing changes nothing"
        draw.mark_played(chosen)
    passes = [drawn[i : i + 6] for i in range(0, 18, 6)]
    assert [sorted(one) for one in passes] == [list(range(6))] * 3
    assert len({tuple(one) for one in passes}) == 3
    assert ProblemDraw(6, seed=1).choose(6) == passes[0] != ProblemDraw(6, seed=2).choose(6)


def test_a_problem_of_the_next_pass_is_drawn_when_nothing_else_is_left():
    draw = ProblemDraw(3, seed=0)
    draw.mark_played([1])
    assert set(draw.choose(2)) == {0, 2} and draw.choose(3)[2] == 1
    assert draw.choose(2, without=[0, 2]) == [1]
    assert draw.choose(2, without=[0, 1, 2]) == []


def test_a_restored_draw_goes_on_as_the_saved_one():
    def play(draw, num_batches):
        batches = []
        for _ in range(num_batches):
            batches.append(draw.choose(3))
            draw.mark_played(batches[-1])
        return batches

    draw, restored = ProblemDraw(7, seed=5), ProblemDraw(7, seed=5)
    play(draw, 5)
    restored.num_played = json.loads(json.dumps(draw.num_played))
    assert play(restored, 20) == play(draw, 20)


# -- what is flat --


@pytest.mark.parametrize(
    ("rewards_G_T", "is_flat"),
    [
        (SOLVED, True),
        (HOPELESS, True),
        (PARTLY, True),
        (MIXED, False),
        ([[0.5, 0.0], [0.0, 0.0]], False),  # all wrong, but with a gradient
        ([[0.0, 1.0], [0.0, 1.0]], True),  # repaired by every sibling
        ([[0.0, 1.0], [1.0, 1.0]], False),  # flat at turn 2 only
        ([[1.0, None], [1.0, 1.0]], True),  # without a verdict nothing is known of the problem
    ],
)
def test_a_group_is_flat_if_it_is_flat_at_every_turn(rewards_G_T, is_flat):
    assert group(0, rewards_G_T).is_flat == is_flat


def test_flat_is_what_the_objective_says_about_the_returns_of_the_trained_turns():
    first_turn_differs = [[1.0, 1.0], [0.0, 1.0]]
    assert not group(0, first_turn_differs).is_flat
    assert group(0, first_turn_differs, replace(OBJECTIVE, gamma=0.0, turn_weights=[0.0, 1.0])).is_flat


def test_a_turn_that_is_not_sampled_cannot_make_a_group_mixed():
    # returns differ at turn 2 only, which nobody has sampled
    found = group(0, [[1.0, 1.0], [1.0, 0.5]], replace(OBJECTIVE, gamma=0.0))
    carried = [
        replace(t, turns=(t.turns[0], replace(t.turns[1], is_carried=True))) for t in found.trajectories
    ]
    assert not found.is_flat and replace(found, trajectories=carried).is_flat


# -- filling a batch --


def filled(rewards, max_draws, num_groups=4, num_problems=12):
    """A batch of problems with these rewards, mixed by default, and the problems of every draw."""
    draws = []

    def play(problems):
        draws.append(list(problems))
        return [group(problem, rewards.get(problem, MIXED)) for problem in problems]

    return fill_batch(play, ProblemDraw(num_problems, seed=0), num_groups, max_draws), draws


def order(num_problems=12):
    return ProblemDraw(num_problems, seed=0).choose(num_problems)


def test_only_flat_groups_give_way_and_their_places_are_filled_by_the_next_problems():
    first = order()
    flat = {first[1]: SOLVED, first[3]: HOPELESS, first[4]: PARTLY}
    batch, draws = filled(flat, max_draws=5)
    # places 1 and 3 are flat; problem 4 of the order is, too, and 5 takes place 1; then 6 takes place 3
    assert draws == [first[:4], first[4:6], first[6:7]]
    assert [g.index for g in batch.groups] == [first[0], first[5], first[2], first[6]]
    assert not any(g.is_flat for g in batch.groups), "a flat group was kept"
    assert {g.index for g in batch.dropped} == {first[1], first[3], first[4]}
    assert batch.metrics() == {"frac_groups_flat": pytest.approx(3 / 7), "draws": 2, "prompts_drawn": 7}


def test_after_the_last_draw_a_flat_group_stays_and_the_batch_is_whole():
    batch, draws = filled(dict.fromkeys(range(12), HOPELESS), max_draws=1)
    assert [len(problems) for problems in draws] == [4, 4]
    assert [g.index for g in batch.groups] == order()[:4] and len(batch.dropped) == 4
    assert len(batch.trajectories) == 8


def test_no_problem_is_played_twice_for_one_batch():
    batch, draws = filled(dict.fromkeys(range(6), SOLVED), max_draws=9, num_problems=6)
    assert sorted(chain(*draws)) == list(range(6)) and batch.num_draws == 1
    assert len(batch.groups) == 4 and all(g.is_flat for g in batch.groups)


def test_ranks_play_equally_many_trajectories_and_all_groups_are_whole():
    for num_ranks, whole, expected in [
        (1, False, ["aabbcc"]),
        (2, False, ["aab", "bcc"]),
        (2, True, ["aabb", "ccaa"]),
        (4, False, ["aa", "bb", "cc", "aa"]),
        (4, True, ["aa", "bb", "cc", "aa"]),
    ]:
        shares = [share_of_groups("abc", 2, whole, rank, num_ranks) for rank in range(num_ranks)]
        assert ["".join(share) for share in shares] == expected


# -- in training --


def dynamic_trainer(make_trainer, **options):
    """Pairs of trajectories at a low temperature: most groups are flat."""
    small = {"num_generations": 2, "global_batch_size": 8, "per_device_train_batch_size": 8}
    return make_trainer(num_problems=60, dynamic_sampling=3, **small | {"temperature": 0.5} | options)


def trained_batch(trainer):
    """The rows of one update, and every trajectory that was played for them, draw by draw."""
    play, draws = trainer.player.sample, []
    trainer.player.sample = lambda problems: draws.append(play(problems)) or draws[-1]
    set_seed(3)
    rows = trainer._generate_and_score_completions([{"index": 0}] * trainer.args.generation_batch_size)
    return rows, draws


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_an_update_trains_on_the_groups_that_have_a_gradient(make_trainer, beta):
    """Flat groups are replaced although KL penalties make their returns differ."""
    trainer = dynamic_trainer(make_trainer, beta=beta)
    if beta:  # away from its reference, so that the KL is not 0
        with torch.no_grad():
            trainer.model.model.norm.weight += 0.03
    rows, draws = trained_batch(trainer)
    groups = [played[i : i + 2] for played in draws for i in range(0, len(played), 2)]
    mixed = [group for group in groups if fractions(group[0]) != fractions(group[1])]
    assert len(draws) > 1 and 4 <= len(mixed) < len(groups), (
        "the batch needs a further draw, and can be filled"
    )
    trained = {
        tuple(ids[mask.bool()].tolist())
        for ids, mask in zip(rows["completion_ids"], rows["completion_mask"], strict=True)
    }
    expected = {
        turn.completion.token_ids for group in mixed[:4] for trajectory in group for turn in trajectory.turns
    }
    assert trained == expected
    assert len(rows["advantages"]) == 8 * 2
    assert (rows["advantages"].view(4, 4).abs().sum(1) > 0).all(), "a flat group was kept"
    metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert metrics["draws"] == len(draws) - 1 and metrics["prompts_drawn"] == len(groups)
    assert metrics["frac_groups_flat"] == pytest.approx(1 - len(mixed) / len(groups))
    tokens = sum(len(turn.completion.token_ids) for group in groups for t in group for turn in t.turns)
    assert metrics["sampled_tokens"] == metrics["sampled_tokens_total"] == tokens
    assert metrics["time/rollout_s"] >= metrics["time/generation_s"] > 0
    assert metrics["tokens_per_s"] == pytest.approx(tokens / metrics["time/generation_s"])
    # accuracy is that of all played trajectories, not of the selection
    right = [trajectory.turns[0].result.all_passed for group in groups for trajectory in group]
    assert metrics["acc_t1"] == pytest.approx(sum(right) / len(right))


def test_without_dynamic_sampling_the_batch_is_that_of_the_loader(make_trainer):
    trainer = make_trainer(num_generations=2, temperature=0.5)
    set_seed(3)
    rows = trainer._generate_and_score_completions([{"index": i // 2} for i in range(16)])
    metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert metrics["draws"] == 0 and metrics["prompts_drawn"] == 8 and len(rows["advantages"]) == 32
    assert metrics["frac_groups_flat"] > 0 and not any(trainer.player.draw.num_played)


def test_shared_first_turns_are_counted_once(make_trainer):
    trainer = dynamic_trainer(make_trainer, credit="last", temperature=1.0)
    _, draws = trained_batch(trainer)
    tokens = 0
    for played in draws:
        for i, trajectory in enumerate(played):
            turns = trajectory.turns[1:] if i % 2 else trajectory.turns
            tokens += sum(len(turn.completion.token_ids) for turn in turns)
    assert trainer._metrics["train"]["sampled_tokens"] == [tokens]


@pytest.mark.processes
def test_a_resumed_run_draws_and_trains_as_an_uninterrupted_one(make_trainer, tmp_path):
    """Four updates at once, and two after a checkpoint: the same problems, logs and weights, bit by bit."""

    def run(resume=None):
        trainer = dynamic_trainer(make_trainer, max_steps=4, save_strategy="steps", save_steps=2)
        play, problems = trainer.player.sample, []
        trainer.player.sample = lambda drawn: problems.extend(p.problem.task_id for p in drawn) or play(drawn)
        set_seed(1 if resume is None else 2)
        trainer.train(resume_from_checkpoint=resume)
        state = json.loads((tmp_path / "out/checkpoint-4/trainer_state.json").read_text())
        weights = load_file(tmp_path / "out/checkpoint-4/model.safetensors")
        return problems, state, weights

    whole, whole_state, whole_weights = run()
    rest, state, weights = run(str(tmp_path / "out/checkpoint-2"))
    assert len(rest) < len(whole) and whole[-len(rest) :] == rest
    names = ("draws", "prompts_drawn", "sampled_tokens", "sampled_tokens_total", "frac_groups_flat", "loss")
    logs, whole_logs = (
        [[log.get(n) for n in names] for log in s["log_history"]] for s in (state, whole_state)
    )
    assert logs == whole_logs and len({log[1] for log in logs}) > 1
    counters, whole_counters = (
        s["stateful_callbacks"]["RunCounters"]["attributes"] for s in (state, whole_state)
    )
    assert counters["draw"] == whole_counters["draw"] and sum(counters["draw"]) == len(whole) // 2
    assert counters["sampled_tokens"] == logs[3][3] > logs[2][3]
    assert all(torch.equal(weights[name], whole_weights[name]) for name in whole_weights)


@pytest.mark.parametrize("number", [-1, -5])
def test_fewer_than_no_draws_are_refused(number):
    with pytest.raises(ValueError, match=rf"--dynamic_sampling is {number}; give 0 or more"):
        CoCoSConfig(output_dir="out", model_name_or_path="m", train_data="t", dynamic_sampling=number)
