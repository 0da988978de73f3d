"""Rules between turns in training: feedback is context, what was not sampled is not trained."""

import json
from dataclasses import replace

import pytest
import torch
from transformers import set_seed

from cocos.assembly.data import load_training_data
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.command_line import check_options
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.problems import save_problems
from cocos.prompts import answer, named_protocol
from cocos.rewards import Score
from cocos.training.dynamic_sampling import Batch, Group
from tests.support.paths import ROOT
from tests.support.training import play, toy_problems

WORDS = named_protocol("cocos")
RULES = {"feedback": "error", "early_stop": True, "num_turns": 3, "num_problems": 16}
MIXED = (4, 6, 15)  # problems that the base solves in some samples, in all, and in some


def batch(trainer, numbers=MIXED):
    """The rows of a batch as the loss gets them, and the trajectories that they come from."""
    set_seed(7)
    inputs, trajectories = play(trainer, numbers=numbers)
    set_seed(7)
    return trainer._generate_and_score_completions(inputs), trajectories


def decoded(trainer, rows, number):
    """Prompt and completion of a row as text, as far as their masks reach."""
    return [
        trainer.processing_class.decode(rows[f"{part}_ids"][number][rows[f"{part}_mask"][number].bool()])
        for part in ("prompt", "completion")
    ]


def test_what_is_told_is_in_the_prompt_and_no_row_trains_anything_but_samples(make_trainer):
    trainer = make_trainer(**RULES)
    rows, trajectories = batch(trainer)
    num_told = num_carried = 0
    for i, trajectory in enumerate(trajectories):
        transcript = WORDS.first_turn(trajectory.problem)
        for t, turn in enumerate(trajectory.turns):
            prompt, completion = decoded(trainer, rows, 3 * i + t)
            if turn.is_carried:
                num_carried += 1
                assert (prompt, completion) == (trainer.processing_class.pad_token, "")
                assert rows["advantages"][3 * i + t] == 0
                continue
            if t:
                assert turn.feedback.startswith("The program above ") and turn.feedback in transcript
                num_told += 1
            assert (prompt, completion) == (transcript, turn.completion.text)
            following = trajectory.turns[t + 1].feedback if t < 2 else ""
            transcript += completion + WORDS.later_turn(completion.endswith("[DONE]"), following)
    assert num_told > 5 and num_carried > 5, "a batch without both proves nothing"


def test_empty_rows_change_neither_loss_nor_gradient_but_its_scale_stays_that_of_all_rows(make_trainer):
    """The loss of the batch is that of its sampled rows, times their share of B * K rows."""
    trainer = make_trainer(**RULES)
    trainer.model.train()
    rows, trajectories = batch(trainer)
    is_sampled = torch.tensor([turn.is_sampled for t in trajectories for turn in t.turns])

    def loss_and_gradient(part):
        trainer.model.zero_grad()
        loss = trainer._compute_loss(trainer.model, part)
        loss.backward()
        return loss.item(), torch.cat([p.grad.flatten() for p in trainer.model.parameters()])

    share = is_sampled.float().mean().item()
    loss, gradient = loss_and_gradient(rows)
    alone, gradient_alone = loss_and_gradient({name: values[is_sampled] for name, values in rows.items()})
    assert share < 0.9 and gradient.abs().max() > 1e-3
    assert loss == pytest.approx(alone * share, abs=1e-6)
    torch.testing.assert_close(gradient, gradient_alone * share, atol=1e-6, rtol=1e-4)


def test_a_batch_of_which_no_turn_was_sampled_has_a_loss_of_nothing(make_trainer):
    trainer = make_trainer(num_turns=2, credit="last")
    _, trajectories = play(trainer, num_problems=1)
    ended = [replace(t, turns=(t.turns[0], replace(t.turns[1], is_carried=True))) for t in trajectories]
    rows = trainer.rows(ended)
    assert rows["completion_mask"].sum() == 0
    assert trainer.row_statistics(rows).kl_R_C.sum(1).tolist() == [0.0] * 4
    rows["advantages"] = torch.zeros(4)
    trainer.model.train()
    assert trainer._compute_loss(trainer.model, rows).item() == 0.0


def test_hidden_tests_alone_pay_if_the_run_says_so(make_trainer):
    trainer = make_trainer(**RULES | {"num_turns": 2, "visible_tests": 1}, reward_tests="hidden")
    _, trajectories = batch(trainer)
    seen = set()
    for trajectory in trajectories:
        assert len(trajectory.problem.test_list) == 1
        for turn, reward in zip(trajectory.turns, trainer.player.rewards(trajectory), strict=True):
            visible, *hidden = (verdict.passed for verdict in turn.result.verdicts)
            assert reward == sum(hidden) / 2
            seen.add((visible, reward))
            assert "one fails" not in turn.feedback or trajectory.problem.test_list[0] in turn.feedback
            assert not any(test in turn.feedback for test in trajectory.problem.hidden_test_list)
    assert len(seen) > 2


def test_given_first_turns_are_context_that_siblings_share(make_trainer, tmp_path):
    """Two rows of the first problem and one of the third are three prompts; the second problem has none."""
    problems = toy_problems()[:3]
    given = [(0, "def mint(xs):\n    return 1"), (2, "def mint(xs):\n    return 2"), (0, "oops")]
    lines = [{"task_id": problems[i].task_id, "answers": [answer(code)]} for i, code in given]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    trainer = make_trainer(
        num_problems=3,
        answers=[str(tmp_path / "answers.jsonl")],
        global_batch_size=8,
        per_device_train_batch_size=8,
    )
    assert [(p.problem.task_id, p.given[0]) for p in trainer.prompts] == [
        (problems[0].task_id, answer(given[0][1])),
        (problems[0].task_id, answer(given[2][1])),
        (problems[2].task_id, answer(given[1][1])),
    ]
    rows, trajectories = batch(trainer, numbers=(0, 1, 2))
    for i, trajectory in enumerate(trajectories):
        first, second = trajectory.turns
        assert first.is_given and first.completion.text == trainer.prompts[i // 4].given[0]
        assert decoded(trainer, rows, 2 * i) == [trainer.processing_class.pad_token, ""]
        transcript = f"{WORDS.first_turn(trajectory.problem)}{first.completion.text}{WORDS.later_turn()}"
        assert decoded(trainer, rows, 2 * i + 1) == [transcript, second.completion.text]
    assert rows["advantages"][::2].tolist() == [0.0] * len(trajectories)
    assert trainer._metrics["train"]["sampled_t1"] == [0.0]
    assert trainer._metrics["train"]["sampled_t2"] == [1.0]
    trainer.train()
    assert trainer.state.global_step == 2


def test_dev_problems_are_played_by_the_rules_of_the_run_and_from_turn_1(make_trainer, monkeypatch):
    prompts = []
    generate = HuggingFaceGenerator.generate

    def recording(self, ids, temperature, seeds=None):
        prompts.append((temperature, [self.tokenizer.decode(row) for row in ids]))
        return generate(self, ids, temperature, seeds)

    monkeypatch.setattr(HuggingFaceGenerator, "generate", recording)
    dev_problems = toy_problems("dev")[:20]
    trainer = make_trainer(dev_problems=dev_problems, eval_strategy="steps", eval_steps=1, **RULES)
    metrics = trainer.evaluate()
    [(temperature, first), (_, second), (_, third)] = prompts
    assert temperature == 0.0 and len(first) == 20
    solved = round(20 * metrics["eval_acc_t1"])
    assert len(second) == 20 - solved < 20 and len(third) == 20 - round(20 * metrics["eval_acc_t2"])
    assert all("The program above " in prompt for prompt in second)


def test_tokens_of_a_trajectory_that_stopped_are_those_of_its_last_sampled_turn(make_trainer):
    trainer = make_trainer(**RULES)
    _, trajectories = play(trainer, numbers=MIXED)
    stopped = next(t for t in trajectories if t.turns[1].is_carried)
    turn = stopped.turns[0]
    trainer.count_tokens([stopped])
    assert trainer.state.num_input_tokens_seen == len(turn.prompt_ids) + len(turn.completion.token_ids)


def test_the_log_says_how_many_turns_were_sampled_and_averages_over_these(make_trainer):
    trainer = make_trainer(**RULES)
    _, trajectories = play(trainer, numbers=MIXED)
    sampled = [t.turns[1] for t in trajectories if t.turns[1].is_sampled]
    scores = [
        Score(trainer.player.rewards(t), [0.0 if turn.is_sampled else None for turn in t.turns])
        for t in trajectories
    ]
    rewards = [score.rewards_T for score in scores]
    batch = Batch([Group(0, trajectories, rewards, trainer.objective)], dropped=[], num_draws=0)
    trainer._log_batch(batch, scores, [[0.0] * 3] * len(trajectories))
    logged = trainer._metrics["train"]
    assert 0 < len(sampled) < len(trajectories)
    assert logged["sampled_t2"] == [len(sampled) / len(trajectories)]
    lengths = [len(turn.completion.token_ids) for turn in sampled]
    assert logged["completion_length_t2"] == [sum(lengths) / len(lengths)]


# -- options --


def data(tmp_path, **options):
    """Load the data of a run on three problems of the laboratory."""
    save_problems(toy_problems()[:3], tmp_path / "train.jsonl")
    given = {"model_name_or_path": "m", "train_data": str(tmp_path / "train.jsonl"), "output_dir": "out"}
    return load_training_data(CoCoSOptions(**given, **options))


def test_a_problem_whose_tests_all_are_visible_cannot_be_paid_by_hidden_ones(tmp_path):
    assert len(data(tmp_path, reward_tests="hidden", visible_tests=2).prompts) == 3
    with pytest.raises(
        ValueError, match=r"3 problems of .* have no hidden test, so none is left to train; lower"
    ):
        data(tmp_path, reward_tests="hidden", visible_tests=3)


def test_problems_without_a_hidden_test_are_left_out_of_a_training_that_pays_for_those(tmp_path, capsys):
    first, *others = toy_problems()[:14]
    single = [replace(problem, test_list=problem.test_list[:1]) for problem in others]
    save_problems([*single, first], tmp_path / "mine.jsonl")
    words = ["--config", str(ROOT / "configs/quick.yaml"), "--train_data", str(tmp_path / "mine.jsonl")]
    loaded = load_training_data(check_options(CoCoSOptions, "", words))
    assert loaded.problems == [
        replace(first, test_list=first.test_list[:1], hidden_test_list=first.test_list[1:])
    ]
    [note] = capsys.readouterr().err.splitlines()
    assert "13 problems of" in note and note.endswith(f"{others[9].task_id!r} and 3 more")


def test_tests_that_are_told_can_stay_out_of_the_prompt(tmp_path):
    loaded = data(tmp_path, prompt_tests=0, feedback="error")
    problem = loaded.problems[0]
    assert len(problem.test_list) == 3
    assert "assert" not in loaded.protocol.first_turn(problem)
    with pytest.raises(ValueError, match="--visible_tests is 0; give 1 or more, and --prompt_tests 0"):
        data(tmp_path, visible_tests=0, feedback="error")


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        (
            [{"task_id": "train-0", "answers": ["x", "y"]}],
            "so none of the 2 is left to train; raise --num_turns",
        ),
        ([{"task_id": "other", "answers": ["x"]}], "no row is about a problem of --train_data"),
    ],
)
def test_answers_that_leave_nothing_to_train_are_refused(tmp_path, answers, complaint):
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    with pytest.raises(ValueError, match=complaint):
        data(tmp_path, answers=[str(tmp_path / "answers.jsonl")])


def test_given_programs_that_end_the_trajectory_and_repeated_ones_are_no_prompts(tmp_path):
    def row(task_id: str, code: str, *passed: bool) -> dict:
        verdicts = [{"status": "passed" if test else "failed"} for test in passed]
        return {"task_id": task_id, "turns": [{"completion": code, "verdicts": verdicts}]}

    rows = [
        row("train-1", "fools the visible test", True, False, False),
        row("train-0", "wrong", False, True, True),
    ]
    rows += [row("train-0", "wrong", False, True, True), row("train-0", "also wrong", False, False, False)]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = {"answers": [str(tmp_path / "samples.jsonl")], "visible_tests": 1}
    left = data(tmp_path, **source, early_stop=True).prompts
    assert [(p.problem.task_id, p.sample, p.given) for p in left] == [
        ("train-0", 0, ("wrong",)),
        ("train-0", 2, ("also wrong",)),
    ]
    # Without early stop, every program is to be kept or repaired
    assert len(data(tmp_path, **source).prompts) == 3
    (tmp_path / "samples.jsonl").write_text(json.dumps(rows[0]))
    with pytest.raises(ValueError, match="none is left to repair"):
        data(tmp_path, **source, early_stop=True)


def test_a_resampled_turn_is_not_of_the_policy_and_refused(tmp_path):
    with pytest.raises(ValueError, match="--on_repeat resample is for evaluation"):
        data(tmp_path, on_repeat="resample")


def test_a_reward_of_ones_own_replaces_that_of_the_verdicts(make_trainer, tmp_path, monkeypatch):
    (tmp_path / "length_reward.py").write_text(
        "def length(t):\n    return [float(len(turn.code)) for turn in t.turns]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trainer = make_trainer(num_turns=2, reward="length_reward:length")
    _, trajectories = play(trainer, num_problems=1)
    for trajectory in trajectories:
        assert trainer.player.rewards(trajectory) == [len(turn.code) for turn in trajectory.turns]


def test_fewer_problems_than_a_batch_needs_are_repeated(make_trainer):
    trainer = make_trainer(num_problems=3, max_steps=2)  # a batch has 16 / 4 = 4 problems
    result = trainer.train()
    assert result.global_step == 2 and len(trainer.prompts) == 6
    with pytest.raises(ValueError, match="no problems to train on; give one or more"):
        make_trainer(num_problems=0)
