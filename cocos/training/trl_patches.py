"""Patches of TRL where no method of a trainer reaches: its output layer on a CPU.

TRL computes the log-probabilities of the labels in tiles of tokens times vocabulary, so that the logits never
exist as a whole. Its tiles are made for a GPU, and outside one it also computes the tokens without a label,
whose results it then discards: prompts and padding. Values and gradients change by rounding only.
"""

import torch
import trl.trainer.utils

TRL_WIDTH = 32_768  # of TRL's tiles, in tokens of the vocabulary
WIDTH = 256  # of ours; TRL's do not fit into a processor's cache


def patch_trl() -> None:
    """Make tiles that fit into a processor's cache, of tokens with a label; no effect with an accelerator."""
    if torch.accelerator.is_available():
        return
    utils = trl.trainer.utils
    assert utils._CHUNKED_LOGPROB_CHUNK_SIZE in (TRL_WIDTH, WIDTH), "TRL's tiles have another width"
    utils._CHUNKED_LOGPROB_CHUNK_SIZE = WIDTH
    assert utils._use_triton is skip_unlabelled or not utils._use_triton(torch.device("cpu"))
    utils._use_triton = skip_unlabelled


def skip_unlabelled(device: torch.device) -> bool:
    """Stand in for TRL's `_use_triton`, which on a CPU only decides whether to skip those tokens."""
    return True
