"""The player of a training batch, without a trainer: a scripted generator and real programs."""

from contextlib import contextmanager

import pytest

from cocos.config.cocos_options import CoCoSOptions
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.training.rollouts import RolloutPlayer
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
    batch, played_here = player.sample_batch([1, 1, 0, 0])
    assert [group.index for group in batch.groups] == [1, 0]
    assert [t.problem.task_id for t in batch.trajectories] == ["2", "2", "1", "1"]
    assert [t.sample for t in batch.trajectories] == [0, 1, 0, 1] and played_here == batch.trajectories
    # x * x passes double(2) == 4 and double(0) == 0, but not double(-1) == -2.
    assert batch.groups[0].rewards_G_T == [[1, 1], [0, 1]]
    assert batch.groups[1].rewards_G_T == [[pytest.approx(2 / 3)] * 2, [0, pytest.approx(2 / 3)]]
    assert batch.groups[1].binary_G_T == [[0, 0], [0, 0]]


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
    assert player.rewards(trajectories[0], "binary") == [1.0, 1.0]  # what accuracy means stays
