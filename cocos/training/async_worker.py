"""Rollouts for TRL's AsyncGRPOTrainer, which trains while servers sample. Experimental.

TRL's trainer takes rows from a queue, sends its weights to a vLLM server after an update, and drops rows of
weights that are too old. `RolloutWorker` fills the queue: threads play one group each with our turn loop,
score it with our executor, and hand over a row per trained turn. What TRL's async trainer differs in:

    ratio       clipped per token, not per row, and averaged over tokens
    policy      rows are up to `max_staleness` versions old; old log-probabilities are the server's
    layouts     one process, DDP or FSDP2; no DeepSpeed
    KL          no reference model: the worker subtracts the penalty from the return (`reference`)

Not there: dynamic sampling, evaluation on dev problems, adapters as a reference, resuming the order of the
problems. `scripts/train_async.py` connects the parts.
"""

import math
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import requests
import torch
from torch import nn
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel, PreTrainedTokenizerBase
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample
from trl.experimental.async_grpo.packing import TREE_ATTENTION

from cocos.assembly import make_objective
from cocos.config.cocos_options import CoCoSOptions
from cocos.executor import Executor
from cocos.generation import Completion, Generator
from cocos.generation.tokenizer import TokenTranscripts
from cocos.generation.vllm_offline import STOP_AT_DONE
from cocos.prompts import PromptProtocol
from cocos.rewards import Score, grouped_returns, trained_advantages
from cocos.training.rollouts import RolloutPlayer
from cocos.trajectories import Trajectory, Turn, check_infra_failures

POLL_S = 0.5  # how often a thread that waits for room in the queue looks whether it has to stop


class TokenServer(TokenTranscripts):
    """Generator that samples token ids, with their log-probabilities, at a vLLM server.

    The server has to run with `--logprobs-mode processed_logprobs`: its log-probabilities are then those of
    the distribution that it samples from.

    Args:
        url: Address of the server, without `/v1`.
        model: Name by which the server knows the model.

    """

    def __init__(
        self,
        url: str,
        model: str,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Sequence[int],
        max_completion_length: int,
        timeout_s: float = 600.0,
    ) -> None:
        super().__init__(tokenizer, eos_ids)
        self.url, self.model, self.timeout_s = url.rstrip("/"), model, timeout_s
        self.max_completion_length = max_completion_length

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        assert seeds is None, "seeds are not supported: the server has its own random state"
        if not prompts:
            return []
        started = time.perf_counter()
        request: dict[str, Any] = {
            "model": self.model,
            "prompt": [list(prompt) for prompt in prompts],
            "max_tokens": self.max_completion_length,
            "temperature": temperature,
            "top_p": 1.0,
            "top_k": -1,
            "repetition_penalty": 1.0,
            "stop_token_ids": sorted(self.eos_ids),
            "logprobs": 0,  # of the sampled ids alone
            "return_token_ids": True,
            **STOP_AT_DONE,
        }
        with answers_required(self.url):
            answer = requests.post(f"{self.url}/v1/completions", json=request, timeout=self.timeout_s)
            answer.raise_for_status()
            choices = sorted(answer.json()["choices"], key=lambda choice: choice["index"])
        completions = self.batch_completions(
            [choice["token_ids"] for choice in choices], time.perf_counter() - started
        )
        stated = [choice["logprobs"]["token_logprobs"] for choice in choices]
        return [
            replace(completion, engine_logps=tuple(logps[: len(completion.token_ids)]))
            for completion, logps in zip(completions, stated, strict=True)
        ]


@contextmanager
def answers_required(url: str) -> Iterator[None]:
    """Report a server that is gone, or refuses a request, in one line. TRL wraps some in a RuntimeError.

    Raises:
        ValueError: In place of any exception of a request.

    """
    try:
        yield
    except (requests.RequestException, RuntimeError) as error:
        if not isinstance(error, requests.RequestException) and not isinstance(
            error.__cause__, requests.RequestException
        ):
            raise
        raise ValueError(
            f"the vLLM server {url} does not answer ({type(error).__name__}); restart it, and continue the "
            "run with --resume_from_checkpoint last"
        ) from error


class RolloutWorker:
    """Player of groups for AsyncGRPOTrainer (its RolloutWorkerProtocol).

    Args:
        options: Options of the run. Dynamic sampling is not used.
        prompts: Trajectories without turns to train on.
        executor: Runs the programs. The caller closes it.
        protocol: Prompts of all turns.
        generator: Samples from the newest weights of the server.
        reference: Returns the reference's log-probability of a turn's completion, for the KL penalty; None:
            no penalty.
        num_threads: Groups that are played at the same time.
        seed: Seed of the order of the problems.

    Attributes:
        rollout_buffer: Rows for the trainer.
        metrics_queue: Metrics of each group for the trainer's log.

    """

    def __init__(
        self,
        options: CoCoSOptions,
        prompts: Sequence[Trajectory],
        executor: Executor,
        protocol: PromptProtocol,
        generator: Generator,
        reference: Callable[[Turn], float] | None = None,
        num_threads: int = 4,
        queue_size: int = 256,
        seed: int = 0,
    ) -> None:
        @contextmanager
        def opened() -> Iterator[Generator]:
            yield generator

        self.options, self.prompts, self.reference = options, list(prompts), reference
        self.player = RolloutPlayer(options, prompts, executor, protocol, opened, seed)
        self.objective = make_objective(options)
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue(queue_size)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self.model_version = 0
        self._error: Exception | None = None
        self._stopped = threading.Event()
        self._numbers, self._lock = count(), threading.Lock()
        self._order: list[int] = []  # problems that this pass has still to play
        self._random = random.Random(seed)
        self._last_group_s = time.monotonic()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(num_threads)]

    def start(self) -> None:
        """Start to play groups."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop after the groups under way; the trainer takes no more rows."""
        self._stopped.set()

    def update_model_version(self, model_version: int) -> None:
        """Note the version of the weights that the server samples from now on."""
        self.model_version = model_version

    def check_health(self, stale_after_s: float) -> None:
        """Raise what has ended a thread, or an error if no group was finished for `stale_after_s` seconds."""
        if self._error is not None:
            raise self._error
        if time.monotonic() - self._last_group_s > stale_after_s:
            raise ValueError(
                f"no group was finished for {stale_after_s:.0f} s; look at the vLLM server's log, or raise "
                "heartbeat_stale_after_s"
            )

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                index, number = self._next_problem()
                version = self.model_version  # the oldest that a token of the group can be from
                samples = self.play_group(index, number, version)
                self._last_group_s = time.monotonic()
                for sample in samples:
                    self._put(sample)
        except Exception as error:  # the boundary of the thread: the trainer raises it in its own
            self._error = error

    def _next_problem(self) -> tuple[int, int]:
        """Return the index of a problem and the number of its group."""
        with self._lock:
            if not self._order:
                self._order = list(range(len(self.prompts)))
                self._random.shuffle(self._order)
            return self._order.pop(), next(self._numbers)

    def _put(self, sample: RolloutSample) -> None:
        while not self._stopped.is_set():
            try:
                return self.rollout_buffer.put(sample, timeout=POLL_S)
            except queue.Full:
                self._last_group_s = time.monotonic()  # the trainer is the slower one

    def play_group(self, index: int, number: int, version: int) -> list[RolloutSample]:
        """Play one group; return a row per trained turn that was sampled."""
        siblings = self.player.sample([self.prompts[index]] * self.options.num_generations)
        check_infra_failures(siblings, self.options.max_infra_share)
        scores = [self._score(trajectory) for trajectory in siblings]
        returns_P_G_K = grouped_returns(scores, self.objective)
        advantages_G_K = trained_advantages(returns_P_G_K, scores)
        rewards_T = zip(*(score.rewards_T for score in scores), strict=True)
        means = {
            f"reward_t{t}": float(np.mean([r for r in rewards if r is not None] or [math.nan]))
            for t, rewards in enumerate(rewards_T, start=1)
        }
        self.metrics_queue.put(means)
        return [
            row_sample(turn, advantage, version, number)
            for trajectory, advantages_K in zip(siblings, advantages_G_K, strict=True)
            for turn, advantage in zip(self._row_turns(trajectory), advantages_K, strict=True)
            if turn.is_sampled
        ]

    def _row_turns(self, trajectory: Trajectory) -> list[Turn]:
        return [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]

    def _score(self, trajectory: Trajectory) -> Score:
        kl_K = [self._kl(turn) if turn.is_sampled else None for turn in self._row_turns(trajectory)]
        return Score(self.player.rewards(trajectory), kl_K)

    def _kl(self, turn: Turn) -> float:
        if self.reference is None:
            return 0.0
        return sum(turn.completion.engine_logps or ()) - self.reference(turn)


def row_sample(turn: Turn, advantage: float, version: int, group: int) -> RolloutSample:
    """Return a turn as a row of TRL's async trainer: prompt and completion, with values per token."""
    prompt, sampled = turn.prompt_ids, turn.completion.token_ids
    logps = turn.completion.engine_logps or ()
    assert len(logps) == len(sampled), "the server stated no log-probabilities"
    return RolloutSample(
        prompt=[],
        completion=[],
        input_ids=np.array([*prompt, *sampled], dtype=np.int64),
        completion_mask=np.array([0] * len(prompt) + [1] * len(sampled), dtype=np.int64),
        old_log_probs=np.array([0.0] * len(prompt) + list(logps), dtype=np.float32),
        advantage=advantage,
        model_version=version,
        group_id=group,
        metrics={},
        enqueued_at=time.time(),
    )


def reference_logps(model: PreTrainedModel, temperature: float) -> Callable[[Turn], float]:
    """Return a function from a turn to the log-probability of its completion under a frozen model."""
    lock = threading.Lock()

    def logp(turn: Turn) -> float:
        ids = torch.tensor([[*turn.prompt_ids, *turn.completion.token_ids]], device=model.device)
        with torch.no_grad(), lock:
            logits = model(ids).logits[0, len(turn.prompt_ids) - 1 : -1].float() / temperature
        sampled = ids[0, len(turn.prompt_ids) :, None]
        return float(logits.log_softmax(-1).gather(1, sampled).sum())

    return logp


def use_torch_attention() -> None:
    """Compute the async trainer's tree attention with PyTorch; its own kernel is fetched from the hub."""
    AttentionInterface.register(TREE_ATTENTION, attention_along_paths)


def attention_along_paths(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    tree_kv_index: torch.Tensor,
    tree_cu_seqlens_q: torch.Tensor,
    tree_cu_seqlens_k: torch.Tensor,
    tree_max_seqlen_q: int,
    tree_max_seqlen_k: int,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Return what TRL's `tree_attention` returns for these arguments: the output, of shape (1, n, H, D)."""
    group = query.size(1) // key.size(1)
    queries = query[0].transpose(0, 1)  # (n, H, D)
    keys, values = (
        states[0].transpose(0, 1)[tree_kv_index].repeat_interleave(group, dim=1) for states in (key, value)
    )  # (keys of all paths, H, D)
    if query.is_cuda and query.dtype in (torch.float16, torch.bfloat16):
        output = varlen_attn(
            queries.contiguous(),
            keys,
            values,
            tree_cu_seqlens_q,
            tree_cu_seqlens_k,
            tree_max_seqlen_q,
            tree_max_seqlen_k,
            scale=scaling,
            window_size=(-1, 0),  # causal, aligned at the last query and the last key
        )
        assert isinstance(output, torch.Tensor)
        return output[None], None
    outputs, first_query, first_key = [], 0, 0
    for query_end, key_end in zip(
        tree_cu_seqlens_q[1:].tolist(), tree_cu_seqlens_k[1:].tolist(), strict=True
    ):
        own, path = query_end - first_query, key_end - first_key
        mask = torch.ones(own, path, dtype=torch.bool, device=query.device).tril(path - own)
        output = scaled_dot_product_attention(
            queries[first_query:query_end].transpose(0, 1)[None],
            keys[first_key:key_end].transpose(0, 1)[None],
            values[first_key:key_end].transpose(0, 1)[None],
            mask,
            scale=scaling,
        )
        outputs.append(output[0].transpose(0, 1))
        first_query, first_key = query_end, key_end
    return torch.cat(outputs)[None], None
