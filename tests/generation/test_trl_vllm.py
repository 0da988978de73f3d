"""TRL's vLLM: the calls are compared with TRL's signatures.

scripts/check_vllm.sh trains with the real engine.
"""

import inspect
import math
from types import SimpleNamespace

import pytest
import torch
from trl.generation.vllm_generation import VLLMGeneration

from cocos.generation.huggingface import load_model
from cocos.generation.tokenizer import eos_token_ids, load_tokenizer
from cocos.generation.trl_vllm import VLLMRollouts, check_server, sync_weights
from tests.support.paths import ROOT

TOY = str(ROOT / "data/toy/base")


class Engine:
    """Fake of TRL's vLLM engine that returns given ids and records its calls.

    The log-probability of the n-th id of a row is -n, and vLLM's NaN, for which TRL has None, at n = 2.
    """

    def __init__(self, sampled):
        self.sampled = sampled
        self.temperature = 0.9
        self.logprobs = None  # TRL's RLOO
        self.generation_kwargs = {"seed": 7}
        self.calls = []

    def generate(self, prompts, images, num_generations, profiler=None):
        self.calls.append((prompts, images, num_generations, self.temperature))
        logps = [[[None if n == 2 else -n] for n in range(len(ids))] for ids in self.sampled]
        return prompts, self.sampled, None if self.logprobs is None else logps, None


class Server:
    """Fake of TRL's client of a vLLM server."""

    def __init__(self, info):
        self.vllm_client, self.info = self, info

    def get_server_info(self):
        return self.info


def test_vllm_samples_at_the_given_temperature_and_its_ids_are_cut_at_the_end_of_the_completion():
    tokenizer = load_tokenizer(TOY)
    eos = eos_token_ids(load_model(TOY).generation_config, tokenizer)
    done = tokenizer("x = 1\n[DONE]", add_special_tokens=False)["input_ids"]
    more = tokenizer(" and on", add_special_tokens=False)["input_ids"]
    engine = Engine([[*done, *more], more])
    first, second = VLLMRollouts(engine, tokenizer, eos).generate([[5, 6], [7]], temperature=0.0)
    assert (list(first.token_ids), first.is_truncated) == (done, False)
    assert (list(second.token_ids), second.is_truncated) == (more, True)
    assert engine.calls == [([[5, 6], [7]], None, 1, 0.0)]
    assert engine.generation_kwargs == {"seed": 7, "stop": ["[DONE]"], "include_stop_str_in_output": True}
    assert len(first.engine_logps) == len(done) and first.engine_logps[:2] == (0, -1)
    assert math.isnan(first.engine_logps[2]) and first.engine_logps[3:] == tuple(
        -n for n in range(3, len(done))
    )
    assert len(second.engine_logps) == len(more)


def test_an_engine_that_has_died_is_an_error_of_one_line():
    class Dead(Engine):
        def generate(self, *_, **__):
            raise RuntimeError("EngineCore encountered an issue.\nSee stack trace (above).")

    tokenizer = load_tokenizer(TOY)
    with pytest.raises(ValueError) as caught:
        VLLMRollouts(Dead([]), tokenizer, [tokenizer.eos_token_id]).generate([[5]], temperature=1.0)
    assert str(caught.value) == (
        "vLLM cannot sample for the policy (RuntimeError: EngineCore encountered an issue.); its messages above "
        "have the cause"
    )


def test_a_server_whose_log_probabilities_are_those_before_temperature_is_refused():
    check_server(Server({"model_config": {"logprobs_mode": "processed_logprobs"}}))
    with pytest.raises(ValueError, match="restart it with --logprobs-mode processed_logprobs"):
        check_server(Server({"model_config": {"logprobs_mode": "raw_logprobs"}}))
    with pytest.raises(ValueError, match="vLLM cannot state the server's settings"):
        check_server(Server({}))


def test_a_rank_whose_trajectories_have_ended_samples_as_many_completions_as_the_others(monkeypatch):
    """Counts of two ranks: the other one has three prompts, then none."""
    tokenizer = load_tokenizer(TOY)
    engine = Engine([[5], [6], [7]])
    generator = VLLMRollouts(engine, tokenizer, [tokenizer.eos_token_id])
    monkeypatch.setattr("cocos.generation.trl_vllm.gather_object", lambda counts: [*counts, (3, False)])
    assert [c.token_ids for c in generator.generate([[1, 2]], temperature=1.0)] == [(5,)]
    assert engine.calls == [([[1, 2], *[[tokenizer.pad_token_id]] * 2], None, 1, 1.0)]
    assert generator.generate([], temperature=1.0) == [] and len(engine.calls) == 2
    monkeypatch.setattr("cocos.generation.trl_vllm.gather_object", lambda counts: [*counts, (0, False)])
    assert generator.generate([], temperature=1.0) == [] and len(engine.calls) == 2


@pytest.mark.parametrize("seed", [3, 4])
def test_the_seed_of_the_run_reaches_a_colocated_engine(make_trainer, monkeypatch, seed):
    """vLLM's worker, in this process, resets the random state with a seed that TRL makes of the rank alone."""
    monkeypatch.setattr("cocos.config.trl_configs.find_spec", lambda name: name)  # vLLM is installed
    monkeypatch.setattr("trl.trainer.rloo_trainer.VLLMGeneration", lambda **_: torch.manual_seed(0))
    make_trainer(use_vllm=True, vllm_mode="colocate", seed=seed)
    assert torch.initial_seed() == seed


def test_the_vllm_engine_of_trl_has_the_signature_that_we_call():
    assert list(inspect.signature(VLLMGeneration.generate).parameters) == [
        "self",
        *inspect.signature(Engine([]).generate).parameters,
    ]
    for name in (
        '"logprobs": self.logprobs',
        "self.temperature = temperature",
        "generation_kwargs.update(self.generation_kwargs)",
    ):
        assert name in inspect.getsource(VLLMGeneration)
    assert callable(VLLMGeneration.sync_weights) and callable(VLLMGeneration._iter_named_params)


@pytest.mark.parametrize(
    ("mode", "has_gpu", "calls"),
    [
        ("server", False, ["TRL"]),
        ("colocate", True, ["TRL"]),
        ("colocate", False, [("reload_weights", {"norm.weight": 1.5}), "packed", "reset"]),
    ],
)
def test_packed_weights_on_a_processor_are_loaded_by_the_engine_itself(mode, has_gpu, calls, monkeypatch):
    made = []

    pack = SimpleNamespace(process_weights_after_loading=lambda layer: made.append("packed"))
    model = SimpleNamespace(lm_head=SimpleNamespace(quant_method=pack))

    class Colocated(Engine):
        llm = SimpleNamespace(
            collective_rpc=lambda method, kwargs: made.append((method, dict(kwargs["weights_iterator"]))),
            apply_model=lambda function: function(model),
            reset_prefix_cache=lambda: made.append("reset"),
        )

        def sync_weights(self):
            made.append("TRL")

        def _iter_named_params(self):
            yield "norm.weight", 1.5

    engine = Colocated([])
    engine.mode = mode
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: has_gpu)
    sync_weights(engine)
    assert made == calls
