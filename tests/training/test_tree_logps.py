"""Forward passes over prefix trees give what plain rows give: log-probabilities, loss and every gradient."""

import math
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig
from torch.nn.functional import pad
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, Qwen2Config, set_seed
from trl import RLOOTrainer

from cocos.training.tree_attention import NAME
from cocos.training.tree_logps import why_not_shared
from tests.support.training import play

pytestmark = pytest.mark.processes


def one_by_one(trainer):
    """Return TRL's method, applied to one row without padding at a time.

    Padding on the left moves a row to other positions, whose rotary embeddings round differently.
    """

    def compute(
        model, input_ids, attention_mask, logits_to_keep, batch_size=None, compute_entropy=False, **_
    ):
        log_probs, entropies = [], []
        for ids, mask in zip(input_ids, attention_mask.bool(), strict=True):
            num_scored = int(mask[-logits_to_keep:].sum())
            row = ids[mask][None]
            results = RLOOTrainer._get_per_token_logps_and_entropies(
                trainer, model, row, torch.ones_like(row), max(num_scored, 1), compute_entropy=compute_entropy
            )
            for values, found in zip((log_probs, entropies), results, strict=False):
                found = torch.zeros(logits_to_keep) if found is None else found[0, : num_scored or None]
                values.append(pad(found[:num_scored], (0, logits_to_keep - num_scored)))
        return torch.stack(log_probs), torch.stack(entropies), None

    return compute


def passes(trainer, rows, share):
    """Return the results of all forward passes and of the backward pass, with or without shared prefixes."""
    if not share:
        trainer._get_per_token_logps_and_entropies = one_by_one(trainer)
    trainer.model.train()
    old_logps, kl_R_C, _ = trainer.row_statistics(rows)
    kl = kl_R_C.sum(1)
    batch = rows | {"advantages": torch.linspace(-1, 1, len(kl)), "old_logps": old_logps + 0.1}
    trainer.model.zero_grad()
    trainer._metrics["train"].clear()
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    gradients = {n: p.grad.clone() for n, p in trainer.model.named_parameters() if p.grad is not None}
    [entropy] = trainer._metrics["train"]["entropy"]
    results = {"loss": loss.detach(), "old_logps": old_logps, "kl": kl, "entropy": torch.tensor(entropy)}
    return results, gradients, trainer._metrics["train"].get("packing_ratio")


def with_special_cases(trajectories):
    """Return trajectories with two equal siblings, an empty first answer, and last turns that were carried."""
    first, second, third, fourth, *others = trajectories
    turns = list(third.turns)
    turns[0] = replace(turns[0], completion=replace(turns[0].completion, token_ids=()))
    carried = [
        replace(t, turns=(*t.turns[:-1], replace(t.turns[-1], is_carried=True))) for t in (fourth, others[0])
    ]
    return [
        first,
        replace(second, turns=first.turns),
        replace(third, turns=tuple(turns)),
        *carried,
        *others[1:],
    ]


@pytest.mark.parametrize(
    ("credit", "num_turns", "num_generations", "lora"),
    [("turn", 1, 4, False), ("turn", 3, 4, False), ("trajectory", 2, 4, True), ("last", 3, 2, True)],
)
def test_shared_prefixes_equal_plain_rows(make_trainer, credit, num_turns, num_generations, lora):
    peft_config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"]) if lora else None
    trainer = make_trainer(
        credit=credit,
        num_turns=num_turns,
        num_generations=num_generations,
        global_batch_size=4 * num_generations,
        per_device_train_batch_size=4 * num_generations,
        beta=0.1,
        num_iterations=2,
        peft_config=peft_config,
    )
    # In float64, because sums of many log-probabilities round by more than 1e-5 in float32.
    for model in filter(None, (trainer.model, trainer.ref_model)):
        model.double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():  # away from the reference, so that the KL is not 0
        for parameter in trainer.model.parameters():
            if parameter.requires_grad:
                parameter += 0.02 * torch.randn(parameter.shape, generator=generator)
    _, trajectories = play(trainer)
    rows = trainer.rows(with_special_cases(trajectories))
    shared, shared_gradients, ratio = passes(trainer, rows, share=True)
    plain, plain_gradients, no_ratio = passes(trainer, rows, share=False)
    assert trainer.tree_logps.is_used and ratio[0] > 1.3 and no_ratio is None
    assert shared["kl"].abs().max() > 0.01
    for name, expected in plain.items():
        torch.testing.assert_close(shared[name], expected, atol=1e-5, rtol=0)
    assert shared_gradients.keys() == plain_gradients.keys()
    assert max(gradient.abs().max() for gradient in plain_gradients.values()) > 1e-2
    for name, expected in plain_gradients.items():
        torch.testing.assert_close(shared_gradients[name], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("lora", [False, True])
def test_gradient_checkpointing_recomputes_along_the_trees(make_trainer, lora):
    peft_config = LoraConfig(r=4, target_modules="all-linear") if lora else None
    found = {}
    for checkpointing in (False, True):
        set_seed(0)  # of the adapter's weights
        trainer = make_trainer(
            num_iterations=2, gradient_checkpointing=checkpointing, peft_config=peft_config, max_steps=1
        )
        if checkpointing:
            trainer.model.gradient_checkpointing_enable({"use_reentrant": False})
            assert trainer.model.is_gradient_checkpointing
        if not found:
            _, trajectories = play(trainer)
        _, gradients, ratio = passes(trainer, trainer.rows(trajectories), share=True)
        assert ratio and trainer.tree_logps.is_used
        found[checkpointing] = gradients
    for name, expected in found[False].items():
        torch.testing.assert_close(found[True][name], expected, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.parametrize("share", [True, False])
def test_the_entropy_of_each_turn_is_the_mean_over_the_tokens_of_its_rows(make_trainer, share):
    trainer = make_trainer(share_prefixes=share)
    _, trajectories = play(trainer)
    rows = trainer.rows(trajectories)
    with torch.no_grad():
        _, entropies, _ = one_by_one(trainer)(
            trainer.model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            rows["completion_ids"].size(1),
            compute_entropy=True,
        )
    trainer.compute_loss(trainer.model, rows | {"advantages": torch.ones(len(entropies))})
    for t in (0, 1):
        mask = rows["completion_mask"][t::2]
        expected = (entropies[t::2] * mask).sum() / mask.sum()
        total, count = trainer.entropies[f"entropy_t{t + 1}"]
        assert total / count == pytest.approx(expected.item(), rel=1e-4)


def test_passes_in_parts_equal_one_pass(make_trainer):
    trainer = make_trainer(num_iterations=2)
    _, trajectories = play(trainer)
    rows = trainer.rows(trajectories)
    whole, _, _ = trainer.row_statistics(rows)
    trainer.args.rollout_batch_size = 2
    parts, _, _ = trainer.row_statistics(rows)
    torch.testing.assert_close(parts, whole, atol=1e-4, rtol=0)


class LargestLogits(TorchDispatchMode):
    """Records the most elements of a tensor whose columns are the vocabulary."""

    def __init__(self, vocabulary):
        super().__init__()
        self.vocabulary, self.size = vocabulary, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dim() and result.shape[-1] == self.vocabulary:
            self.size = max(self.size, result.numel())
        return result


@pytest.mark.skipif(torch.accelerator.is_available(), reason="an accelerator's kernels take wider parts")
@pytest.mark.parametrize("share", [True, False])
def test_logits_of_the_whole_vocabulary_never_exist(make_trainer, share):
    trainer = make_trainer(share_prefixes=share)
    _, trajectories = play(trainer)
    rows = trainer.rows(trajectories)
    ones = torch.ones(len(rows["prompt_ids"]))
    with LargestLogits(trainer.model.config.vocab_size) as largest:
        trainer.compute_loss(trainer.model, rows | {"advantages": ones, "old_logps": -ones}).backward()
    assert trainer.model.config.vocab_size > 256 and largest.size == 0


def test_the_update_gives_its_own_old_logps(make_trainer):
    """With one update per batch the ratio is 1, so the loss is minus the mean advantage of the rows."""
    trainer = make_trainer()
    inputs, _ = play(trainer)
    rows = trainer._generate_and_score_completions(inputs)
    assert "old_logps" not in rows
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, rows)
    loss.backward()
    assert loss.item() == pytest.approx(-rows["advantages"].mean().item(), abs=1e-7)
    own = {n: p.grad.clone() for n, p in trainer.model.named_parameters()}
    trainer.args.num_iterations = trainer.num_iterations = 2
    old_logps, _, _ = trainer.row_statistics(rows)
    trainer.model.zero_grad()
    trainer.compute_loss(trainer.model, rows | {"old_logps": old_logps}).backward()
    for name, parameter in trainer.model.named_parameters():
        torch.testing.assert_close(parameter.grad, own[name], atol=1e-5, rtol=1e-4)


def test_siblings_stay_in_one_micro_batch(make_trainer):
    trainer = make_trainer(per_device_train_batch_size=4, global_batch_size=16)
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 4
    inputs, _ = play(trainer)
    for step in range(4):
        trainer._step = step
        micro_batch = trainer._prepare_inputs(inputs)
        mask = micro_batch["prompt_mask"].bool()
        prompts = [ids[m].tolist() for ids, m in zip(micro_batch["prompt_ids"], mask, strict=True)]
        first_turns = prompts[::2]  # two trained turns per trajectory
        assert len(first_turns) == 4 and all(prompt == first_turns[0] for prompt in first_turns)


def test_rows_are_of_whole_numbers_if_the_first_completion_is_empty(make_trainer):
    trainer = make_trainer()
    _, (first, *others) = play(trainer)
    turns = [replace(t, completion=replace(t.completion, token_ids=())) for t in first.turns]
    rows = trainer.rows([replace(first, turns=tuple(turns)), *others])
    assert rows["completion_ids"].dtype == rows["completion_mask"].dtype == torch.long


def test_a_model_that_gives_nan_along_a_tree_is_found_out_by_the_first_batch(make_trainer):
    trainer = make_trainer(num_iterations=2)
    _, trajectories = play(trainer)
    forward = trainer.model.forward

    def broken(*args, segments=None, **kwargs):
        output = forward(*args, segments=segments, **kwargs)
        return output if segments is None else replace(output, log_probs=output.log_probs * math.nan)

    trainer.model.forward = broken
    trainer.row_statistics(trainer.rows(trajectories))
    assert trainer.tree_logps.is_used is False


def test_a_model_that_ignores_the_segments_is_found_out_by_the_first_batch(make_trainer, caplog):
    trainer = make_trainer(num_iterations=2)
    _, trajectories = play(trainer)
    rows = trainer.rows(trajectories)
    trainer.args.share_prefixes = False
    expected, _, _ = trainer.row_statistics(rows)
    trainer.args.share_prefixes = True
    forward = trainer.model.forward
    # A model that attends to whatever precedes a token, because its layers do not pass the segments on.
    trainer.model.forward = lambda *args, segments=None, attention_mask=None, **kwargs: forward(
        *args, attention_mask=None if segments else attention_mask, **kwargs
    )
    with caplog.at_level("WARNING"):
        found, _, _ = trainer.row_statistics(rows)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert trainer.tree_logps.is_used is False and "prefixes are not shared" in caplog.text


def test_the_first_batch_computes_the_rows_of_two_siblings_as_plain_rows_and_no_later_one_any(
    make_trainer, monkeypatch
):
    trainer, seen = make_trainer(num_iterations=2), []
    plain = RLOOTrainer._get_per_token_logps_and_entropies

    def counted(trainer, model, input_ids, *rest, **options):
        seen.append(len(input_ids))
        return plain(trainer, model, input_ids, *rest, **options)

    monkeypatch.setattr(RLOOTrainer, "_get_per_token_logps_and_entropies", counted)
    rows = trainer.rows(play(trainer)[1])
    assert len(rows["prompt_ids"]) == 32
    trainer.row_statistics(rows)
    trainer.row_statistics(rows)
    assert seen == [2 * 2], "two siblings of two turns, once"


def test_layers_that_cannot_attend_along_a_tree_are_named():
    def config(kind, **options):
        return kind(**options, attn_implementation=NAME)

    assert why_not_shared(config(LlamaConfig)) == ""
    assert why_not_shared(config(Qwen2Config)) == ""
    sliding = config(Qwen2Config, use_sliding_window=True, sliding_window=64, max_window_layers=0)
    assert "sliding_attention" in why_not_shared(sliding)
    assert "--attn_implementation sdpa" in why_not_shared(LlamaConfig(attn_implementation="eager"))
