"""Attention by segment: outputs and gradients of a dense mask, in every form that a model can have."""

import random
import re
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from cocos.training import tree_attention
from cocos.training.prefix_tree import pack
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


@contextmanager
def at_most(more_bytes):
    """Limit what this process may allocate beyond what it has."""
    status = Path("/proc/self/status").read_text()
    used = re.search(r"VmData:\s+(\d+) kB", status)[1]
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * int(used) + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_contexts_of_8192_tokens_run_where_a_dense_mask_does_not_fit():
    """Four siblings, two turns: a prompt of 4,096 tokens, answers of 2,000 and an instruction of 96."""
    generator = torch.Generator().manual_seed(4)
    prompt, instruction = (torch.randint(2, 9, (n,), generator=generator) for n in (4096, 96))
    rows = torch.zeros(8, 6192 + 2000, dtype=torch.long)  # prompts on the left of 6,192 columns
    mask = torch.zeros_like(rows)
    for sibling in range(4):
        first, second = torch.randint(2, 9, (2, 2000), generator=generator)
        first[0] = 10 + sibling  # siblings share no part of an answer
        transcript = torch.cat([prompt, first, instruction])
        rows[2 * sibling, 6192 - 4096 :] = torch.cat([prompt, first])
        mask[2 * sibling, 6192 - 4096 :] = 1
        rows[2 * sibling + 1] = torch.cat([transcript, second])
        mask[2 * sibling + 1] = 1
    (trees,), _ = pack(rows, mask, 2000)
    # The last token of a transcript is a label only. That of the prompt has a label per sibling.
    assert len(trees) == 4095 + 4 * 4096
    states = [torch.randn(1, heads, len(trees), 8, generator=generator) for heads in (2, 1, 1)]
    with at_most(512 << 20):
        with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
            torch.zeros(len(trees), len(trees))  # 1.6 GiB
        found = results(lambda *qkv: SegmentedAttention(trees.segments()).one_by_one(*qkv, None), states)
    # The last sibling's last 1,999 tokens by hand: they attend to their own transcript only.
    path = torch.cat([torch.arange(4095), torch.arange(len(trees) - 4096, len(trees))])
    assert torch.tensor(trees.position_ids)[path].tolist() == list(range(8191))
    query, key, value = states[0][:, :, -1999:], states[1][:, :, path], states[2][:, :, path]
    causal = torch.ones(1999, 8191, dtype=torch.bool).tril(6192)
    expected = scaled_dot_product_attention(query, key, value, causal, enable_gqa=True)
    torch.testing.assert_close(found[0][:, -1999:], expected.transpose(1, 2), atol=1e-5, rtol=1e-4)
