"""Agents in training: the trajectories are the agent's, and what the model says in them is trained."""

import pytest
import torch
from transformers import set_seed

from cocos.agents.graphs import play_with_agent
from cocos.agents.words import agent_protocol
from cocos.config.cocos_options import CoCoSOptions
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import load_problems
from cocos.prompts import answer, named_protocol
from cocos.trajectories import Rules, begin
from tests.support.paths import TOY
from tests.support.training import play

SORTED = (15, 4, 6)  # problems in the order of their ids, of which the base solves some samples
SIZES = {"num_turns": 3, "num_problems": 16}


def batch(trainer):
    """The trajectories of a batch, and its rows as the loss gets them."""
    set_seed(7)
    inputs, trajectories = play(trainer, numbers=SORTED)
    set_seed(7)
    return trajectories, trainer._generate_and_score_completions(inputs)


def spans(trainer, rows, part):
    """Prompts or completions of the rows as text, as far as their masks reach."""
    ids, masks = rows[f"{part}_ids"], rows[f"{part}_mask"].bool()
    return [trainer.processing_class.decode(of_row[mask]) for of_row, mask in zip(ids, masks, strict=True)]


def test_react_samples_and_trains_what_the_turn_loop_does_with_feedback_and_early_stop(make_trainer):
    played, rows = batch(make_trainer(agent="react", **SIZES))
    others, expected = batch(make_trainer(feedback="error", early_stop=True, **SIZES))
    assert [[turn.completion.token_ids for turn in t.turns] for t in played] == [
        [turn.completion.token_ids for turn in t.turns] for t in others
    ]
    assert rows["advantages"].any() and any(turn.is_carried for t in played for turn in t.turns)
    assert rows.keys() == expected.keys()
    for name in ("prompt_ids", "completion_ids", "completion_mask", "advantages"):
        assert torch.equal(rows[name], expected[name]), name


def test_every_token_that_reflect_samples_is_trained_and_nothing_that_it_is_told(make_trainer):
    trainer = make_trainer(agent="reflect", **SIZES)
    trajectories, rows = batch(trainer)
    prompts, completions = spans(trainer, rows, "prompt"), spans(trainer, rows, "completion")
    nodes = set()
    for number, turn in enumerate(turn for t in trajectories for turn in t.turns):
        if turn.is_carried:
            assert completions[number] == "" and rows["advantages"][number] == 0
            continue
        nodes.add(turn.step.node)
        assert completions[number] == turn.completion.text and turn.step.temperature == 1.0
        assert turn.feedback in prompts[number] and (turn.feedback or turn.step.node == "draft")
    assert nodes > {"draft", "reflect"}


def test_in_a_chat_the_diagnosis_is_trained_with_the_program(make_trainer):
    trainer = make_trainer(agent="reflect", **SIZES)
    tokenizer = trainer.processing_class
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}<answer> "
    trainer.player.protocol = agent_protocol(named_protocol("chat"), "reflect")
    trajectories, rows = batch(trainer)
    prompts, completions = spans(trainer, rows, "prompt"), spans(trainer, rows, "completion")
    later = [turn for t in trajectories for turn in t.turns[1:] if turn.step]
    assert later and all(prompt.startswith("<system> You repair") for prompt in prompts if len(prompt) > 9)
    assert completions == [
        "" if turn.is_carried else tokenizer.decode(turn.completion.token_ids)
        for t in trajectories
        for turn in t.turns
    ]


def test_given_programs_are_the_first_turns_of_an_agent_and_not_trained(make_trainer, tmp_path):
    [problem] = load_problems(TOY / "train.jsonl")[:1]
    (tmp_path / "answers.jsonl").write_text(f'{{"task_id": "{problem.task_id}", "solution": "oops("}}')
    answers = [str(tmp_path / "answers.jsonl")]
    trainer = make_trainer(
        agent="reflect", num_problems=1, answers=answers, global_batch_size=4, per_device_train_batch_size=4
    )
    set_seed(7)
    _, trajectories = play(trainer, numbers=[0])
    assert {t.turns[0].completion.text for t in trajectories} == {answer("oops(")}
    assert all(t.turns[1].step.node == "syntax" and t.turns[1].is_sampled for t in trajectories)
    assert trainer.rows(trajectories)["completion_mask"].any(1).tolist() == [False, True] * 4


def test_dev_problems_are_played_greedily_by_the_agent(make_trainer):
    dev_problems = load_problems(TOY / "dev.jsonl")[:6]
    trainer = make_trainer(
        agent="react", dev_problems=dev_problems, eval_strategy="steps", eval_steps=1, **SIZES
    )
    trainer.model.eval()
    steps = [turn.step for t in trainer.player.play_greedily(dev_problems) for turn in t.turns if turn.step]
    assert {step.node for step in steps} == {"propose"} and {step.temperature for step in steps} == {0.0}


@pytest.mark.parametrize("num_solved", [0, 1, 2])
def test_sharded_weights_are_asked_once_per_turn_however_many_trajectories_have_ended(
    num_solved, problem, executor
):
    """Every rank takes part in each forward pass: unequally many calls would wait for each other for ever."""

    class Sharded(ScriptedGenerator):
        is_collective, sizes = True, ()

        def generate(self, prompts, temperature, seeds=None):
            self.sizes += (len(prompts),)
            return super().generate(prompts, temperature, seeds)

    programs = [answer(problem.code)] * num_solved + [answer("def double(x):\n    return None")] * 9
    generator = Sharded(lambda prompt: programs.pop(0))
    rules = Rules(temperatures=(1.0,))
    wording = named_protocol("cocos")
    play_with_agent(begin([problem], 2), generator, executor, wording, 3, rules, "react", max_repeats=9)
    assert generator.sizes == (2, 2 - num_solved, 2 - num_solved)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"agent": "tools"}, "--agent tools is for evaluation"),
        ({"agent": "react", "credit": "last"}, "--credit last shares the turns before the last"),
        ({"agent": "react", "feedback": "error"}, "--agent react has its own feedback"),
        ({"agent": "reflect", "visible_tests": 0}, "--agent reflect needs visible tests"),
    ],
)
def test_what_an_agent_cannot_train_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        CoCoSOptions(model_name_or_path="m", train_data="t", output_dir="o", **options)
