"""Layout of rows as prefix trees: by hand, and as an invariant over random rows."""

import random
import warnings

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from cocos.training.prefix_tree import IGNORED, pack


def packed(*rows):
    """Return the trees and the index of rows, pairs (prompt, completion), padded as TRL pads them."""
    num_prompt, num_completion = (max(len(row[part]) for row in rows) for part in (0, 1))
    input_ids = torch.zeros(len(rows), num_prompt + num_completion, dtype=torch.long)
    mask = torch.zeros_like(input_ids)
    for number, (prompt, completion) in enumerate(rows):
        real = slice(num_prompt - len(prompt), num_prompt + len(completion))
        input_ids[number, real] = torch.tensor([*prompt, *completion])
        mask[number, real] = 1
    return pack(input_ids, mask, num_completion)


def attended(trees, place):
    """Return the token ids that the token at a place of the first tree attends to."""
    allowed = trees.attention_mask()[0, 0, place]
    return trees.input_ids[0][allowed].tolist()


def test_siblings_share_their_prompt_and_repeat_the_token_before_they_part():
    # The prompt 1 2 3 is followed by 4 5 in two rows and by 6 in one. Its last token needs two labels, 4 and 6.
    # The last tokens, 5 and 6, predict nothing.
    trees, index = packed(([1, 2, 3], [6]), ([1, 2, 3], [4, 5]), ([1, 2, 3], [4, 5]))
    assert trees.input_ids.tolist() == [[1, 2, 3, 4, 3]]
    assert trees.position_ids.tolist() == [[0, 1, 2, 3, 2]]
    assert trees.labels.tolist() == [[IGNORED, IGNORED, 4, 5, 6]]
    assert trees.last_descendant.tolist() == [[4, 4, 3, 3, 4]]
    assert attended(trees, 3) == [1, 2, 3, 4] and attended(trees, 4) == [1, 2, 3]
    assert index.tolist() == [[4, 0], [2, 3], [2, 3]]


def test_the_next_turn_continues_the_turn_before_it():
    # Turn 1: prompt 1 2, answer 3 4. Turn 2: prompt 1 2 3 4 9, answer 5. Nothing is repeated.
    trees, index = packed(([1, 2], [3, 4]), ([1, 2, 3, 4, 9], [5]))
    assert trees.input_ids.tolist() == [[1, 2, 3, 4, 9]]
    assert trees.labels.tolist() == [[IGNORED, 3, 4, IGNORED, 5]]
    assert index.tolist() == [[1, 2], [4, 0]]


def test_an_empty_completion_has_no_label():
    trees, index = packed(([1], []), ([1, 2], []), ([1, 2], [3]), ([1, 4], [5]))
    assert trees.input_ids.tolist() == [[1, 2], [1, 4]]  # the pad token 1 joins no trees
    assert trees.labels.tolist() == [[IGNORED, 3], [IGNORED, 5]]
    assert index.tolist() == [[0], [0], [1], [3]]


def test_rows_without_any_completion_are_one_token_without_label():
    input_ids, mask = torch.tensor([[7, 0], [7, 0]]), torch.tensor([[1, 0], [1, 0]])
    trees, index = pack(input_ids, mask, 1)
    assert (trees.input_ids.tolist(), trees.labels.tolist()) == ([[7]], [[IGNORED]])
    assert attended(trees, 0) == [7] and index.tolist() == [[0], [0]]


def test_every_problem_has_a_tree_of_its_own_although_all_prompts_begin_alike():
    trees, index = packed(([1, 7], [8, 2]), ([1, 2, 3], [4, 5, 6]), ([1, 9, 9], []))
    assert trees.input_ids.tolist() == [[1, 2, 3, 4, 5], [1, 7, 8, 0, 0], [1, 9, 0, 0, 0]]
    assert trees.attention_mask()[1, 0, 2].tolist() == [True] * 3 + [False] * 2
    assert trees.attention_mask().any(-1).all()  # a row without any key would give NaN
    assert index.tolist() == [[6, 7, 0], [2, 3, 4], [0, 0, 0]]


def test_a_part_has_some_of_the_trees():
    trees, _ = packed(([1, 2], [3]), ([4, 5], [6]), ([7, 8], [9]))
    assert [part.labels.tolist() for part in trees.split(2)] == [[[IGNORED, 3], [IGNORED, 6]], [[IGNORED, 9]]]


def test_flex_attention_skips_the_blocks_of_other_branches():
    # A prompt and two answers of 250 tokens: from place 250 on, the second answer does not see the first.
    prompt, first, second = list(range(10)), list(range(10, 260)), list(range(260, 510))
    trees, _ = packed((prompt, first), (prompt, second), (prompt, first[:7]))
    query, key, value = torch.randn(3, 1, 2, trees.input_ids.size(1), 16, dtype=torch.float64)
    blocks, mask = trees.attention_mask(in_blocks=True), trees.attention_mask()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without compilation it is slow
        found = flex_attention(query, key, value, block_mask=blocks)
    torch.testing.assert_close(found, scaled_dot_product_attention(query, key, value, mask))
    causal = create_block_mask(lambda b, h, q, k: k <= q, None, None, *mask.shape[-2:], device="cpu")
    assert blocks.sparsity() > causal.sparsity() > 0


def random_rows(chance, num_problems, group_size, num_turns):
    """Return rows as training makes them: shared examples, siblings, turns, equal and empty completions."""

    def tokens(low, high):
        return [chance.randrange(5, 600) for _ in range(chance.randint(low, high))]

    rows = []
    examples = tokens(5, 20)
    for _ in range(num_problems):
        prompt = examples + tokens(1, 30)
        answers = [tokens(0, 12) for _ in range(group_size)]
        for sibling in range(group_size):
            context = list(prompt)
            for turn in range(num_turns):
                answer = chance.choice(answers) if turn == 0 else tokens(0, 12)
                rows.append((context, answer))
                context = context + answer + [sibling % 2, *tokens(0, 5)]
    chance.shuffle(rows)
    return rows


def test_every_row_can_be_read_off_its_tree():
    chance = random.Random(0)
    for _ in range(40):
        num_problems = chance.randint(1, 4)
        rows = random_rows(chance, num_problems, chance.randint(2, 4), chance.randint(1, 3))
        trees, index = packed(*rows)
        assert len(trees.input_ids) == num_problems
        allowed = trees.attention_mask()[:, 0]
        labels, length = trees.labels.flatten(), trees.input_ids.size(1)
        assert len(set(index[index > 0].tolist())) == (labels != IGNORED).sum()
        for (prompt, completion), places in zip(rows, index.tolist(), strict=True):
            for number, place in enumerate(places[: len(completion)]):
                tree, column = divmod(place, length)
                seen = allowed[tree, column]
                assert labels[place] == completion[number]
                assert trees.input_ids[tree][seen].tolist() == prompt + completion[:number]
                depths = trees.position_ids[tree][seen]
                assert torch.equal(depths, torch.arange(len(depths)))
