"""A transformers model as a Generator: batched by length, left-padded, stopped at every end-of-sequence id
and at [DONE].

Knows tokens and models; does not know problems, prompts' wording (but for the stop string) or turns.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from cocos.generation import Completion
from cocos.prompts import DONE


class HuggingFaceGenerator:
    """Samples completions from a causal language model.

    Args:
        model: On its device; generation runs in whatever mode and under whatever wrapper the caller has set
            up.
        tokenizer: With a pad token, which may be the end-of-sequence token: lengths decide, never pad ids.
        max_completion_length: New tokens per completion at most.
        temperature: 0 decodes greedily.
        batch_size: Prompts per forward pass; None puts all into one.

    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        max_completion_length: int = 512,
        temperature: float = 0.0,
        batch_size: int | None = None,
    ):
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.eos_ids = eos_token_ids(model, tokenizer)
        sampling = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}
        self.generation_config = GenerationConfig(
            max_new_tokens=max_completion_length,
            do_sample=temperature > 0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(self.eos_ids),
            stop_strings=[DONE],
            **sampling,
        )

    def encode(self, text: str, is_start: bool) -> list[int]:
        return encode(self.tokenizer, text, is_start)

    def generate(self, prompts: Sequence[Sequence[int]]) -> list[Completion]:
        # Neighbours in length share a batch, so that little of it is padding.
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        size = self.batch_size or len(prompts)
        completions: dict[int, Completion] = {}
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            completions |= zip(batch, self._generate([prompts[i] for i in batch]), strict=True)
        return [completions[i] for i in range(len(prompts))]

    def _generate(self, prompts: list[Sequence[int]]) -> list[Completion]:
        began = time.perf_counter()
        width = max(map(len, prompts))
        pad = self.tokenizer.pad_token_id
        input_ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts])  # (B, P)
        attention_mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])  # (B, P)
        with torch.no_grad(), self._own_generation_config():
            sequences = self.model.generate(
                input_ids=input_ids.to(self.model.device),
                attention_mask=attention_mask.to(self.model.device),
                generation_config=self.generation_config,
                tokenizer=self.tokenizer,
            )  # (B, P + C)
        share = (time.perf_counter() - began) / len(prompts)
        return [self._completion(ids, share) for ids in sequences[:, width:].tolist()]

    @contextmanager
    def _own_generation_config(self) -> Iterator[None]:
        """A checkpoint's sampling defaults fill whatever a given config leaves open: leave none to take."""
        checkpoints, self.model.generation_config = self.model.generation_config, self.generation_config
        try:
            yield
        finally:
            self.model.generation_config = checkpoints

    def _completion(self, sampled: list[int], duration_s: float) -> Completion:
        """Cut a padded row where it ended: after the first end-of-sequence id or the token that completes
        [DONE].
        """
        eos = next((i for i, token in enumerate(sampled) if token in self.eos_ids), None)
        ids = sampled if eos is None else sampled[: eos + 1]
        done = self._first_done(ids)
        if done is not None:
            ids = ids[:done]
        return Completion(
            token_ids=tuple(ids),
            text=self._decode(ids),
            is_truncated=eos is None and done is None,
            is_eos=eos is not None and len(ids) == eos + 1,
            duration_s=duration_s,
        )

    def _first_done(self, ids: list[int]) -> int | None:
        """How many ids it takes until the text contains [DONE]; None if it never does."""
        if DONE not in self._decode(ids):
            return None
        return bisect_left(range(len(ids) + 1), True, key=lambda n: DONE in self._decode(ids[:n]))

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def encode(tokenizer: PreTrainedTokenizerBase, text: str, is_start: bool) -> list[int]:
    """Token ids of a piece of a transcript; special tokens only where it opens one (see Generator.encode)."""
    return tokenizer(text, add_special_tokens=is_start)["input_ids"]


def eos_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends a completion: the generation config's (one or several) and the tokenizer's."""
    declared = model.generation_config.eos_token_id
    ids = set(declared if isinstance(declared, list) else [declared]) | {tokenizer.eos_token_id}
    return ids - {None}


def load_tokenizer(
    name_or_path: str, revision: str | None = None, trust_remote_code: bool = False
) -> PreTrainedTokenizerBase:
    """The tokenizer of a checkpoint, padding on the left; a missing pad token becomes the end-of-sequence
    token.

    Raises:
        ValueError: The checkpoint is not there, or its tokenizer has neither a pad nor an end-of-sequence
            token.

    """
    _check_checkpoint(name_or_path)
    tokenizer = AutoTokenizer.from_pretrained(
        name_or_path, revision=revision, trust_remote_code=trust_remote_code, padding_side="left"
    )
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError(
                f"{name_or_path}: the tokenizer has neither a pad nor an eos token; name one in its "
                f"tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(
    name_or_path: str, dtype: str = "auto", attn_implementation: str | None = None
) -> PreTrainedModel:
    """A causal language model for evaluation, on the best device there is.

    Args:
        dtype: `auto` is bfloat16 on a GPU that has it, float32 elsewhere.

    Raises:
        ValueError: The checkpoint is not there.

    """
    _check_checkpoint(name_or_path)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported() else "float32"
    model = AutoModelForCausalLM.from_pretrained(
        name_or_path, dtype=getattr(torch, dtype), attn_implementation=attn_implementation
    )
    return model.to(device).eval()


def _check_checkpoint(name_or_path: str) -> None:
    """A path that looks local but is not there would otherwise be asked of the hub, with a baffling error."""
    looks_local = name_or_path.startswith((".", "/", "~")) or name_or_path.count("/") != 1
    if not Path(name_or_path).is_dir() and looks_local and "/" in name_or_path:
        raise ValueError(
            f"{name_or_path}: no such checkpoint directory; give a directory or a hub id like org/name"
        )
