"""Generator that samples from a transformers model in this process.

It has its own decoding loop because `model.generate` does not cache keys and values between turns, remove
ended rows from the batch, compute equal prompts once, or give each row its own random numbers. This module
knows models and token ids; it does not know problems or turns.

Axes: B rows of the batch, C completion ids at most, V vocabulary.
"""

import inspect
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile

import torch
import torch.distributed as dist
from huggingface_hub.errors import StrictDataclassError
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from transformers import (
    AttentionInterface,
    AutoModelForCausalLM,
    Cache,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from cocos.generation.batch import PaddedBatch, Pass, batches
from cocos.generation.checkpoint_files import base_model, check_checkpoint, is_adapter
from cocos.generation.fixed_steps import FixedSteps
from cocos.generation.grouped_attention import grouped_attention
from cocos.generation.interface import Completion, GenerationStopped
from cocos.generation.kv_cache import TranscriptCache
from cocos.generation.model_kinds import brief
from cocos.generation.sampling import Draft, sample_ids, uniform_draws
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids

FIXED_ATTENTIONS = {"sdpa", "prefix_tree"}  # the latter is that of training, and SDPA where nothing is shared
MIN_SHARED_IDS = 128  # of a beginning that is computed once; for less, a forward pass more does not pay


class HuggingFaceGenerator(TokenTranscripts):
    """Generator that samples from a causal language model.

    The weights must not change during its lifetime, because cached keys and values would be outdated. The
    cache holds at most `batch_size` transcripts, including those being generated. The turn loop plays that
    many trajectories at a time, so the transcript of the previous turn is still cached.

    Args:
        model: Model on its device. The generator does not change its train or eval mode. If the weights are
            sharded over ranks, every rank must call `generate` equally often.
        batch_size: Number of prompts per forward pass; None computes all prompts in one.

    Raises:
        ValueError: The model does not accept a cache as an argument, or `generate` gets a prompt that leaves
            no room for a completion in the model's learned positions, or has an id that the model does not.

    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_completion_length: int = 512,
        batch_size: int | None = None,
    ):
        super().__init__(tokenizer, eos_token_ids(model.generation_config, tokenizer))
        self.model = model
        # PEFT's wrapper forwards any keyword.
        base = type(model.get_base_model() if hasattr(model, "get_base_model") else model)
        self.forward_arguments = set(inspect.signature(base.forward).parameters)
        if "past_key_values" not in self.forward_arguments:
            raise ValueError(
                f"{base.__name__} takes no past_key_values: models without such a cache are not supported"
            )
        self.is_collective = is_sharded(self.model)
        self.context_length = _context_length(model.config, tokenizer)
        # Beyond a table of learned positions a forward pass fails; on a GPU it ends the process.
        self.has_learned_positions = any(
            isinstance(module, torch.nn.Embedding) and ("position" in name or name.endswith("wpe"))
            for name, module in model.named_modules()
        )
        self.max_completion_length = max_completion_length
        self.batch_size = batch_size
        AttentionInterface.register("sdpa", grouped_attention)
        self.cache = TranscriptCache(self.model.config)
        # One graph for all layers needs the same mask in each, which SDPA takes as it is.
        self.has_fixed_steps = (
            model.device.type == "cuda"
            and self.cache.is_uniform
            and not self.is_collective
            and "position_ids" in self.forward_arguments
            and model.config.get_text_config()._attn_implementation in FIXED_ATTENTIONS
        )

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        self._check_positions(max(map(len, prompts), default=0))
        self._check_ids(max((max(prompt, default=0) for prompt in prompts), default=0))
        if seeds is None:
            seeds = torch.randint(2**63 - 1, (len(prompts),)).tolist()
        size = self.batch_size or max(1, len(prompts))
        completions: dict[int, Completion] = {}
        with torch.no_grad(), _contiguous_input(self.model.get_output_embeddings()):
            for chunk in batches([len(prompt) for prompt in prompts], size):
                sampled = self._generate_batch(
                    [prompts[i] for i in chunk], temperature, [seeds[i] for i in chunk], size
                )
                completions |= zip(chunk, sampled, strict=True)
            # Every forward pass of a sharded model needs all ranks. A rank that has finished runs empty
            # passes until all have, because the others would wait for it forever.
            while self.is_collective and self._any_rank_is_busy(False):
                self.model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=self.model.device))
        return [completions[i] for i in range(len(prompts))]

    def _check_positions(self, longest: int) -> None:
        """Raise ValueError if a prompt and its completion may exceed a table of learned positions."""
        limit = self.context_length
        if self.has_learned_positions and limit and longest + self.max_completion_length > limit:
            raise ValueError(
                f"a prompt of {longest} tokens and {self.max_completion_length} new ones exceed the {limit} "
                "positions of the model; lower --max_completion_length or --num_turns"
            )

    def _check_ids(self, largest: int) -> None:
        """Raise ValueError if a prompt has an id without an embedding, which would end a process on a GPU."""
        num_ids = self.model.get_input_embeddings().num_embeddings
        if largest >= num_ids:
            token = self.tokenizer.convert_ids_to_tokens(largest)
            raise ValueError(
                f"the tokenizer makes the id {largest} ({token!r}), but the model has {num_ids} ids: tokens "
                "were added without a resize; use the tokenizer that the model was trained with, or resize "
                "the model's embeddings"
            )

    def _generate_batch(
        self, prompts: list[Sequence[int]], temperature: float, seeds: list[int], max_transcripts: int
    ) -> list[Completion]:
        """Compute the prompts, then sample one id per row until all rows have ended or reached the limit."""
        started = time.perf_counter()
        max_length = self.max_completion_length
        draws = uniform_draws(seeds, max_length).to(self.model.device) if temperature else None  # (B, C)
        batch, logits = self.clocks.part("prefill")(self._prefill)(prompts, max_transcripts)
        drafts = [Draft(number, prompt) for number, prompt in enumerate(prompts)]
        rows = drafts  # the draft that each row of the batch continues
        fixed = FixedSteps(self._forward, batch) if self.has_fixed_steps else None
        for step in range(max_length):
            step_draws = None if draws is None else draws[[draft.number for draft in rows], step]
            is_last = step + 1 == max_length
            with self.clocks.part("sampler"):
                ids, logps = sample_ids(logits, temperature, step_draws)  # (B)
                self._add(rows, ids.tolist(), None if logps is None else logps.tolist(), is_last)
            if self.on_text and len(drafts) == 1:
                self.on_text(self.decode(drafts[0].ids))
            if is_last or all(draft.has_ended for draft in rows):
                break
            with self.clocks.part("steps"):
                ended = [row for row, draft in enumerate(rows) if draft.has_ended]
                # Without support, ended rows are computed with the others and their ids are ignored.
                if ended and self.cache.is_supported and (not fixed or fixed.is_full):
                    self.cache.store(batch, {row: rows[row].computed for row in ended}, is_last_use=False)
                    order = batch.remove(ended)
                    ids, rows = ids[order], [rows[row] for row in order]
                if fixed and fixed.is_full:
                    fixed = FixedSteps(self._forward, batch)
                batch.end += 1
                if fixed:
                    self._check_stop()
                    logits = fixed.next_logits(ids)
                else:
                    logits = self._next_logits(batch, ids[:, None])
        self.cache.store(batch, {row: draft.computed for row, draft in enumerate(rows)}, is_last_use=True)
        completions = self.batch_completions([draft.ids for draft in drafts], time.perf_counter() - started)
        return [
            replace(completion, engine_logps=tuple(draft.logps) or None)
            for completion, draft in zip(completions, drafts, strict=True)
        ]

    def _add(self, rows: list[Draft], ids: list[int], logps: list[float] | None, is_last: bool) -> None:
        """Add the sampled ids of a step to the drafts of their rows; `is_last` ends all of them."""
        open_rows = [row for row, draft in enumerate(rows) if not draft.has_ended]
        for row in open_rows:
            rows[row].ids.append(ids[row])
            if logps is not None:
                rows[row].logps.append(logps[row])
            rows[row].has_ended = self.has_ended(rows[row].ids)
        self.progress.add(len(open_rows), sum(is_last or rows[row].has_ended for row in open_rows))

    def _prefill(
        self, prompts: list[Sequence[int]], max_transcripts: int
    ) -> tuple[PaddedBatch, torch.Tensor]:
        """Compute the prompts; return a batch with a row for each, and the logits (B, V) of their next ids.

        Equal prompts (the samples of one problem) are computed once.
        """
        self._cache_common_prefix(prompts, max_transcripts)
        unique: dict[tuple[int, ...], int] = {}
        unique_rows = [unique.setdefault(tuple(prompt), len(unique)) for prompt in prompts]
        has_duplicates = len(unique) < len(prompts) and self.cache.is_supported
        batch, new_ids, parts = self.cache.start_batch(
            list(unique) if has_duplicates else prompts,
            self.max_completion_length,
            max_transcripts,
            self.model.device,
        )
        logits = self._first_logits(batch, new_ids, parts)
        if logits.isnan().any():
            raise ValueError(
                f"the model computes NaN in {logits.dtype}, so its answers would mean nothing: its weights "
                "are damaged, or need --dtype float32"
            )
        if has_duplicates:
            index = torch.tensor(unique_rows, device=self.model.device)
            batch.select(index)
            logits = logits[index]
        return batch, logits

    def _cache_common_prefix(self, prompts: list[Sequence[int]], max_transcripts: int) -> None:
        """Compute the ids with which all prompts begin, such as few-shot examples, once."""
        # The first and the last prompt in the order of their ids differ earliest.
        first, last = min(map(list, prompts)), max(map(list, prompts))
        length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
        shared = first[:length]
        if first == last or length < MIN_SHARED_IDS or not self.cache.is_supported:
            return
        if not self.cache.has_prefix(shared):
            batch, new_ids, parts = self.cache.start_batch([shared], 0, max_transcripts, self.model.device)
            self._first_logits(batch, new_ids, parts)
            self.cache.store(batch, {0: shared}, is_last_use=True)

    def _first_logits(self, batch: PaddedBatch, new_ids: torch.Tensor, parts: list[Pass]) -> torch.Tensor:
        """Compute a batch of `TranscriptCache.start_batch`; return the logits (B, V) of the next ids."""
        if len(parts) == 1:
            return self._next_logits(batch, new_ids)
        logits: dict[int, torch.Tensor] = {}
        for part in parts:
            started = batch.start_part(part)
            logits |= zip(
                part.rows, self._next_logits(started, new_ids[part.rows, -part.num_new :]), strict=True
            )
            batch.finish_part(part, started)
        return torch.stack([logits[row] for row in range(len(logits))])

    def _next_logits(self, batch: PaddedBatch, ids: torch.Tensor) -> torch.Tensor:
        """Compute the last columns of a batch and return the logits of the next id, of shape (B, V).

        Args:
            batch: Batch whose `end` already counts these columns.
            ids: Ids of shape (B, columns).

        """
        self._check_stop()
        positions = batch.positions[:, batch.end - ids.shape[1] : batch.end]
        return self._forward(ids, batch.mask[:, : batch.end], positions, batch.cache)

    def _forward(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, cache: Cache
    ) -> torch.Tensor:
        """Return the logits (B, V) that follow the last ids."""
        optional = {"position_ids": positions, "logits_to_keep": 1}
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if name in self.forward_arguments},
        )
        return output.logits[:, -1]

    def _check_stop(self) -> None:
        """Raise GenerationStopped if this process has to stop, or another rank of a sharded model."""
        if self.is_collective:
            self._any_rank_is_busy(True)
        elif self.has_to_stop:
            raise GenerationStopped

    def _any_rank_is_busy(self, is_busy: bool) -> bool:
        """Return whether any rank still generates. Every rank calls this before each forward pass.

        If one of them has to stop, all raise GenerationStopped here, and none waits for another.
        """
        counts = torch.tensor([is_busy, self.has_to_stop], dtype=torch.float32, device=self.model.device)
        dist.all_reduce(counts)
        num_busy, num_stopped = counts.tolist()
        if num_stopped:
            raise GenerationStopped
        return num_busy > 0


@contextmanager
def _contiguous_input(layer: torch.nn.Module) -> Iterator[None]:
    """Copy the input of a layer, the last columns of the hidden states, into contiguous memory.

    If neither that input is contiguous nor the weights need a gradient, as with LoRA, torch.matmul copies the
    weights for every row: 270 MB for a vocabulary of 150,000 ids, 100 s for 64 prompts.
    """
    hook = layer.register_forward_pre_hook(lambda _, inputs: tuple(part.contiguous() for part in inputs))
    try:
        yield
    finally:
        hook.remove()


def _context_length(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the number of positions in a model's configuration, or else the tokenizer's limit."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    limit = positions or tokenizer.model_max_length
    return limit if limit < 10**9 else None  # transformers' number for "not known" is 10^30


def is_sharded(model: torch.nn.Module) -> bool:
    """Return whether ranks hold parts of the weights and must run their forward passes together.

    That is the case under FSDP, and under DeepSpeed ZeRO-3 unless the weights have been gathered.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return False
    # DeepSpeed marks its parameters with `ds_id`. A parameter that is split over the ranks is empty.
    is_partitioned = any(weight.numel() == 0 and hasattr(weight, "ds_id") for weight in model.parameters())
    fsdp_types = (FSDPModule, FullyShardedDataParallel)
    return is_partitioned or any(isinstance(module, fsdp_types) for module in model.modules())


def resolve_dtype(dtype: str) -> str:
    """Return the data type itself, or for `auto` bfloat16 on a GPU that supports it, else float32."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported(False) else "float32"


def load_model(
    name_or_path: str, dtype: str = "auto", attn_implementation: str | None = None
) -> PreTrainedModel:
    """Load a causal language model for evaluation, on a GPU if there is one.

    Args:
        dtype: Data type of the weights, or `auto`; see `resolve_dtype`.
        attn_implementation: Attention implementation of transformers; None is the model's default.

    Raises:
        ValueError: The checkpoint does not exist or is damaged, or its weights do not fit its
            configuration or the GPU.

    """
    check_checkpoint(name_or_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            base_model(name_or_path),
            dtype=getattr(torch, resolve_dtype(dtype)),
            attn_implementation=attn_implementation,
            trust_remote_code=False,  # None: transformers asks in the terminal
            output_loading_info=True,
        )
        if missing := sorted(found["missing_keys"]):
            raise ValueError(
                f"{name_or_path}: its files lack {len(missing)} weights of the model ({missing[0]}), which "
                "would be random; choose a complete causal language model"
            )
        if is_adapter(name_or_path):
            model.load_adapter(name_or_path)
        return model.to(device).eval()
    except torch.OutOfMemoryError:
        raise ValueError(f"{name_or_path}: the weights do not fit into the GPU's memory") from None
    except RuntimeError as error:
        if "ignore_mismatched_sizes" in str(error):
            raise ValueError(f"{name_or_path}: the shapes above do not fit its config.json") from None
        if "negative dimension" not in str(error):
            raise
        raise ValueError(f"{name_or_path}: config.json has a size below 0 ({error}); correct it") from None
    except (OSError, ImportError) as error:
        raise ValueError(f"{name_or_path}: the model cannot be loaded ({brief(error)})") from None
    except (ArithmeticError, TypeError, StrictDataclassError) as error:  # a size of 0 or of another type
        raise ValueError(
            f"{name_or_path}: no model can be made of its config.json ({type(error).__name__}: {error}); "
            "correct it"
        ) from None


def model_line(name_or_path: str, model: PreTrainedModel) -> str:
    """Return the line that a command prints when it has loaded its model."""
    dtype = str(model.dtype).removeprefix("torch.")
    slow = slowness(dtype, model.device, "--dtype float32")
    attention = model.config._attn_implementation
    return f"{name_or_path} on {model.device} in {dtype}{slow}, attention {attention}"


def slowness(dtype: str, device: torch.device, remedy: str) -> str:
    """Return a note if a CPU has no arithmetic for a data type and emulates it, else ""."""
    if dtype != "bfloat16" or device.type != "cpu" or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return ""
    return f" (this CPU emulates it, several times slower than float32: {remedy})"
