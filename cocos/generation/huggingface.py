"""A transformers model as a Generator: batched by length, left-padded, stopped at every end-of-sequence id
and at [DONE], with attention's keys and values carried from turn to turn.

Its own decoding loop in place of `model.generate`: rows that have ended leave the batch, equal prompts are
computed once, and what is sampled depends on prompt and seed alone. Knows tokens and models; does not know
problems, prompts' wording (but for the stop string) or turns.

Axes: B rows of a batch, C completion ids at most, V vocabulary.
"""

import inspect
import time
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from cocos.generation import Completion
from cocos.generation.kv_cache import Batch, KeptTranscripts
from cocos.generation.tokenizer import TokenTranscripts, check_checkpoint, end_ids


class HuggingFaceGenerator(TokenTranscripts):
    """Samples completions from a causal language model whose weights stay as they are.

    Keys and values are kept for the next turn, of at most `batch_size` transcripts with those in flight; the
    turn loop plays that many trajectories at a time, so that a turn computes only its new ids.

    Args:
        model: On its device; generation runs in whatever mode and under whatever wrapper the caller has set
            up. Where its weights are sharded over ranks, each must call `generate` equally often.
        tokenizer: With a pad token, which may be the end-of-sequence token: lengths decide, never pad ids.
        max_completion_length: New tokens per completion at most.
        batch_size: Prompts per forward pass; None puts all into one.

    Raises:
        ValueError: The model keeps no cache that can be handed in.

    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_completion_length: int = 512,
        batch_size: int | None = None,
    ):
        super().__init__(tokenizer, eos_token_ids(model, tokenizer))
        self.model = model
        # LoRA's wrapper hands on all that it is given; the base model says what it takes.
        base = type(model.get_base_model() if hasattr(model, "get_base_model") else model)
        self.arguments = set(inspect.signature(base.forward).parameters)
        if "past_key_values" not in self.arguments:
            raise ValueError(f"{base.__name__} takes no past_key_values: it cannot be sampled here")
        self.is_sharded = is_sharded(self.model)
        self.max_completion_length = max_completion_length
        self.batch_size = batch_size
        self.kept = KeptTranscripts(self.model.config)

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        if seeds is None:
            seeds = torch.randint(2**63 - 1, (len(prompts),)).tolist()
        # Neighbours in length share a batch, so that little of it is padding.
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        size = self.batch_size or len(prompts)
        completions: dict[int, Completion] = {}
        with torch.no_grad():
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                answers = self._generate([prompts[i] for i in batch], temperature, [seeds[i] for i in batch])
                completions |= zip(batch, answers, strict=True)
            while self.is_sharded and self._is_any_rank_busy(False):
                self.model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=self.model.device))
        return [completions[i] for i in range(len(prompts))]

    def _generate(
        self, prompts: list[Sequence[int]], temperature: float, seeds: list[int]
    ) -> list[Completion]:
        """One batch: compute the prompts, then append an id to every row until all have ended."""
        began = time.perf_counter()
        device, room = self.model.device, self.max_completion_length
        draws = _draws(seeds, room).to(device) if temperature else None  # (B, C)
        batch, logits = self._prefill(prompts)
        sampled: list[list[int]] = [[] for _ in prompts]
        has_ended = [False for _ in prompts]
        rows = list(range(len(prompts)))  # which prompt each row continues
        for step in range(room):
            tokens = _choose(logits, temperature, None if draws is None else draws[:, step])  # (B)
            for prompt, token in zip(rows, tokens.tolist(), strict=True):
                if not has_ended[prompt]:
                    sampled[prompt].append(token)
                    has_ended[prompt] = self.is_end(sampled[prompt])
            going_on = [row for row, prompt in enumerate(rows) if not has_ended[prompt]]
            if not going_on or step + 1 == room:
                break
            # Each selection copies what goes on: not for every row that ends.
            if 2 * len(going_on) <= len(rows) and self.kept.is_possible:
                ended = {row: prompt for row, prompt in enumerate(rows) if has_ended[prompt]}
                self.kept.keep(
                    batch, {row: _computed(prompts[i], sampled[i]) for row, i in ended.items()}, False
                )
                index = torch.tensor(going_on, device=device)
                batch.select(index)
                tokens, draws = tokens[index], None if draws is None else draws[index]
                rows = [rows[row] for row in going_on]
            batch.end += 1
            logits = self._next_logits(batch, tokens[:, None])
        self.kept.keep(batch, {row: _computed(prompts[i], sampled[i]) for row, i in enumerate(rows)}, True)
        share = (time.perf_counter() - began) / len(prompts)
        return [self.completion(ids, share) for ids in sampled]

    def _prefill(self, prompts: list[Sequence[int]]) -> tuple[Batch, torch.Tensor]:
        """A row per prompt, and the logits (B, V) of what follows; siblings' prompts are computed once."""
        numbers: dict[tuple[int, ...], int] = {}
        places = [numbers.setdefault(tuple(prompt), len(numbers)) for prompt in prompts]
        is_shared = len(numbers) < len(prompts) and self.kept.is_possible
        batch, new_ids = self.kept.open(
            list(numbers) if is_shared else prompts,
            self.max_completion_length,
            self.batch_size or len(prompts),
            self.model.device,
        )
        logits = self._next_logits(batch, new_ids)
        if is_shared:
            index = torch.tensor(places, device=self.model.device)
            batch.select(index)
            logits = logits[index]
        return batch, logits

    def _next_logits(self, batch: Batch, ids: torch.Tensor) -> torch.Tensor:
        """Compute the last columns of a batch, ids of shape (B, any); logits of what follows them, (B, V)."""
        if self.is_sharded:
            self._is_any_rank_busy(True)
        start = batch.end - ids.shape[1]
        optional = {"position_ids": batch.positions[:, start : batch.end], "logits_to_keep": 1}
        output = self.model(
            input_ids=ids,
            attention_mask=batch.mask[:, : batch.end],
            past_key_values=batch.cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if name in self.arguments},
        )
        return output.logits[:, -1]

    def _is_any_rank_busy(self, am_busy: bool) -> bool:
        """Ranks that share the weights run forward passes together: each asks this before every one, and goes
        on with empty ones when it is done itself.
        """
        busy = torch.tensor(float(am_busy), device=self.model.device)
        dist.all_reduce(busy)
        return busy.item() > 0


def _computed(prompt: Sequence[int], sampled: Sequence[int]) -> list[int]:
    """The transcript that the cache holds: the id sampled last was not put through the model."""
    return [*prompt, *sampled[:-1]]


def _draws(seeds: Sequence[int], count: int) -> torch.Tensor:
    """Numbers in [0, 1), a row of `count` per seed."""
    generator = torch.Generator()
    return torch.stack(
        [torch.rand(count, dtype=torch.float64, generator=generator.manual_seed(seed)) for seed in seeds]
    )


def _choose(logits: torch.Tensor, temperature: float, draws: torch.Tensor | None) -> torch.Tensor:
    """An id per row of logits (B, V): the likeliest, or the one at whose share of the cumulative distribution
    the row's draw lies.
    """
    if draws is None:
        return logits.argmax(-1)
    # In float64: float32 would round away the vocabulary's tail.
    cumulated = (logits.double() / temperature).softmax(-1).cumsum(-1)
    chosen = torch.searchsorted(cumulated, draws[:, None] * cumulated[:, -1:], right=True)
    return chosen[:, 0].clamp(max=logits.shape[1] - 1)


def is_sharded(model: torch.nn.Module) -> bool:
    """Whether ranks hold parts of the weights, so that a forward pass needs all of them: under FSDP, and
    under ZeRO-3 unless they have been gathered.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return False
    kinds = (FSDPModule, FullyShardedDataParallel)
    is_partitioned = any(weight.numel() == 0 and hasattr(weight, "ds_id") for weight in model.parameters())
    return is_partitioned or any(isinstance(module, kinds) for module in model.modules())


def eos_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends a model's answer."""
    return end_ids(model.generation_config, tokenizer)


def load_model(
    name_or_path: str, dtype: str = "auto", attn_implementation: str | None = None
) -> PreTrainedModel:
    """A causal language model for evaluation, on the best device there is.

    Args:
        dtype: `auto` is bfloat16 on a GPU that has it, float32 elsewhere.

    Raises:
        ValueError: The checkpoint is not there.

    """
    check_checkpoint(name_or_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    model = AutoModelForCausalLM.from_pretrained(
        name_or_path, dtype=getattr(torch, dtype), attn_implementation=attn_implementation
    )
    return model.to(device).eval()
