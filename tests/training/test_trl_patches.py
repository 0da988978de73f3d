"""Output layer on a processor: the same loss and gradients from the tokens with a label alone."""

import pytest
import torch
import trl.trainer.utils
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM
from trl.kernels import ChunkedLogProbFunction
from trl.trainer.utils import add_fused_lm_head

from cocos.training.trl_patches import TRL_WIDTH, WIDTH, OutputLayer, patch_trl


def loss_gradients_and_flops(model, ids, labels):
    model.zero_grad()
    with FlopCounterMode(display=False) as counter:
        loss = model(input_ids=ids, labels=labels, fused_lm_head=True).loss
        loss.backward()
    return loss.detach(), [weight.grad.clone() for weight in model.parameters()], counter.get_total_flops()


@pytest.fixture
def unpatched(monkeypatch):
    """TRL as it is on a processor; at the end it is as before."""
    monkeypatch.setattr(trl.trainer.utils, "_use_triton", lambda device: False)
    monkeypatch.setattr(trl.trainer.utils, "_CHUNKED_LOGPROB_CHUNK_SIZE", TRL_WIDTH)
    monkeypatch.setattr(trl.trainer.utils, "_ChunkedLogProbFunction", ChunkedLogProbFunction)


def test_prompts_do_not_pass_the_output_layer_and_loss_and_gradients_stay(unpatched):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=TRL_WIDTH + 100, **sizes))
    add_fused_lm_head(model)
    ids = torch.randint(0, TRL_WIDTH + 100, (3, 40))
    labels = ids.clone()
    labels[:, :36] = -100

    loss, gradients, flops = loss_gradients_and_flops(model, ids, labels)
    patch_trl()
    assert trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE == WIDTH
    new_loss, new_gradients, new_flops = loss_gradients_and_flops(model, ids, labels)

    torch.testing.assert_close(new_loss, loss)
    torch.testing.assert_close(new_gradients, gradients)
    assert new_flops < flops / 5


def test_another_version_of_trl_is_found_out(monkeypatch):
    monkeypatch.setattr(trl.trainer.utils, "_CHUNKED_LOGPROB_CHUNK_SIZE", 4096)
    with pytest.raises(AssertionError, match="another width"):
        patch_trl()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_an_output_layer_that_is_not_trained_gives_the_gradients_of_the_whole_softmax(dtype):
    torch.manual_seed(0)
    weight, hidden = torch.randn(1300, 16).to(dtype), torch.randn(9, 16).to(dtype).requires_grad_()
    targets = torch.tensor([0, 511, 512, 1299, *torch.randint(0, 1300, (5,)).tolist()])
    with torch.no_grad():  # labels that are almost certain, and one whose exponential overflows
        hidden[1:3] = weight[targets[1:3]] * torch.tensor([[1.0], [20.0]])
    arguments = (hidden, weight, None, targets, 0.8, 256, None, 0.5, ("log_probs", "entropy"))
    exact = hidden.detach().double().requires_grad_()
    expected = (exact @ weight.double().T * (0.5 / 0.8)).log_softmax(-1)
    weights = torch.linspace(-1, 1, 9)
    (expected.gather(1, targets[:, None])[:, 0] * weights).sum().backward()

    logps, entropies, *others = OutputLayer.apply(*arguments)
    with FlopCounterMode(display=False) as counter:
        (logps * weights).sum().backward()

    assert counter.get_total_flops() == 0 and others == [None] * 3
    size = {torch.float64: 1e-7, torch.float32: 1e-4, torch.bfloat16: 0.1}[dtype]
    near = {"rtol": max(size, 1e-5), "atol": max(size, 1e-5), "check_dtype": False}
    close = {"rtol": size, "atol": size, "check_dtype": False}
    torch.testing.assert_close(logps, expected.gather(1, targets[:, None])[:, 0], **close)
    torch.testing.assert_close(entropies, -(expected * expected.exp()).sum(1), **close)
    torch.testing.assert_close(hidden.grad, exact.grad, **close)
    with torch.no_grad():  # TRL's, which the passes before an update call
        torch.testing.assert_close(OutputLayer.apply(*arguments)[:2], (logps, entropies), **near)
