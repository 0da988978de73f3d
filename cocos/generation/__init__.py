"""Generators: they continue transcripts of prompts and completions. This package imports no torch.

interface     Completion and the Generator protocol that the turn loop calls
huggingface   a transformers model in this process; kv_cache keeps attention keys and values between turns
vllm_offline  vLLM's offline engine
trl_engines   the rollout engines of TRL: vLLM and transformers' continuous batching
tokenizer     transcripts as token ids, for every generator that has a tokenizer
endpoint      an OpenAI-compatible endpoint, with its retry policy (retry) and API keys (api_keys)
scripted      prepared answers, for controls and tests
"""

from cocos.generation.interface import Completion, Generator

__all__ = ["Completion", "Generator"]
