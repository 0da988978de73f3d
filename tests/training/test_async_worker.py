"""The worker of TRL's async trainer, against a real server on this machine that samples with the laboratory's model."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
import torch
from datasets import Dataset
from safetensors.torch import load, save
from transformers import AutoModelForCausalLM
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

from cocos.config.cocos_options import CoCoSOptions
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.async_worker import (
    RolloutWorker,
    TokenServer,
    answers_required,
    reference_logps,
    use_torch_attention,
)
from cocos.trajectories import begin
from tests.support.paths import TOY

BASE = str(TOY / "base")


class ModelServer(ThreadingHTTPServer):
    """The parts of a vLLM server that the worker needs, and weights as a file in place of NCCL."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = AutoModelForCausalLM.from_pretrained(BASE).eval()
        self.tokenizer, self.lock, self.num_updates = load_tokenizer(BASE), threading.Lock(), 0
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def kill(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            if self.path == "/weights":
                self.server.model.load_state_dict(load(body), strict=False)
                self.server.num_updates += 1
                answer = {}
            else:
                answer = self.complete(json.loads(body))
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def complete(self, request):
        assert request["stop"] == ["[DONE]"] and request["logprobs"] == 0 and request["return_token_ids"]
        generator = HuggingFaceGenerator(self.server.model, self.server.tokenizer, request["max_tokens"])
        with torch.no_grad():
            completions = generator.generate(request["prompt"], request["temperature"])
        choices = [
            {"index": i, "token_ids": list(c.token_ids), "logprobs": {"token_logprobs": list(c.engine_logps)}}
            for i, c in enumerate(completions)
        ]
        return {"choices": choices[::-1]}


class WeightsAsFile:
    """TRL's weight transfer by HTTP."""

    def __init__(self, url):
        self.url = url

    def init_weight_transfer(self):
        pass

    pause = resume = destroy = init_weight_transfer

    def send_weights(self, iterator):
        weights = {name: tensor.contiguous().clone() for name, tensor in iterator}
        requests.post(f"{self.url}/weights", data=save(weights), timeout=60).raise_for_status()


@pytest.fixture
def server():
    server = ModelServer()
    yield server
    server.kill()


@pytest.fixture
def make_worker(server, executor):
    workers = []

    def make(num_problems=4, **options):
        needed = {"train_data": "-", "model_name_or_path": BASE, "output_dir": "-", "credit": "turn"}
        options = needed | {"num_generations": 4, "max_completion_length": 24, "temperature": 1.0} | options
        tokenizer = load_tokenizer(BASE)
        sampler = TokenServer(server.url, "toy", tokenizer, [tokenizer.eos_token_id], 24)
        reference = options.pop("reference", None)
        problems = begin(load_problems(TOY / "train.jsonl")[:num_problems])
        workers.append(
            RolloutWorker(
                CoCoSOptions(**options), problems, executor, named_protocol("cocos"), sampler, reference, 2
            )
        )
        return workers[-1]

    yield make
    for worker in workers:
        worker.stop()


@pytest.fixture
def on_a_processor(monkeypatch):
    """TRL's trainer asks CUDA for the name of the device, to compute its utilization."""
    name = "trl.experimental.async_grpo.async_grpo_trainer.get_peak_flops_per_device"
    monkeypatch.setattr(name, lambda accelerator, dtype: None)


@contextmanager
def trainer(folder, worker, server, **options):
    args = {
        "per_device_train_batch_size": 16,
        "learning_rate": 3e-4,
        "max_steps": 3,
        "token_budget": 0,
    } | options
    made = AsyncGRPOTrainer(
        model=BASE,
        args=AsyncGRPOConfig(
            output_dir=str(folder),
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            disable_tqdm=True,
            temperature=1.0,
            vllm_server_base_url=server.url,
            **args,
        ),
        train_dataset=Dataset.from_dict({"prompt": ["-"] * 4}),
        processing_class=load_tokenizer(BASE),
        rollout_worker=worker,
        weight_transfer=WeightsAsFile(server.url),
    )
    use_torch_attention()
    yield made


def test_the_rows_of_a_group_are_what_was_sampled_with_leave_one_out_advantages(make_worker):
    worker = make_worker()
    samples = worker.play_group(0, number=7, version=3)
    assert len(samples) == 8  # four trajectories of two turns
    assert {(sample.group_id, sample.model_version) for sample in samples} == {(7, 3)}
    for sample in samples:
        length = int(sample.completion_mask.sum())
        assert 0 < length <= 24 and sample.completion_mask[-length:].all()
        assert (sample.old_log_probs[-length:] <= 0).all() and not sample.old_log_probs[:-length].any()
    # The turns of a trajectory are neighbours; siblings are compared at the same turn.
    for turn in (0, 1):
        assert sum(sample.advantage for sample in samples[turn::2]) == pytest.approx(0, abs=1e-6)
    first, second = samples[:2]
    assert second.input_ids[: len(first.input_ids)].tolist() == first.input_ids.tolist()
    assert set(worker.metrics_queue.get_nowait()) == {"reward_t1", "reward_t2"}


def test_the_penalty_of_a_policy_that_is_its_reference_is_zero(make_worker):
    model = AutoModelForCausalLM.from_pretrained(BASE).eval()
    worker = make_worker(beta=0.1, reference=reference_logps(model, 1.0))
    [trajectory] = worker.player.sample([worker.prompts[0]])
    assert worker._score(trajectory).kl_K == pytest.approx([0, 0], abs=1e-4)


@pytest.mark.processes
def test_the_async_trainer_starts_on_the_policy_and_sends_its_weights_after_each_update(
    make_worker, server, tmp_path, on_a_processor
):
    worker = make_worker()
    with trainer(tmp_path, worker, server) as made:
        made.train()
    logs = [log for log in made.state.log_history if "ratio" in log]
    assert len(logs) == 3 and server.num_updates == 4  # and once before the first one
    # Old log-probabilities are those of the server, which had these weights: TRL's tree attention is right.
    assert logs[0]["ratio"] == pytest.approx(1, abs=1e-3) and abs(logs[0]["kl"]) < 1e-4
    assert logs[0]["grad_norm"] > 0 and max(log["sample/staleness_max"] for log in logs) <= 3
    assert all(0 <= log["reward_t1"] <= 1 for log in logs if "reward_t1" in log)
    sent = server.model.state_dict()
    for name, weights in made.model.state_dict().items():
        assert torch.equal(weights, sent[name]), name


@pytest.mark.processes
def test_a_killed_server_ends_the_run_in_one_line(make_worker, server, tmp_path, on_a_processor):
    worker = make_worker()
    with trainer(tmp_path, worker, server, max_steps=1000) as made:
        threading.Timer(5, server.kill).start()
        with (
            pytest.raises(
                ValueError,
                match=r"^the vLLM server http://\S+ does not answer \(ConnectionError\); restart it[^\n]*$",
            ),
            answers_required(server.url),
        ):
            made.train()


@pytest.mark.processes
@pytest.mark.nightly
def test_the_async_trainer_learns_as_the_synchronous_one(
    make_worker, server, make_trainer, tmp_path, on_a_processor
):
    same = {"max_steps": 30, "learning_rate": 1e-3, "lr_scheduler_type": "constant"}
    synchronous = make_trainer(  # 8 problems, 4 trajectories of 2 turns each: 64 rows
        global_batch_size=32, per_device_train_batch_size=32, max_completion_length=24, **same
    )
    synchronous.train()
    with trainer(
        tmp_path, make_worker(num_problems=8), server, per_device_train_batch_size=64, **same
    ) as made:
        made.train()
    curves = [
        [log["reward_t2"] for log in run.state.log_history if "reward_t2" in log]
        for run in (synchronous, made)
    ]
    print([[round(r, 3) for r in curve] for curve in curves])
    first, last = ([sum(curve[part]) / 10 for curve in curves] for part in (slice(10), slice(-10, None)))
    assert min(last) > max(first) + 0.2
    assert abs(last[0] - last[1]) < 0.15
