"""Output layer of TRL's trainers on a processor.

TRL computes the log-probabilities of the labels in tiles of tokens times vocabulary, so that the logits never
exist as a whole. Its tiles are made for a GPU, and outside one it also computes the tokens without a label,
whose results it then discards: prompts and padding. Here both are changed, by two names of
`trl.trainer.utils`. Values and gradients change by rounding only.
"""

import torch
import trl.trainer.utils

TRL_WIDTH = trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE
WIDTH = 256  # of a tile, in tokens of the vocabulary; TRL's 32,768 do not fit into a processor's cache


def narrow_tiles() -> None:
    """Compute tiles that fit into a processor's cache, unless there is an accelerator."""
    if not torch.accelerator.is_available():
        trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE = WIDTH


def skip_unlabelled(vocab_size: int) -> None:
    """Compute tokens with a label only, in narrow tiles, unless there is an accelerator.

    A vocabulary that is one tile of TRL's costs little, and is left as it is.

    Args:
        vocab_size: Number of tokens in the vocabulary.

    """
    if vocab_size > TRL_WIDTH and not torch.accelerator.is_available():
        narrow_tiles()
        trl.trainer.utils._use_triton = lambda device: True  # there it only decides whether to skip
