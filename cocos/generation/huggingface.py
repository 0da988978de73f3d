"""A transformers model as a Generator: batched by length, left-padded, stopped at every end-of-sequence id
and at [DONE].

Knows tokens and models; does not know problems, prompts' wording (but for the stop string) or turns.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from cocos.generation import Completion
from cocos.generation.tokens import TokenTranscripts, check_checkpoint
from cocos.prompts import DONE


class HuggingFaceGenerator(TokenTranscripts):
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
        super().__init__(tokenizer, eos_token_ids(model, tokenizer))
        self.model = model
        self.batch_size = batch_size
        self.max_completion_length = max_completion_length
        self.temperature = temperature

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float | None = None,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        # Neighbours in length share a batch, so that little of it is padding.
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        config = self._generation_config(self.temperature if temperature is None else temperature)
        size = self.batch_size or len(prompts)
        completions: dict[int, Completion] = {}
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            completions |= zip(batch, self._generate([prompts[i] for i in batch], config), strict=True)
        return [completions[i] for i in range(len(prompts))]

    def _generate(self, prompts: list[Sequence[int]], config: GenerationConfig) -> list[Completion]:
        began = time.perf_counter()
        width = max(map(len, prompts))
        pad = self.tokenizer.pad_token_id
        input_ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts])  # (B, P)
        attention_mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])  # (B, P)
        with torch.no_grad(), self._own_generation_config(config):
            sequences = self.model.generate(
                input_ids=input_ids.to(self.model.device),
                attention_mask=attention_mask.to(self.model.device),
                generation_config=config,
                tokenizer=self.tokenizer,
            )  # (B, P + C)
        share = (time.perf_counter() - began) / len(prompts)
        return [self.completion(ids, share) for ids in sequences[:, width:].tolist()]

    def _generation_config(self, temperature: float) -> GenerationConfig:
        sampling = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}
        return GenerationConfig(
            max_new_tokens=self.max_completion_length,
            do_sample=temperature > 0,
            pad_token_id=self.tokenizer.pad_token_id,
            eos_token_id=sorted(self.eos_ids),
            stop_strings=[DONE],
            **sampling,
        )

    @contextmanager
    def _own_generation_config(self, config: GenerationConfig) -> Iterator[None]:
        """A checkpoint's sampling defaults fill whatever a given config leaves open: leave none to take."""
        checkpoints, self.model.generation_config = self.model.generation_config, config
        try:
            yield
        finally:
            self.model.generation_config = checkpoints


def eos_token_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Every id that ends a completion: the generation config's (one or several) and the tokenizer's."""
    declared = model.generation_config.eos_token_id
    ids = set(declared if isinstance(declared, list) else [declared]) | {tokenizer.eos_token_id}
    return ids - {None}


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
