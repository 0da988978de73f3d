"""Generator that samples with TRL's vLLM, which TRL's own option `--use_vllm` selects.

The trainer computes the log-probabilities of the loss with the policy itself. Those of vLLM show it how far
the engine's samples are from the policy's.
"""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from transformers import PreTrainedTokenizerBase
from trl import RLOOConfig
from trl.generation.vllm_generation import VLLMGeneration

from cocos.generation.interface import Completion, GenerationStopped
from cocos.generation.tokenizer import TokenTranscripts
from cocos.generation.vllm_offline import STOP_AT_DONE, engine_failure_named

Options = TypeVar("Options", bound=RLOOConfig)


def with_room_for(max_transcript: int | None, args: Options) -> Options:
    """Return the options with the length of the longest transcript as the engine's context, if none is given.

    The engine needs room for one transcript of its whole context, which is the model's if nobody says less,
    or does not start.
    """
    if not args.use_vllm or args.vllm_max_model_length is not None:
        return args
    args = copy.copy(args)
    args.vllm_max_model_length = max_transcript
    return args


class VLLMRollouts(TokenTranscripts):
    """Generator that samples with TRL's vLLM, colocated or on a server. The trainer syncs its weights.

    The engine's calls are collective and need equally many prompts from every process. A process with fewer
    prompts, because some of its trajectories have ended, samples from a token of padding in their place.
    """

    def __init__(self, engine: VLLMGeneration, tokenizer: PreTrainedTokenizerBase, eos_ids: Sequence[int]):
        super().__init__(tokenizer, eos_ids)
        self.engine = engine
        self.engine.logprobs = 0  # of the sampled ids alone; TRL's RLOO requests none
        self.engine.generation_kwargs = (engine.generation_kwargs or {}) | STOP_AT_DONE
        self.is_collective = PartialState().num_processes > 1

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        assert seeds is None, "seeds are not supported: the engine has its own random state"
        started = time.perf_counter()
        self.engine.temperature = temperature
        numbers, stops = zip(*gather_object([(len(prompts), self.has_to_stop)]), strict=True)
        if any(stops):
            raise GenerationStopped
        num_prompts = max(numbers)
        if not num_prompts:
            return []
        padding = [[self.tokenizer.pad_token_id]] * (num_prompts - len(prompts))
        with engine_failure_named("sample for the policy"):
            # Always one sample per prompt: from turn 2 on the prompts within a group differ.
            _, sampled, logps, _ = self.engine.generate(
                [*map(list, prompts), *padding], images=None, num_generations=1
            )
        completions = self.batch_completions(sampled[: len(prompts)], time.perf_counter() - started)
        self.progress.add(sum(map(len, sampled[: len(prompts)])), len(prompts))
        return [
            replace(completion, engine_logps=_of_sampled_ids(of_row)[: len(completion.token_ids)])
            for completion, of_row in zip(completions, logps, strict=False)  # without those of the padding
        ]


def _of_sampled_ids(logps: Sequence[Sequence[float | None]]) -> tuple[float, ...]:
    """Return the log-probabilities of the sampled ids from TRL's lists of one per id; None becomes NaN."""
    return tuple(math.nan if logp is None else logp for [logp] in logps)


def sync_weights(engine: VLLMGeneration) -> None:
    """Copy the policy's weights to vLLM.

    On a processor, vLLM packs the weights of linear layers for its kernels and drops the parameters that TRL
    fills. vLLM's own reload creates these parameters again, loads the weights, and packs them.

    Raises:
        ValueError: vLLM has died, or cannot take the weights.

    """
    with engine_failure_named("take the policy's weights"):
        if engine.mode == "server" or torch.accelerator.is_available():
            engine.sync_weights()
        else:
            weights = {"weights_iterator": engine._iter_named_params()}
            engine.llm.collective_rpc("reload_weights", kwargs=weights)
            engine.llm.apply_model(_pack_output_layer)
            engine.llm.reset_prefix_cache()


def _pack_output_layer(model: torch.nn.Module) -> None:
    """Pack the weights of vLLM's output layer, which its reload leaves out if they are the embedding's."""
    head: Any = getattr(model, "lm_head", None)
    if hasattr(head, "quant_method"):
        head.quant_method.process_weights_after_loading(head)


def check_server(engine: VLLMGeneration) -> None:
    """Check that a vLLM server states log-probabilities of the distribution that it samples from.

    By default they are those before temperature, so that every sample would seem to be off the policy.

    Raises:
        ValueError: The server states others, or does not answer.

    """
    with engine_failure_named("state the server's settings"):
        mode = engine.vllm_client.get_server_info()["model_config"]["logprobs_mode"]
    if mode != "processed_logprobs":
        raise ValueError(
            f"the vLLM server runs with --logprobs-mode {mode}, before temperature; restart it with "
            "--logprobs-mode processed_logprobs"
        )
