"""The rollout engines that TRL brings, as Generators: vLLM and transformers' continuous batching.

Both are chosen by TRL's own options (`--use_vllm`, `--use_transformers_continuous_batching`) and know nothing
of turns. Log-probabilities of what they sample are computed again by the policy, never taken from the engine.
"""

import time
from collections.abc import Sequence

from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.generation import ContinuousBatchingConfig
from trl.generation.vllm_generation import VLLMGeneration

from cocos.generation import Completion
from cocos.generation.huggingface import eos_token_ids
from cocos.generation.tokenizer import TokenTranscripts


class VLLMRollouts(TokenTranscripts):
    """Samples with TRL's vLLM, colocated or a server, whose weights the trainer keeps up to date.

    Every process calls `generate` equally often, with equally many prompts: a server's calls are collective.

    Args:
        engine: The trainer's; its `generation_kwargs` stop it at [DONE] (`CoCoSConfig`).
        tokenizer: Of the policy.
        eos_ids: Every id that ends an answer.

    """

    def __init__(
        self,
        engine: VLLMGeneration,
        tokenizer: PreTrainedTokenizerBase,
        eos_ids: Sequence[int],
    ):
        super().__init__(tokenizer, eos_ids)
        self.engine = engine

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        assert seeds is None, "training draws from the engine's own random state"
        began = time.perf_counter()
        self.engine.temperature = temperature
        # One sample per prompt: from turn 2 on the siblings' prompts differ.
        _, sampled, _, _ = self.engine.generate(list(map(list, prompts)), images=None, num_generations=1)
        share = (time.perf_counter() - began) / len(prompts)
        return [self.completion(list(ids), share) for ids in sampled]


class ContinuousBatches(TokenTranscripts):
    """Samples with transformers' continuous batching: finished rows give way to waiting ones.

    It knows no stop strings, so that an answer without an end-of-sequence id runs on after [DONE]; what
    follows is cut off.

    Args:
        model: The policy, on its device.
        tokenizer: Of the policy.
        config: TRL's, from `--transformers_continuous_batching_config`.
        max_completion_length: New tokens per completion at most.

    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        config: ContinuousBatchingConfig,
        max_completion_length: int,
    ):
        super().__init__(tokenizer, eos_token_ids(model, tokenizer))
        self.model = model
        self.config = config
        self.max_completion_length = max_completion_length

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        assert seeds is None, "training draws from the process's random state"
        began = time.perf_counter()
        sampling = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature > 0 else {}
        outputs = self.model.generate_batch(
            list(map(list, prompts)),
            generation_config=GenerationConfig(
                max_new_tokens=self.max_completion_length,
                do_sample=temperature > 0,
                eos_token_id=sorted(self.eos_ids),
                pad_token_id=self.tokenizer.pad_token_id,
                **sampling,
            ),
            continuous_batching_config=self.config,
            progress_bar=False,
        )
        assert len(outputs) == len(prompts), "continuous batching lost a request"
        share = (time.perf_counter() - began) / len(prompts)
        return [self.completion(list(output.generated_tokens), share) for output in outputs.values()]
