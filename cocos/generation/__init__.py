"""Generators, which sample a completion for each prompt. Importing this package does not import torch.

A transcript is the prompt of turn 1, followed by the completions and messages of later turns. Each
generator ends a completion at [DONE] with what its engine has for that; `tokenizer.py` has the ids.

    interface.py         Completion and the Generator protocol that the turn loop calls
    huggingface.py       a transformers model in this process
    kv_cache.py          attention keys and values, kept between turns
    batch.py             those of the rows that are being generated
    grouped_attention.py attention of a step on a processor
    sampling.py          the next ids
    vllm_offline.py      vLLM's offline engine, and its failures as user errors
    trl_vllm.py          TRL's vLLM during training, colocated or on a server, and its context
    checkpoint_files.py  checks of a checkpoint and its weights before it is loaded
    tokenizer.py         transcripts as token ids, and where a completion ends
    endpoint.py          an OpenAI-compatible endpoint
    retry.py             the requests that are retried, the delays, and the API keys
    tool_calls.py        calls of tools in the text of a completion
    clocks.py            seconds of the parts of sampling, and of an update
    progress.py          progress within a batch, for a bar or a log
    scripted.py          answers of a function, for runs without a model and for tests
"""

from cocos.generation.interface import Completion, GenerationStopped, Generator, Progress, Role

__all__ = ["Completion", "GenerationStopped", "Generator", "Progress", "Role"]
