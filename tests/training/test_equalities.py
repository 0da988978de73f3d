"""The trainer against what it must equal: TRL's own RLOO, and itself with the batch cut differently."""

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import set_seed
from trl import RLOOConfig, RLOOTrainer

from cocos.generation.tokenizer import load_tokenizer
from cocos.prompts import named_protocol
from tests.support.paths import ROOT
from tests.support.training import fractions, play

pytestmark = pytest.mark.processes

TOY = str(ROOT / "data/toy/base")
WORDS = named_protocol("cocos")


class ReplayingRLOO(RLOOTrainer):
    """TRL's trainer as it stands, which is handed answers where it would sample them."""

    samples: list[list[int]]

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields):
        return self.samples


def replaying(tmp_path, trainer, prompts, rewards, peft_config):
    """TRL's RLOOTrainer with the options of ours, and a reward function that returns these rewards."""
    ours = trainer.args
    args = RLOOConfig(
        output_dir=str(tmp_path / "trl"),
        num_generations=ours.num_generations,
        per_device_train_batch_size=ours.per_device_train_batch_size,
        gradient_accumulation_steps=ours.gradient_accumulation_steps,
        max_completion_length=ours.max_completion_length,
        temperature=ours.temperature,
        beta=ours.beta,
        epsilon=ours.epsilon,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to="none",
    )
    return ReplayingRLOO(
        model=TOY,
        reward_funcs=[lambda prompts, **columns: rewards],
        args=args,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=load_tokenizer(TOY),
        peft_config=peft_config,
    )


def disturb(model, seed, size):
    """Add the same noise to the trained parameters of any copy of a model."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += size * torch.randn(parameter.shape, generator=generator)


def gradients(trainer, rows):
    """The parent's loss of a batch, and its gradient by every trained parameter."""
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, rows)
    loss.backward()
    return loss.item(), {n: p.grad for n, p in trainer.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    ("credit", "beta", "lora"),
    [("turn", 0.3, False), ("last", 0.3, False), ("turn", 0.3, True), ("trajectory", 0.0, True)],
)
def test_one_turn_is_trls_rloo(make_trainer, tmp_path, credit, beta, lora):
    """Advantages, loss and every gradient, on the same samples, away from the reference and off-policy."""
    peft_config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"]) if lora else None
    ours = make_trainer(
        num_turns=1, credit=credit, beta=beta, temperature=0.8, num_iterations=2, peft_config=peft_config
    )
    disturb(ours.model, seed=1, size=0.02)  # so that the KL to the reference is not 0
    ours.model.train()
    set_seed(7)
    inputs, trajectories = play(ours)
    ours.player.sample_beside = lambda problems, meanwhile: (trajectories, None)
    rows = ours._generate_and_score_completions(inputs)

    prompts = [WORDS.first_turn(trajectory.problem) for trajectory in trajectories]
    rewards = [fractions(trajectory)[0] for trajectory in trajectories]
    theirs = replaying(tmp_path, ours, prompts, rewards, peft_config)
    disturb(theirs.model, seed=1, size=0.02)
    theirs.model.train()
    theirs.samples = [list(trajectory.turns[0].completion.token_ids) for trajectory in trajectories]
    expected = theirs._generate_and_score_completions([{"prompt": prompt} for prompt in prompts])

    for name in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask"):
        assert torch.equal(rows[name], expected[name]), name
    for name in ("advantages", "old_logps"):
        torch.testing.assert_close(rows[name], expected[name], atol=1e-5, rtol=0)
    assert rows["advantages"].abs().max() > 0.1
    if beta:
        plain = torch.tensor(rewards).view(-1, 4)
        plain = (plain - (plain.sum(1, keepdim=True) - plain) / 3).flatten()
        assert (rows["advantages"] - plain).abs().max() > 1e-3, "the penalty is too small to prove anything"

    for trainer in (ours, theirs):
        disturb(trainer.model, seed=2, size=0.03)  # an update later, so that ratios differ from 1
    loss, ours_by_name = gradients(ours, rows)
    expected_loss, theirs_by_name = gradients(theirs, expected)
    assert abs(expected_loss) > 1e-4 and loss == pytest.approx(expected_loss, abs=1e-5)
    assert ours_by_name.keys() == theirs_by_name.keys()
    assert max(gradient.abs().max() for gradient in theirs_by_name.values()) > 1e-2
    for name, gradient in theirs_by_name.items():
        torch.testing.assert_close(ours_by_name[name], gradient, atol=1e-5, rtol=1e-5, msg=name)


@pytest.mark.parametrize("credit", ["turn", "last"])
def test_batches_of_one_accumulated_eightfold_are_one_batch_of_eight(make_trainer, credit):
    """Two updates by plain gradient steps, from answers of different lengths: the same weights to 1e-5."""

    def trained(per_device):
        trainer = make_trainer(
            credit=credit,
            per_device_train_batch_size=per_device,
            global_batch_size=8,
            optim="sgd",
            learning_rate=0.1,
            max_grad_norm=0.5,
        )
        assert trainer.args.gradient_accumulation_steps == 8 // per_device
        start = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
        batches = []
        play = trainer.player.sample_beside
        trainer.player.sample_beside = lambda *given: batches.append(play(*given)) or batches[-1]
        trainer.train()
        answers = [
            t.completion.token_ids for batch, _ in batches for trajectory in batch for t in trajectory.turns
        ]
        return start, trainer.model.state_dict(), answers

    start, whole, answers = trained(per_device=8)
    _, accumulated, same_answers = trained(per_device=1)
    assert answers == same_answers and len(answers) == 2 * 8 * 2 and len({len(ids) for ids in answers}) > 4
    assert max((whole[name] - start[name]).abs().max() for name in start) > 1e-3
    for name, tensor in whole.items():
        torch.testing.assert_close(accumulated[name], tensor, atol=1e-5, rtol=0, msg=name)


def test_passes_beside_the_last_programs_equal_passes_after_them_bit_by_bit(make_trainer):
    """Without `meanwhile` the trainer makes the same passes when the results have arrived."""
    runs = []
    for is_overlapped in (True, False):
        set_seed(0)
        trainer = make_trainer(temperature=0.7, beta=0.05, num_iterations=2)
        if not is_overlapped:
            play_batch = trainer.player.sample_batch
            trainer.player.sample_batch = lambda indices, meanwhile, play_batch=play_batch: play_batch(
                indices
            )
        trainer.train()
        runs.append(trainer)
    overlapped, after = runs
    for ours, theirs in zip(overlapped.model.parameters(), after.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    for ours, theirs in zip(overlapped.state.log_history, after.state.log_history, strict=True):
        logged = [name for name in ours if name.startswith(("reward", "kl", "loss", "grad", "return"))]
        assert {name: ours[name] for name in logged} == {name: theirs[name] for name in logged}
    assert {log.get("time/hidden_s", 0.0) for log in after.state.log_history} == {0.0}
