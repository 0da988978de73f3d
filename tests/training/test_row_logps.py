"""Training with an engine: the gap between policy and engine by hand, and with an engine of other weights."""

import math

import pytest
import torch
from peft import LoraConfig, get_peft_model

from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.training.rollouts import unchanged_base
from cocos.training.row_logps import divergence, engine_gap
from tests.support.paths import ROOT
from tests.support.training import play

TOY = str(ROOT / "data/toy/base")
NAN = math.nan


def logs(*probabilities):
    return torch.tensor(probabilities).log()


def test_the_kl_of_a_token_is_that_of_its_ratio():
    """r = 2: 2 log 2 - 1 = 0.3863; r = 1/2: -log(2) / 2 + 1/2 = 0.1534; r = 1: 0; not stated: 0; masked: 0."""
    policy, engine = logs([0.2, 0.1, 0.7, 0.5, 0.9]), logs([0.1, 0.2, 0.7, NAN, 0.1])
    gap = engine_gap(policy, engine, torch.tensor([[1, 1, 1, 1, 0]]))
    assert gap.kl_R_C[0].tolist() == pytest.approx([0.386294, 0.153426, 0, 0, 0], abs=1e-6)
    assert gap.weights_R_C[0].tolist() == pytest.approx([2, 0.5, 1, 1, 1])


def test_the_mean_of_the_tokens_is_the_kl_of_two_distributions():
    """KL((0.6, 0.3, 0.1) || (0.5, 0.25, 0.25)) = 0.6 log 1.2 + 0.3 log 1.2 + 0.1 log 0.4, by the engine's shares."""
    policy, engine = logs([0.6, 0.3, 0.1]), logs([0.5, 0.25, 0.25])
    kl = engine_gap(policy, engine, torch.ones(1, 3)).kl_R_C[0]
    assert (kl * engine[0].exp()).sum().item() == pytest.approx(
        0.9 * math.log(1.2) + 0.1 * math.log(0.4), abs=1e-6
    )


def test_the_divergence_of_a_token_is_k3_and_its_mean_is_the_kl():
    """r = p_ref / p = 1/2: -1/2 + log 2 = 0.1931; r = 2: 1 - log 2 = 0.3069; equal: 0; 90 nats apart: finite."""
    policy, reference = logs([0.2, 0.1, 0.7]), logs([0.1, 0.2, 0.7])
    found = divergence(policy - reference)[0]
    assert found.tolist() == pytest.approx([0.193147, 0.306853, 0], abs=1e-6)
    assert (found * policy[0].exp()).sum().item() == pytest.approx(0.2 * math.log(2) - 0.1 * math.log(2))
    assert divergence(torch.tensor([[-90.0, 90.0]])).isfinite().all()


ADAPTER = {"r": 4, "target_modules": "all-linear", "lora_dropout": 0.0, "task_type": "CAUSAL_LM"}


def move_adapter(model):
    with torch.no_grad():
        for parameter in filter(lambda p: p.requires_grad, model.parameters()):
            parameter += 0.005 * torch.randn_like(parameter)


@pytest.mark.parametrize("is_trained_further", [False, True])
def test_without_a_penalty_the_kl_of_an_adapter_to_its_start_is_logged_at_every_fifth_update(
    make_trainer, is_trained_further
):
    """The start is the base model, or the adapter that is trained further, but not its base."""
    if is_trained_further:
        model = get_peft_model(load_model(TOY), LoraConfig(**ADAPTER))
        move_adapter(model)
        trainer = make_trainer(model=model, use_peft=True)
    else:
        trainer = make_trainer(peft_config=LoraConfig(**ADAPTER), use_peft=True)
    inputs, trajectories = play(trainer)
    rows, logged = trainer.rows(trajectories), trainer._metrics["train"]
    trainer.row_statistics(rows)
    assert logged["kl_per_token"] == [0.0] and logged["kl_t1"] == logged["kl_t2"] == [0.0]
    with torch.no_grad():
        before = trainer.row_logps(trainer.model, rows)
        move_adapter(trainer.model)
        k1 = (trainer.row_logps(trainer.model, rows) - before) * rows["completion_mask"]
    for step in (1, 4, 5):
        trainer.state.global_step = step
        trainer.row_statistics(rows)
    k3 = (k1.double().neg().exp() - 1 + k1).sum() / rows["completion_mask"].sum()
    assert k3 > 1e-4 and logged["kl_per_token"] == [0.0, pytest.approx(k3.item(), rel=1e-3)]
    of_turns = k1.sum(1).view(-1, 2).mean(0)
    assert [logged["kl_t1"][1], logged["kl_t2"][1]] == pytest.approx(of_turns.tolist(), abs=1e-4)
    torch.manual_seed(0)
    measured = trainer._generate_and_score_completions(inputs)
    trainer.state.global_step = 6
    torch.manual_seed(0)
    plain = trainer._generate_and_score_completions(inputs)
    assert torch.equal(measured["advantages"], plain["advantages"]) and measured["advantages"].any()


def test_all_weights_without_a_penalty_have_no_reference_and_log_no_kl(make_trainer):
    trainer = make_trainer()
    trainer.row_statistics(trainer.rows(play(trainer)[1]))
    assert not [name for name in trainer._metrics["train"] if name.startswith("kl")]


def test_a_tokens_weight_is_its_ratio_limited_however_long_the_row():
    """Ratios 1.9, 1 / 1.9, 3 and e^100, which overflows in float32; a long row of small ratios loses no token."""
    policy = torch.tensor([[1.9, 1 / 1.9, 3.0, 1.0]]).log()
    policy[0, 3] = 100.0
    gap = engine_gap(policy, torch.zeros(1, 4), torch.ones(1, 4))
    assert gap.weights_R_C[0].tolist() == pytest.approx([1.9, 1 / 1.9, 2, 2])
    assert gap.kl_R_C.isfinite().all()
    long = engine_gap(torch.full((1, 512), 0.05), torch.zeros(1, 512), torch.ones(1, 512))  # e^25.6 as a row
    assert long.weights_R_C[0].tolist() == pytest.approx([math.exp(0.05)] * 512)


def test_the_weights_multiply_the_gradient_of_each_token_and_leave_the_loss(make_trainer):
    trainer = make_trainer()
    rows = trainer.rows(play(trainer)[1])
    rows["advantages"] = torch.linspace(-1, 1, len(rows["prompt_ids"]))
    weights = torch.rand(rows["completion_mask"].shape) + 0.5
    loss = trainer.compute_loss(trainer.model, rows | {"token_weights": weights})
    assert loss.item() == trainer.compute_loss(trainer.model, rows).item()
    loss.backward()
    found = [p.grad.clone() for p in trainer.model.parameters()]
    trainer.model.zero_grad()
    # The ratio of a row is 1, so its gradient is -A times the sum of the weighted gradients of log p.
    logps, _, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model,
        torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
        torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
        rows["completion_ids"].size(1),
    )
    (-rows["advantages"] * (weights * logps * rows["completion_mask"]).sum(1)).mean().backward()
    for gradient, parameter in zip(found, trainer.model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_base_under_an_adapter_keeps_its_bits_when_the_adapter_is_merged_and_taken_out_again(dtype):
    base = load_model(TOY, dtype="float32").to(dtype)
    model = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def sync():
        model.merge_adapter()
        model.unmerge_adapter()

    for _ in range(3):
        with unchanged_base(model):
            sync()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    sync()
    assert not all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


class Engine:
    """Engine like TRL's, which samples from a model in this process and states its log-probabilities."""

    mode = "server"

    def __init__(self, trainer):
        self.trainer, self.model, self.generation_kwargs = trainer, load_model(TOY), None

    def sync_weights(self):
        self.model.load_state_dict(self.trainer.model.state_dict())

    @torch.no_grad()
    def generate(self, prompts, images, num_generations, profiler=None):
        generator = HuggingFaceGenerator(self.model, self.trainer.processing_class, 40)
        sampled = [list(completion.token_ids) for completion in generator.generate(prompts, self.temperature)]
        logps = []
        for prompt, ids in zip(prompts, sampled, strict=True):
            logits = self.model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
            of_ids = (logits / self.temperature).log_softmax(-1).gather(1, torch.tensor(ids)[:, None])
            logps.append(of_ids.tolist())
        return prompts, sampled, logps, None


class Missing(Engine):
    """Engine that keeps other weights than the policy's."""

    def sync_weights(self):
        torch.manual_seed(0)
        for parameter in self.model.parameters():
            parameter.data += 0.05 * torch.randn_like(parameter)


class Deaf(Engine):
    """Engine that cannot take weights."""

    def sync_weights(self):
        raise AttributeError("'SyncMPClient' object has no attribute 'driver_worker'")


@pytest.fixture
def make_engine_trainer(make_trainer):
    def make(engine, **options):
        trainer = make_trainer(**options)
        trainer.vllm_generation, trainer.use_vllm, trainer._last_loaded_step = engine(trainer), True, -1
        return trainer

    return make


@pytest.mark.parametrize("options", [{}, {"num_iterations": 2, "beta": 0.05}])
def test_an_engine_with_the_policys_weights_has_no_gap_after_updates(make_engine_trainer, options):
    trainer = make_engine_trainer(Engine, temperature=0.7, **options)
    trainer.train()
    assert trainer.state.global_step == 2
    gaps = [log["engine/kl"] for log in trainer.state.log_history if "engine/kl" in log]
    limited = [log["engine/limited"] for log in trainer.state.log_history if "engine/limited" in log]
    assert max(gaps) < 1e-6 and set(limited) == {0.0}


def test_tokens_of_an_engine_with_other_weights_are_weighted_and_no_row_is_left_out(make_engine_trainer):
    trainer = make_engine_trainer(Missing, reward="random")  # its programs are all wrong
    rows = trainer._generate_and_score_completions([{"index": i // 4} for i in range(16)])
    weights, mask = rows["token_weights"], rows["completion_mask"].bool()
    [gap], [share] = (trainer._metrics["train"][name][:1] for name in ("engine/kl", "engine/limited"))
    assert gap > 0.01 and share == pytest.approx((weights[mask] == 2).double().mean().item())
    assert 0 < weights[mask].min() < 0.9 and weights.max() == 2
    assert (rows["advantages"] != 0).float().mean() > 0.3


@pytest.mark.parametrize("options", [{}, {"num_iterations": 2, "beta": 0.05}])
def test_the_trainers_own_sampler_is_compared_too_and_its_tokens_are_not_weighted(make_trainer, options):
    """With one update per batch and no KL, no pass precedes the update, which is compared itself."""
    trainer = make_trainer(temperature=0.7, per_device_train_batch_size=8, **options)
    trainer.train()
    gaps = [log["engine/kl"] for log in trainer.state.log_history if "engine/kl" in log]
    num_batches = 2 // options.get("num_iterations", 1)
    assert len(gaps) == num_batches and 0 <= max(gaps) < 1e-9
    assert not any("engine/limited" in log for log in trainer.state.log_history)


def test_the_gap_of_the_own_sampler_is_that_of_what_it_states(make_trainer):
    """It states half of every probability, as if the policy's were twice as large: 2 log 2 - 1 a token."""
    trainer = make_trainer(max_steps=1)
    rows_of = trainer.rows

    def misstated(trajectories):
        rows = rows_of(trajectories)
        return rows | {"engine_logps": rows["engine_logps"] - math.log(2)}

    trainer.rows = misstated
    trainer.train()
    [gap] = [log["engine/kl"] for log in trainer.state.log_history if "engine/kl" in log]
    assert gap == pytest.approx(2 * math.log(2) - 1, abs=1e-4)


def test_an_engine_that_cannot_take_weights_ends_the_run_with_one_line(make_engine_trainer):
    with pytest.raises(ValueError, match="vLLM cannot take the policy's weights"):
        make_engine_trainer(Deaf).train()
