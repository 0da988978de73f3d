"""vLLM's offline engine as a Generator: token ids in and out, common prefixes computed once.

Written to vLLM's documented interface (`LLM`, `SamplingParams`) and not run by this project's tests, which
have no GPU. Knows tokens; does not know turns: it is the engine's prefix cache that finds a turn's transcript
again.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from cocos.generation import Completion
from cocos.generation.tokenizer import TokenTranscripts
from cocos.prompts import DONE

# vLLM's sampling parameters: an answer ends at [DONE], which is part of it.
STOP_AT_DONE: dict[str, Any] = {"stop": [DONE], "include_stop_str_in_output": True}


class VLLMGenerator(TokenTranscripts):
    """Samples completions with vLLM on this machine's GPUs.

    Args:
        name_or_path: Checkpoint directory or hub id.
        tokenizer: Of the checkpoint.
        eos_ids: Every id that ends an answer.
        dtype: Weights' type; `auto` is the checkpoint's.
        max_completion_length: New tokens per completion at most.

    Raises:
        ValueError: vLLM is not installed.

    """

    def __init__(
        self,
        name_or_path: str,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Iterable[int],
        dtype: str = "auto",
        max_completion_length: int = 512,
    ):
        super().__init__(tokenizer, eos_ids)
        try:
            import vllm
        except ImportError:
            raise ValueError('--generator vllm needs vLLM: pip install "cocos-lab[vllm]"') from None
        self.sampling_params = vllm.SamplingParams
        self.engine = vllm.LLM(model=name_or_path, dtype=dtype, enable_prefix_caching=True)
        self.max_completion_length = max_completion_length

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        began = time.perf_counter()
        sampling: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": self.max_completion_length,
            **STOP_AT_DONE,
            "stop_token_ids": sorted(self.eos_ids),
        }
        outputs = self.engine.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            [self.sampling_params(**sampling, seed=seed) for seed in seeds]
            if seeds is not None
            else self.sampling_params(**sampling),
            use_tqdm=False,
        )
        share = (time.perf_counter() - began) / len(prompts)
        return [self.completion(list(output.outputs[0].token_ids), share) for output in outputs]
