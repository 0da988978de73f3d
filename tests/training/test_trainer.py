"""CoCoSTrainer on the laboratory's real model: what is trained, with which advantage, from which tokens."""

import json
import logging
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import LoraConfig
from transformers import Trainer, TrainerCallback, set_seed

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer
from cocos.metrics import correction_metrics, edit_metrics
from cocos.prompts import DONE, named_protocol
from cocos.rewards import Score
from cocos.rollout import rollout
from cocos.training.dynamic_sampling import Batch, Group
from cocos.training.monitor import peak_memory_mb, trajectory_metrics
from cocos.trajectories import Trajectory, Turn, begin
from tests.support.paths import ROOT
from tests.support.training import fractions, play, toy_problems

TOY = str(ROOT / "data/toy/base")
WORDS = named_protocol("cocos")


def rows_of_a_batch(trainer, num_problems=4):
    """The batch that the parent's loss would get, and the very trajectories it was made from."""
    set_seed(7)
    inputs, trajectories = play(trainer, num_problems)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.player, "sample_beside", lambda problems, meanwhile: (trajectories, None))
        return trainer._generate_and_score_completions(inputs), trajectories


def by_hand(rewards_B_T, group, return_of):
    """Leave-one-out advantages written as the definition has them: a loop over siblings."""
    expected = []
    for i, rewards in enumerate(rewards_B_T):
        first = i - i % group
        siblings = [rewards_B_T[j] for j in range(first, first + group) if j != i]
        baseline = sum(return_of(r) for r in siblings) / len(siblings)
        expected.append(return_of(rewards) - baseline)
    return expected


def test_every_trained_span_decodes_to_what_was_sampled_after_exactly_the_words_before_it(make_trainer):
    trainer = make_trainer()
    rows, trajectories = rows_of_a_batch(trainer)
    tokenizer = trainer.processing_class
    for number, trajectory in enumerate(trajectories):
        transcript = WORDS.first_turn(trajectory.problem)
        for t, turn in enumerate(trajectory.turns):
            row = 2 * number + t
            prompt = rows["prompt_ids"][row][rows["prompt_mask"][row].bool()]
            completion = rows["completion_ids"][row][rows["completion_mask"][row].bool()]
            assert tokenizer.decode(prompt) == transcript
            assert tokenizer.decode(completion) == turn.completion.text
            assert (
                turn.completion.text.endswith(DONE) or turn.completion.is_truncated or turn.completion.is_eos
            )
            transcript += turn.completion.text + WORDS.later_turn(turn.completion.text.endswith(DONE))


def test_old_logps_are_those_of_the_sampled_tokens_and_of_no_others(make_trainer):
    """Against a plain forward pass, unpadded: log-softmax at temperature 0.7, summed over the answer."""
    trainer = make_trainer(temperature=0.7, num_iterations=2)
    rows, trajectories = rows_of_a_batch(trainer, num_problems=2)
    model = load_model(TOY)
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    for row, turn in enumerate(turns):
        answer = list(turn.completion.token_ids)
        ids = torch.tensor([[*turn.prompt_ids, *answer]])
        with torch.no_grad():
            logps = (model(ids).logits[0, -len(answer) - 1 : -1] / 0.7).log_softmax(-1)
        expected = logps.gather(1, torch.tensor(answer)[:, None]).sum()
        assert rows["old_logps"][row].item() == pytest.approx(expected.item(), abs=2e-3)


def test_a_sampled_pad_or_end_id_is_trained_because_masks_come_from_lengths(make_trainer):
    """Answers that hold nothing but the id that also pads: three and five of them are trained."""
    trainer = make_trainer()
    pad = trainer.processing_class.pad_token_id
    _, trajectories = play(trainer, num_problems=1)
    for length, trajectory in zip((3, 5), trajectories, strict=False):
        completion = replace(trajectory.turns[0].completion, token_ids=(pad,) * length)
        turns = (replace(trajectory.turns[0], completion=completion), trajectory.turns[1])
        rows = trainer.rows([replace(trajectory, turns=turns)])
        assert rows["completion_mask"][0].tolist()[:length] == [1] * length
        assert rows["completion_mask"][0].sum() == length
        assert rows["prompt_mask"][0].sum() == len(turns[0].prompt_ids)


def test_no_logits_of_the_vocabulary_are_kept_and_the_kl_is_summed_in_float32(make_trainer):
    """A bfloat16 model: what its forward pass returns has a number per token, and sums are no bfloat16."""
    trainer = make_trainer(beta=0.1, num_iterations=2, model_init_kwargs={"dtype": "bfloat16"})
    _, trajectories = play(trainer, num_problems=2)
    rows = trainer.rows(trajectories)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    returned = []
    trainer.model.register_forward_hook(lambda model, inputs, output: returned.append(output))
    old_logps, kl_R_C, _ = trainer.row_statistics(rows)
    kl = kl_R_C.sum(1)
    trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps, "advantages": torch.ones(len(kl))})
    # The old and the new log-probabilities, and two to check shared prefixes; the reference is another model.
    assert len(returned) == 4
    for output in returned:
        tensors = [value for value in output.values() if isinstance(value, torch.Tensor)]
        assert tensors and all(tensor.dim() <= 2 for tensor in tensors)
    assert next(trainer.model.parameters()).dtype == torch.bfloat16
    for summed in (old_logps, kl):
        assert summed.dtype == torch.float32 and (summed != summed.bfloat16().float()).any()


@pytest.mark.parametrize(
    ("credit", "first_return"),
    [("turn", lambda r: r[0] + 0.5 * r[1]), ("trajectory", lambda r: 0.5 * r[0] + (r[1] - r[0]))],
)
def test_each_turn_has_as_advantage_its_return_to_go_or_what_it_can_influence_of_the_accumulated_reward(
    make_trainer, credit, first_return
):
    rows, trajectories = rows_of_a_batch(make_trainer(credit=credit, gamma=0.5), num_problems=8)
    rewards_B_T = [fractions(t) for t in trajectories]
    expected_1, expected_2 = by_hand(rewards_B_T, 4, first_return), by_hand(rewards_B_T, 4, lambda r: r[1])
    got = rows["advantages"].view(-1, 2) / 2  # the loss averages over rows, the objective sums over two turns
    assert got[:, 0].tolist() == pytest.approx(expected_1, abs=1e-6)
    assert got[:, 1].tolist() == pytest.approx(expected_2, abs=1e-6)
    assert any(expected_1) and any(expected_2), "a batch without spread proves nothing"


def test_the_improvement_bonus_reaches_turn_two_only(make_trainer):
    rows, trajectories = rows_of_a_batch(make_trainer(improvement_bonus=3.0))
    rewards_B_T = [fractions(t) for t in trajectories]
    got = rows["advantages"].view(-1, 2) / 2
    assert got[:, 0].tolist() == pytest.approx(by_hand(rewards_B_T, 4, lambda r: r[0] + 0.5 * r[1]), abs=1e-6)
    expected = by_hand(rewards_B_T, 4, lambda r: (1 + 3) * r[1])
    assert got[:, 1].tolist() == pytest.approx(expected, abs=1e-6)


def test_with_max_at_2_an_attempt_is_paid_for_the_best_of_the_pairs_with_it(make_trainer):
    rows, trajectories = rows_of_a_batch(make_trainer(num_turns=1, max_at_k=2), num_problems=8)
    rewards = [fractions(t)[0] for t in trajectories]
    expected = []
    for i, own in enumerate(rewards):
        first, second, third = (rewards[j] for j in range(i - i % 4, i - i % 4 + 4) if j != i)
        with_it = max(own, first) + max(own, second) + max(own, third)
        without = max(first, second) + max(first, third) + max(second, third)
        expected.append(2 * (with_it - without) / 3)
    assert rows["advantages"].tolist() == pytest.approx(expected, abs=1e-6)
    assert any(expected), "a batch without spread proves nothing"


def test_with_credit_last_siblings_share_turn_one_and_only_turn_two_is_trained(make_trainer, caplog):
    with caplog.at_level(logging.WARNING):
        trainer = make_trainer(credit="last")
    assert "gamma has no effect" in caplog.text
    rows, trajectories = rows_of_a_batch(trainer)
    assert len(rows["advantages"]) == len(trajectories)
    for first in range(0, len(trajectories), 4):
        assert len({t.turns[0].completion.token_ids for t in trajectories[first : first + 4]}) == 1
    for row, trajectory in enumerate(trajectories):
        completion = rows["completion_ids"][row][rows["completion_mask"][row].bool()]
        assert tuple(completion.tolist()) == trajectory.turns[1].completion.token_ids
    expected = by_hand([fractions(t) for t in trajectories], 4, lambda r: r[1])
    assert rows["advantages"].tolist() == pytest.approx(expected, abs=1e-6)


def test_credit_trajectory_says_what_it_maximises(make_trainer, caplog):
    with caplog.at_level(logging.WARNING):
        make_trainer(credit="trajectory", gamma=1.0)
        assert "maximises" not in caplog.text
        make_trainer(credit="trajectory", gamma=0.5)
    assert "maximises -0.5 E[r_1] + E[r_2]" in caplog.text


@pytest.mark.processes
def test_more_turns_make_a_row_each(make_trainer):
    trainer = make_trainer(num_turns=3, max_steps=1)
    rows, trajectories = rows_of_a_batch(trainer)
    assert len(rows["advantages"]) == 16 * 3
    rewards_B_T = [fractions(t) for t in trajectories]
    got = rows["advantages"].view(-1, 3) / 3
    for t in range(3):
        expected = by_hand(rewards_B_T, 4, lambda r, t=t: sum(0.5 ** (s - t) * r[s] for s in range(t, 3)))
        assert got[:, t].tolist() == pytest.approx(expected, abs=1e-6)
    trainer.train()
    assert trainer.state.global_step == 1


def test_an_executor_failure_has_no_reward_and_leaves_its_siblings_baseline(make_trainer):
    trainer = make_trainer()
    _, trajectories = play(trainer, num_problems=1)
    broken = replace(trajectories[0].turns[1], result=ExecutionResult((), infra_error="the worker died"))
    rewards = trainer.player.rewards(replace(trajectories[0], turns=(trajectories[0].turns[0], broken)))
    assert rewards[1] is None and rewards[0] is not None
    scores = [Score(r, [0.0, 0.0]) for r in ([0.0, None], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5])]
    advantages = trainer.advantages(scores)
    assert advantages[0] == [0.0, 0.0]
    # turn 2: returns 1, 0, 0.5 without the broken one: 1 - 0.25, 0 - 0.75, 0.5 - 0.5
    assert [a[1] for a in advantages[1:]] == pytest.approx([0.75, -0.75, 0.0])
    # turn 1: 1.5, 0, 0.75
    assert [a[0] for a in advantages[1:]] == pytest.approx([1.5 - 0.375, 0 - 1.125, 0.75 - 0.75])


@pytest.mark.parametrize(("is_rewarded", "rewards"), [(False, [0.0, 0.0]), (True, [1.0, 1.0])])
def test_an_in_child_verdict_earns_nothing_and_is_warned_about_unless_it_is_rewarded(
    make_trainer, caplog, is_rewarded, rewards
):
    trainer = make_trainer(reward_in_child=is_rewarded, num_turns=2)
    marked = ExecutionResult((Verdict(Status.PASSED, in_child_reason="the test awaits"),))
    turn = Turn((1,), Completion((2,), "x"), "x", marked)
    trajectory = Trajectory(trainer.prompts[0].problem, turns=(turn, turn))
    assert trainer.player.rewards(trajectory) == rewards
    batch = Batch([Group(0, [trajectory], [rewards], trainer.objective)], dropped=[], num_draws=0)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            trainer._log_batch(batch, [Score(rewards, [0.0, 0.0])], [[0.0, 0.0]])
    assert caplog.text.count("earn nothing") == (not is_rewarded)
    assert trainer._metrics["train"]["in_child"] == [1.0, 1.0]


@pytest.mark.parametrize("peft_config", [None, LoraConfig(r=4, target_modules=["q_proj", "v_proj"])])
def test_the_reference_is_the_policy_at_step_zero(make_trainer, peft_config):
    trainer = make_trainer(beta=0.1, peft_config=peft_config)
    _, trajectories = play(trainer, num_problems=2)
    rows = trainer.rows(trajectories)
    _, kl, _ = trainer.row_statistics(rows)
    assert kl.abs().max() == 0
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn_like(parameter)
    _, kl, _ = trainer.row_statistics(rows)
    assert kl.abs().max() > 0.1


@pytest.mark.processes
def test_training_raises_the_sampled_reward(make_trainer):
    """Real learning: over 6 updates the mean reward rises by more than a tenth."""
    trainer = make_trainer(
        num_problems=2000,
        max_steps=6,
        global_batch_size=64,
        per_device_train_batch_size=64,
        num_turns=1,
        learning_rate=1e-3,
    )
    trainer.train()
    rewards = [log["reward_t1"] for log in trainer.state.log_history if "reward_t1" in log]
    assert len(rewards) == 6
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.1


@pytest.mark.processes
def test_dev_evaluation_chooses_the_checkpoint_and_the_last_step_is_evaluated(make_trainer, tmp_path):
    dev = toy_problems("dev")[:12]
    trainer = make_trainer(
        dev_problems=dev,
        dev_data="data/toy/dev.jsonl",
        max_steps=3,
        eval_steps=2,
        save_steps=2,
        learning_rate=1e-3,
    )
    trainer.train()
    evaluations = {
        log["step"]: log["eval_acc_t2"] for log in trainer.state.log_history if "eval_acc_t2" in log
    }
    assert sorted(evaluations) == [2, 3]
    best = max(evaluations.values())
    assert trainer.state.best_metric == pytest.approx(best)
    assert evaluations[trainer.state.best_global_step] == best
    again = trainer.evaluate()
    assert again["eval_acc_t2"] == pytest.approx(best), (
        "the best checkpoint's weights are the ones left in the model"
    )
    assert again["eval_delta_t1_t2"] == pytest.approx(again["eval_i2c_t1_t2"] - again["eval_c2i_t1_t2"])


def test_dev_evaluation_gives_what_test_py_computes(make_trainer, executor):
    dev = toy_problems("dev")[:20]
    trainer = make_trainer(dev_problems=dev, dev_data="data/toy/dev.jsonl")
    generator = HuggingFaceGenerator(load_model(TOY), load_tokenizer(TOY), 40)
    played = rollout(begin(dev), generator, executor, WORDS, 2)
    expected = correction_metrics(played) | edit_metrics(played)
    found = trainer.evaluate()
    assert {name: found[f"eval_{name}"] for name in expected} == {n: e.value for n, e in expected.items()}
    assert {f"eval_{name}": value for name, value in trajectory_metrics(played).items()} == found


@pytest.mark.processes
def test_counters_and_per_turn_metrics_are_right(make_trainer):
    trainer = make_trainer(num_problems=8, max_steps=2)
    seen = []
    original = trainer.count_tokens

    def counted(trajectories):
        seen.extend(len(t.turns[-1].prompt_ids) + len(t.turns[-1].completion.token_ids) for t in trajectories)
        original(trajectories)

    trainer.count_tokens = counted
    trainer.train()
    logs = [log for log in trainer.state.log_history if "episodes" in log]
    assert [log["episodes"] for log in logs] == [16, 32]
    assert logs[-1]["num_tokens"] == sum(seen)
    # 4 prompts an update out of 8: half an epoch each
    assert [log["epoch"] for log in logs] == [0.5, 1.0]
    for log in logs:
        assert log["delta_t1_t2"] == pytest.approx(log["i2c_t1_t2"] - log["c2i_t1_t2"])
        assert log["acc_t1"] + log["delta_t1_t2"] == pytest.approx(log["acc_t2"])
        assert 0 <= log["reward_t1"] <= 1 and 0 <= log["frac_reward_zero_std_t2"] <= 1
        assert log["infra_failures"] == 0 and log["peak_memory_mb"] > 100


class Filled(TrainerCallback):
    """Takes twice the memory used so far in the optimizer's step of update 2, for a moment."""

    def on_optimizer_step(self, args, state, control, **kwargs):
        if state.global_step == 1:
            torch.ones(int(peak_memory_mb()) << 20, dtype=torch.uint8)


@pytest.mark.processes
def test_the_logged_memory_is_that_after_the_update(make_trainer):
    trainer = make_trainer(max_steps=2)
    trainer.add_callback(Filled())
    trainer.train()
    first, second = [log["peak_memory_mb"] for log in trainer.state.log_history if "loss" in log]
    assert second > first + 100


def test_zero_spread_is_counted_per_turn(make_trainer):
    trainer = make_trainer(num_generations=2, global_batch_size=4, per_device_train_batch_size=4)
    trainer.advantages([Score(r, [0.0, 0.0]) for r in ([1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0])])
    # turn 2: returns (0, 0) and (1, 1); turn 1: (1, 1) and (1.5, 0.5)
    assert trainer._metrics["train"]["frac_reward_zero_std_t2"] == [1.0]
    assert trainer._metrics["train"]["frac_reward_zero_std_t1"] == [0.5]


def test_dead_batches_are_warned_about(make_trainer, caplog):
    trainer = make_trainer(num_generations=2)
    trainer.run_warnings.dead_batches = 2
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            trainer._check_gradient([Score([1.0, 1.0], [0.0, 0.0])] * 2, None)
    assert "2 batches in a row" in caplog.text and "raise --temperature" in caplog.text


def test_a_run_whose_answers_are_all_cut_off_stops_and_says_what_to_do(make_trainer):
    trainer = make_trainer(max_completion_length=2)
    with pytest.raises(
        ValueError, match=r"32 of 32 completions were truncated at 2 tokens.*raise --max_completion_length"
    ):
        trainer.train()


def test_the_table_shows_every_turn_with_raw_reward_and_advantage(make_trainer):
    trainer = make_trainer(log_completions=True, num_completions_to_print=1, global_batch_size=32)
    _, trajectories = rows_of_a_batch(trainer, 8)
    table = trainer._logs
    expected = by_hand([fractions(t) for t in trajectories], 4, lambda r: r[0] + 0.5 * r[1])
    assert table["extra"]["advantage_t1"] == deque(pytest.approx(a) for a in expected)
    assert table["advantages"] == table["extra"]["advantage_t2"] and len(trajectories) == 32
    for row, trajectory in enumerate(trajectories):
        assert [table["rewards"][f"reward_t{t}"][row] for t in (1, 2)] == list(fractions(trajectory))
        result = trajectory.turns[1].result
        verdicts = table["extra"]["verdicts_t2"][row].split()
        assert verdicts[0] == f"{result.num_passed}/{len(result.verdicts)}"
        assert (len(verdicts) == 1) == result.all_passed
        assert table["prompt"][row] == trainer.protocol.first_turn(trajectory.problem)
        assert table["completion"][row] == "\n".join(turn.completion.text for turn in trajectory.turns)


@pytest.mark.processes
def test_a_run_and_its_resumption_keep_counting(make_trainer, tmp_path):
    first = make_trainer(max_steps=2, save_strategy="steps", save_steps=1)
    first.train()
    tokens = first.state.num_input_tokens_seen
    second = make_trainer(max_steps=3, save_strategy="steps", save_steps=1)
    second.train(resume_from_checkpoint=True)
    state = json.loads((tmp_path / "out/checkpoint-3/trainer_state.json").read_text())
    assert state["global_step"] == 3
    assert state["num_input_tokens_seen"] > tokens > 0


def test_a_weight_per_turn_and_a_kl_coefficient_per_turn_reach_the_advantages(make_trainer):
    """SCoRe's stage I: G_1 = r_2 - 0.25 KL_1 - 0.01 KL_2, G_2 = r_2 - 0.01 KL_2; two siblings: A = G - G'."""
    trainer = make_trainer(
        num_generations=2, gamma=1.0, turn_weights=[0.0, 1.0], turn_betas=[0.25, 0.01], beta=0.5
    )
    assert trainer.ref_model is not None
    found = trainer.advantages([Score([1.0, 0.5], [2.0, 4.0]), Score([0.0, 1.0], [0.0, 0.0])])
    # G = (0.5 - 0.5 - 0.04, 0.5 - 0.04) and (1, 1)
    assert found[0] == pytest.approx([-1.04, -0.54]) and found[1] == pytest.approx([1.04, 0.54])


@pytest.mark.processes
def test_tensorboard_and_wandb_offline_keep_the_metrics_and_wandb_the_tables_of_trl(
    make_trainer, tmp_path, monkeypatch, capsys
):
    """Real loggers, no network: events are read back with TensorBoard's reader, wandb's from its own file."""
    import wandb
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for name, value in {
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(tmp_path),
        "WANDB_SILENT": "true",
        "TENSORBOARD_LOGGING_DIR": str(tmp_path / "board"),
    }.items():
        monkeypatch.setenv(name, value)
    trainer = make_trainer(
        max_steps=3, report_to=["tensorboard", "wandb"], log_completions=True, num_completions_to_print=1
    )
    trainer.train()
    wandb.finish()  # it writes its file in the background
    trainer.end()
    board = EventAccumulator(str(next((tmp_path / "board").rglob("events.*")).parent)).Reload()
    logged = [log for log in trainer.state.log_history if "reward_t2" in log]
    for name in ("reward_t2", "delta_t1_t2", "time/update_s", "executor/programs_per_s", "tokens_per_s"):
        values = [event.value for event in board.Scalars(f"train/{name}")]
        assert values == pytest.approx([log[name] for log in logged], rel=1e-5) and len(values) == 3
    assert "Advantage" not in capsys.readouterr().out, "TRL prints no table beside the examples"
    [run] = (tmp_path / "wandb").glob("offline-run-*")
    assert b"reward_t2" in next(run.glob("*.wandb")).read_bytes()
    tables = [json.loads(path.read_text()) for path in run.rglob("completions*.table.json")]
    columns = {"step", "prompt", "completion", "reward_t1", "reward_t2", "verdicts_t1"}
    columns |= {"advantage", "advantage_t1", "advantage_t2"}
    assert tables and all(columns <= set(table["columns"]) for table in tables)
    assert all(len(table["data"]) == 16 for table in tables)


def test_the_entropy_is_a_mean_over_tokens_however_rows_are_divided(make_trainer):
    entropies = torch.tensor([[1.0, 3.0], [2.0, 0.0], [5.0, 5.0], [4.0, 4.0]])  # turns 1, 2, 1, 2
    mask = torch.tensor([[1, 1], [1, 0], [1, 0], [1, 1]])
    trainer, logged = make_trainer(), []
    for size in (4, 2):
        for start in range(0, 4, size):
            trainer._record_entropies(entropies[start : start + size], mask[start : start + size])
            trainer._metrics["train"]["entropy"].append(7.0)  # TRL's own
        trainer.model.train()
        trainer.log({"loss": 0.0})
        logged.append(
            {name: trainer.state.log_history[-1][name] for name in ("entropy", "entropy_t1", "entropy_t2")}
        )
    # Turn 1: (1 + 3 + 5) / 3 tokens; turn 2: (2 + 4 + 4) / 3; both: 19 / 6.
    assert (
        logged[0] == logged[1] == pytest.approx({"entropy": 19 / 6, "entropy_t1": 3.0, "entropy_t2": 10 / 3})
    )


def test_an_upload_that_fails_says_where_the_model_is_saved(make_trainer, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise OSError("403 Forbidden: you may not write")

    trainer = make_trainer()
    monkeypatch.setattr(Trainer, "push_to_hub", refuse)
    trainer.args.push_to_hub, trainer.hub_model_id = True, "me/x"
    out = trainer.args.output_dir
    with pytest.raises(
        ValueError, match=f"the model is saved in {out}, but its upload to me/x failed .403.*hf upload me/x"
    ):
        trainer.save_model()
    assert {"model.safetensors", "generation_config.json"} <= {path.name for path in Path(out).iterdir()}
