"""Output layer on a processor: the same loss and gradients from the tokens with a label alone."""

import pytest
import torch
import trl.trainer.utils
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM
from trl.trainer.utils import add_fused_lm_head

from cocos.training.trl_patches import TRL_WIDTH, WIDTH, patch_trl


def loss_gradients_and_flops(model, ids, labels):
    model.zero_grad()
    with FlopCounterMode(display=False) as counter:
        loss = model(input_ids=ids, labels=labels, fused_lm_head=True).loss
        loss.backward()
    return loss.detach(), [weight.grad.clone() for weight in model.parameters()], counter.get_total_flops()


def test_prompts_do_not_pass_the_output_layer_and_loss_and_gradients_stay(monkeypatch):
    names = ("_use_triton", "_CHUNKED_LOGPROB_CHUNK_SIZE")
    for name in names:  # restored at the end
        monkeypatch.setattr(trl.trainer.utils, name, getattr(trl.trainer.utils, name))
    monkeypatch.setattr(trl.trainer.utils, names[1], TRL_WIDTH)
    monkeypatch.setattr(trl.trainer.utils, names[0], lambda device: False)  # TRL's answer on a processor
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
