"""Training with an engine: the gap between policy and engine by hand, and with an engine of other weights."""

import math

import pytest
import torch

from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.training.row_logps import engine_gap
from tests.support.paths import ROOT

TOY = str(ROOT / "data/toy/base")
NAN = math.nan


def logs(*probabilities):
    return torch.tensor(probabilities).log()


def test_the_kl_of_a_token_is_that_of_its_ratio():
    """r = 2: 2 log 2 - 1 = 0.3863; r = 1/2: -log(2) / 2 + 1/2 = 0.1534; r = 1: 0; not stated: 0; masked: 0."""
    policy, engine = logs([0.2, 0.1, 0.7, 0.5, 0.9]), logs([0.1, 0.2, 0.7, NAN, 0.1])
    gap = engine_gap(policy, engine, torch.tensor([[1, 1, 1, 1, 0]]))
    assert gap.kl_R_C[0].tolist() == pytest.approx([0.386294, 0.153426, 0, 0, 0], abs=1e-6)
    assert gap.is_outlier_R.tolist() == [False]  # 2 * 1/2 = 1


def test_the_mean_of_the_tokens_is_the_kl_of_two_distributions():
    """KL((0.6, 0.3, 0.1) || (0.5, 0.25, 0.25)) = 0.6 log 1.2 + 0.3 log 1.2 + 0.1 log 0.4, by the engine's shares."""
    policy, engine = logs([0.6, 0.3, 0.1]), logs([0.5, 0.25, 0.25])
    kl = engine_gap(policy, engine, torch.ones(1, 3)).kl_R_C[0]
    assert (kl * engine[0].exp()).sum().item() == pytest.approx(
        0.9 * math.log(1.2) + 0.1 * math.log(0.4), abs=1e-6
    )


def test_a_row_is_an_outlier_if_its_probabilities_differ_by_more_than_a_factor_of_three():
    """Ratios of the rows: 2.9, 1 / 2.9, 1.8 * 1.8 = 3.24, 1 / 3.24, and e^100, which overflows in float32."""
    engine = torch.zeros(5, 2)
    policy = torch.tensor([[2.9, 1], [1 / 2.9, 1], [1.8, 1.8], [1 / 1.8, 1 / 1.8], [1, 1]]).log()
    policy[4, 0] = 100.0
    gap = engine_gap(policy, engine, torch.ones(5, 2))
    assert gap.is_outlier_R.tolist() == [False, False, True, True, True]
    assert gap.kl_R_C.isfinite().all()


class Engine:
    """Engine like TRL's, which samples from a model in this process and states its log-probabilities."""

    mode = "server"

    def __init__(self, trainer):
        self.trainer, self.model = trainer, load_model(TOY)

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
    outliers = [log["engine/outliers"] for log in trainer.state.log_history if "engine/outliers" in log]
    assert max(gaps) < 1e-6 and set(outliers) == {0.0}


def test_rows_of_an_engine_with_other_weights_are_masked(make_engine_trainer):
    trainer = make_engine_trainer(Missing)
    rows = trainer._generate_and_score_completions([{"index": i // 4} for i in range(16)])
    outliers = trainer.row_statistics(rows).gap.is_outlier_R
    [gap], [share] = (
        trainer._metrics["train"]["engine/kl"][:1],
        trainer._metrics["train"]["engine/outliers"][:1],
    )
    assert gap > 0.01 and share == pytest.approx(outliers.double().mean().item())
    assert outliers.sum() > 0 and (rows["advantages"][outliers] == 0).all()


def test_an_engine_that_cannot_take_weights_ends_the_run_with_one_line(make_engine_trainer):
    with pytest.raises(ValueError, match="vLLM cannot take the policy's weights"):
        make_engine_trainer(Deaf).train()
