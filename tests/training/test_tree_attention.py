"""Attention by segment: outputs and gradients of a dense mask, in every form that a model can have."""

import random

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from cocos.training import tree_attention
from cocos.training.tree_attention import SegmentedAttention
from tests.training.test_prefix_tree import dense_mask, packed, random_rows


def results(attend, states):
    """Return the output of an attention, and its gradients by query, key and value, for a fixed gradient."""
    leaves = [state.clone().requires_grad_() for state in states]
    output = attend(*leaves)
    weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(5), dtype=output.dtype)
    (output * weight).sum().backward()
    return [output.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(4, 4), (6, 2), (4, 1)])
@pytest.mark.parametrize("chunk", [512, 3])  # segments shorter and longer than a chunk
def test_it_equals_a_dense_mask(monkeypatch, num_heads, num_kv_heads, chunk):
    monkeypatch.setattr(tree_attention, "CHUNK", chunk)
    chance, generator = random.Random(2), torch.Generator().manual_seed(2)
    for _ in range(8):
        trees, _ = packed(*random_rows(chance, 1, chance.randint(2, 4), chance.randint(1, 3)))
        states = [
            torch.randn(1, heads, len(trees), 8, generator=generator, dtype=torch.float64)
            for heads in (num_heads, num_kv_heads, num_kv_heads)
        ]
        segmented = SegmentedAttention(trees.segments())
        mask = dense_mask(trees)

        def dense(query, key, value, mask=mask):
            output = scaled_dot_product_attention(query, key, value, mask, scale=0.3, enable_gqa=True)
            return output.transpose(1, 2)

        for found, expected in zip(
            results(lambda *qkv, by=segmented: by.one_by_one(*qkv, 0.3), states),
            results(dense, states),
            strict=True,
        ):
            torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)


def test_the_one_call_gets_each_segment_with_the_keys_of_its_path(monkeypatch):
    """The kernel needs a GPU; this stand-in computes what its documentation says, sequence by sequence."""
    calls = []

    def by_the_documentation(query, key, value, query_ends, key_ends, max_q, max_k, *, scale, window_size):
        assert window_size == (-1, 0) and query.size(1) == key.size(1)
        calls.append((max_q, max_k))
        outputs = []
        for (q0, q1), (k0, k1) in zip(
            query_ends.unfold(0, 2, 1).tolist(), key_ends.unfold(0, 2, 1).tolist(), strict=True
        ):
            assert q1 - q0 <= max_q and k1 - k0 <= max_k
            causal = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool).tril(k1 - k0 - (q1 - q0))
            parts = (states.transpose(0, 1) for states in (query[q0:q1], key[k0:k1], value[k0:k1]))
            outputs.append(scaled_dot_product_attention(*parts, causal, scale=scale).transpose(0, 1))
        return torch.cat(outputs)

    monkeypatch.setattr(tree_attention, "varlen_attn", by_the_documentation)
    trees, _ = packed(*random_rows(random.Random(3), 3, 4, 2))
    generator = torch.Generator().manual_seed(3)
    states = [torch.randn(1, h, len(trees), 8, generator=generator, dtype=torch.float64) for h in (4, 2, 2)]
    segmented = SegmentedAttention(trees.segments())
    for found, expected in zip(
        results(lambda *qkv: segmented.in_one_call(*qkv, None), states),
        results(lambda *qkv: segmented.one_by_one(*qkv, None), states),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)
    assert len(calls) == 1
