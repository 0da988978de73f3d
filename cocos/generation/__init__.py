"""Generators, which sample a completion for each prompt. Importing this package does not import torch.

A transcript is the prompt of turn 1, followed by the completions and messages of later turns.

interface     Completion and the Generator protocol that the turn loop calls
huggingface   a transformers model in this process; kv_cache keeps attention keys and values between turns,
              batch holds those of the rows being generated, sampling draws their ids
vllm_offline  vLLM's offline engine
trl_engines   the rollout engines of TRL: vLLM and transformers' continuous batching
checkpoint_files  checks of a checkpoint before it is loaded; safetensors_files checks its weights
tokenizer     transcripts as token ids, for every generator that has a tokenizer
endpoint      an OpenAI-compatible endpoint, with its retry policy (retry) and API keys (api_keys)
tool_calls    calls of tools in the text of a completion
shared_model  the requests of concurrent trajectories, answered in batches
scripted      answers of a function, for runs without a model and for tests
"""

from cocos.generation.interface import Completion, Generator, Role

__all__ = ["Completion", "Generator", "Role"]
