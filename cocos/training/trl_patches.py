"""Patches of TRL where no method of a trainer reaches: its output layer on a CPU.

TRL computes the log-probabilities of the labels in tiles of tokens times vocabulary, so that the logits never
exist as a whole. Its tiles are made for a GPU, and outside one it also computes the tokens without a label,
whose results it then discards: prompts and padding. Its backward pass computes the logits a second time,
which an output layer that is not trained (LoRA) does not need. Values and gradients change by rounding only.

Axes: n tokens with a label, V vocabulary, H hidden size.
"""

from typing import Any

import torch
import trl.trainer.utils
from trl.kernels import ChunkedLogProbFunction

TRL_WIDTH = 32_768  # of TRL's tiles, in tokens of the vocabulary
WIDTH = 256  # of ours; TRL's do not fit into a processor's cache
FROZEN_WIDTH = 512  # of those of an output layer that is not trained, of which fewer exist at a time


def patch_trl() -> None:
    """Make tiles that fit into a processor's cache, of tokens with a label; no effect with an accelerator."""
    if torch.accelerator.is_available():
        return
    utils = trl.trainer.utils
    assert utils._CHUNKED_LOGPROB_CHUNK_SIZE in (TRL_WIDTH, WIDTH), "TRL's tiles have another width"
    utils._CHUNKED_LOGPROB_CHUNK_SIZE = WIDTH
    assert utils._use_triton is skip_unlabelled or not utils._use_triton(torch.device("cpu"))
    utils._use_triton = skip_unlabelled
    utils._ChunkedLogProbFunction = OutputLayer


def skip_unlabelled(device: torch.device) -> bool:
    """Stand in for TRL's `_use_triton`, which on a CPU only decides whether to skip those tokens."""
    return True


class OutputLayer:
    """Stand-in for TRL's function, which it calls for all but a gradient of the hidden states alone."""

    @staticmethod
    def apply(*arguments: Any) -> tuple[Any, ...]:
        """Return what TRL's function returns: log-probabilities (n), entropies (n), and three more."""
        hidden, weight, bias, targets, temperature, _, softcap, scale, outputs = arguments
        is_frozen = torch.is_grad_enabled() and hidden.requires_grad and not weight.requires_grad
        if is_frozen and bias is None and not softcap and {*outputs} <= {"log_probs", "entropy"}:
            return (*FrozenHead.apply(hidden, weight, targets, scale / temperature), None, None, None)
        return ChunkedLogProbFunction.apply(*arguments)


class FrozenHead(torch.autograd.Function):
    """Log-probabilities of labels under an output layer that is not trained, with their gradients.

    The gradient of log p of a token in its hidden state is the label's row of the weight less the mean row
    under p. That mean is an attention, with the rows of the weight as keys and as values, so one pass over
    the vocabulary gives log p, its gradient and the entropy. The label is left out of the mean: where p is
    almost 1 its row would cancel, and only rounding would be left.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log p of the labels (n) and the entropies (n), which have no gradient themselves."""
        is_autocast = torch.is_autocast_enabled(hidden.device.type)
        dtype = torch.get_autocast_dtype(hidden.device.type) if is_autocast else hidden.dtype
        exact = torch.promote_types(dtype, torch.float32)
        rows, own = hidden.to(dtype), weight[targets].to(exact)  # (n, H)
        target = (rows.to(exact) * own).sum(1).to(dtype).to(exact) * scale  # rounded as the other logits
        largest, others = target.clone(), torch.zeros_like(target)  # (n); others: sum of exp(logit - largest)
        mean = torch.zeros_like(own)  # sum of the same exponentials times rows of the weight (n, H)
        for start in range(0, len(weight), FROZEN_WIDTH):
            piece = weight[start : start + FROZEN_WIDTH].to(dtype)
            tile = (rows @ piece.T).to(exact).mul_(scale)
            labelled = ((targets >= start) & (targets < start + len(piece))).nonzero()[:, 0]
            tile[labelled, targets[labelled] - start] = -torch.inf
            before, largest = largest, torch.maximum(largest, tile.amax(1))
            decay = (before - largest).exp_()
            tile.sub_(largest[:, None]).exp_()
            others.mul_(decay).add_(tile.sum(1))
            mean.mul_(decay[:, None]).addmm_(tile, piece.to(exact))
        total = others + (target - largest).exp()
        log_total = largest + total.log()
        ctx.dtype = hidden.dtype
        gradient = ((others / total)[:, None] * own).sub_(mean.div_(total[:, None])).mul_(scale)
        ctx.save_for_backward(gradient)
        # The mean logit is target - <gradient, hidden>.
        entropies = log_total - target + (gradient * rows.to(exact)).sum(1)
        ctx.mark_non_differentiable(entropies)
        return target - log_total, entropies

    @staticmethod
    def backward(ctx: Any, grad_logps: torch.Tensor, *_: Any) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of the hidden states (n, H)."""
        (gradient,) = ctx.saved_tensors
        return (gradient * grad_logps[:, None]).to(ctx.dtype), None, None, None
