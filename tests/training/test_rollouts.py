"""The player of a training batch, without a trainer: a scripted generator and real programs."""

import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cocos.config.cocos_options import CoCoSOptions
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.rollout import NOT_EXECUTED
from cocos.training.rollouts import RolloutPlayer, call_beside
from cocos.trajectories import begin

RIGHT, HALF, WRONG = (f"def double(x):\n    return {body}\n[DONE]" for body in ("2 * x", "x * x", "None"))


@pytest.fixture
def make_player(problem, executor):
    """A function that returns a player of two problems, whose answers come one after another."""

    def make(answers, max_completion_length=1000, **options):
        options = {"train_data": "-", "model_name_or_path": "-", "output_dir": "-"} | options
        script = iter(answers)

        @contextmanager
        def opened():
            yield ScriptedGenerator(lambda prompt: next(script), max_completion_length)

        other = Problem(task_id="2", text="Double it.", test_list=problem.test_list[:2], code=problem.code)
        prompts = begin([problem, other])
        return RolloutPlayer(CoCoSOptions(**options), prompts, executor, named_protocol("cocos"), opened)

    return make


def test_siblings_of_a_batch_stand_together_with_the_rewards_of_their_turns(make_player):
    player = make_player([RIGHT, WRONG, HALF, WRONG, RIGHT, RIGHT, HALF, HALF])
    batch, played_here, _ = player.sample_batch([1, 1, 0, 0])
    assert [group.index for group in batch.groups] == [1, 0]
    assert [t.problem.task_id for t in batch.trajectories] == ["2", "2", "1", "1"]
    assert [t.sample for t in batch.trajectories] == [0, 1, 0, 1] and played_here == batch.trajectories
    # x * x passes double(2) == 4 and double(0) == 0, but not double(-1) == -2.
    assert batch.groups[0].rewards_G_T == [[1, 1], [0, 1]]
    assert batch.groups[1].rewards_G_T == [[pytest.approx(2 / 3)] * 2, [0, pytest.approx(2 / 3)]]


def test_meanwhile_sees_a_batch_whose_last_programs_still_run(make_player):
    slow = RIGHT.replace("return", "import time; time.sleep(0.5); return")
    player = make_player([RIGHT, slow] * 2)
    batch, _, unfinished = player.sample_batch([0, 0], meanwhile=lambda unfinished: unfinished)
    assert [turn.result for t in unfinished for turn in t.turns] == [NOT_EXECUTED] * 4
    with_results = [
        replace(t, turns=tuple(replace(turn, result=NOT_EXECUTED) for turn in t.turns))
        for t in batch.trajectories
    ]
    assert unfinished == with_results
    assert all(turn.result.all_passed for t in batch.trajectories for turn in t.turns)


def test_meanwhile_is_not_called_if_the_results_decide_on_the_batch(make_player):
    player = make_player([RIGHT, WRONG] * 4, dynamic_sampling=1)
    player.sample_batch([0, 0], meanwhile=lambda unfinished: pytest.fail("called"))


def test_only_the_seconds_beside_a_pending_result_are_hidden():
    pending, done = Future(), Future()
    done.set_result(None)
    assert call_beside([done], lambda: time.sleep(0.05)) == (None, 0)
    assert call_beside([done, pending], lambda: time.sleep(0.05))[1] >= 0.05

    def finish_early():
        pending.set_result(None)
        time.sleep(0.2)

    assert 0 <= call_beside([pending], finish_early)[1] < 0.2


def test_with_credit_last_siblings_share_their_first_turn(make_player):
    player = make_player([WRONG, RIGHT, WRONG], credit="last")
    first, second = player.sample(player.prompts[:1] * 2)
    assert first.turns[0] == second.turns[0]
    assert [t.turns[1].result.all_passed for t in (first, second)] == [True, False]


def test_a_batch_of_cut_off_answers_ends_the_run(make_player):
    player = make_player([WRONG] * 4, max_completion_length=10)
    with pytest.raises(ValueError, match="4 of 4 completions were truncated at 512 tokens"):
        player.sample_batch([0, 0])


def test_random_rewards_are_the_same_wherever_they_are_computed_and_say_nothing_about_programs(make_player):
    player = make_player([RIGHT, WRONG] * 16, reward="random", num_generations=16)
    trajectories = player.sample([player.prompts[0]] * 16)
    rewards = [player.rewards(trajectory) for trajectory in trajectories]
    of_right = {
        reward
        for rewards_T, trajectory in zip(rewards, trajectories, strict=True)
        for reward, turn in zip(rewards_T, trajectory.turns, strict=True)
        if turn.result.all_passed
    }
    assert of_right == {0.0, 1.0}
    assert [make_player([], reward="random").rewards(t) for t in trajectories] == rewards
