"""Layout of rows as prefix trees: by hand, and as an invariant over random rows."""

import random
from itertools import accumulate

import torch

from cocos.training.prefix_tree import IGNORED, MIN_SHARED, Segments, pack


def packed_passes(*rows, max_tokens):
    """Return the trees of passes and the index of rows, pairs (prompt, completion), padded as TRL pads."""
    num_prompt, num_completion = (max(len(row[part]) for row in rows) for part in (0, 1))
    input_ids = torch.zeros(len(rows), num_prompt + num_completion, dtype=torch.long)
    mask = torch.zeros_like(input_ids)
    for number, (prompt, completion) in enumerate(rows):
        real = slice(num_prompt - len(prompt), num_prompt + len(completion))
        input_ids[number, real] = torch.tensor([*prompt, *completion])
        mask[number, real] = 1
    return pack(input_ids, mask, num_completion, max_tokens)


def packed(*rows):
    """Return the trees of rows, which a single pass has, and their index."""
    (trees,), index = packed_passes(*rows, max_tokens=10**9)
    return trees, index


def dense_mask(trees):
    """Return which tokens attend to which, shape (n, n): token q to token k if k <= q <= last_descendant[k]."""
    place = torch.arange(len(trees))
    return (place <= place[:, None]) & (place[:, None] <= torch.tensor(trees.last_descendant))


def attended(trees, place):
    """Return the token ids that a token attends to."""
    return torch.tensor(trees.input_ids)[dense_mask(trees)[place]].tolist()


def test_siblings_share_their_prompt_and_repeat_the_token_before_they_part():
    # The prompt 1 2 3 is followed by 4 5 in two rows and by 6 in one. Its last token needs two labels, 4 and 6.
    # The last tokens, 5 and 6, predict nothing.
    trees, index = packed(([1, 2, 3], [6]), ([1, 2, 3], [4, 5]), ([1, 2, 3], [4, 5]))
    assert trees.input_ids == [1, 2, 3, 4, 3]
    assert trees.position_ids == [0, 1, 2, 3, 2]
    assert trees.labels == [IGNORED, IGNORED, 4, 5, 6]
    assert trees.last_descendant == [4, 4, 3, 3, 4]
    assert attended(trees, 3) == [1, 2, 3, 4] and attended(trees, 4) == [1, 2, 3]
    assert index.tolist() == [[4, 0], [2, 3], [2, 3]]
    assert trees.segments() == Segments([2, 2, 1], [(0,), (0, 1), (0, 2)])


def test_the_picture_of_the_module():
    a, b, c, d, e, f, g = range(1, 8)
    trees, _ = packed(([a, b, c], [d, e]), ([a, b, c], [d, f]), ([a, b, c], [g]))
    assert trees.input_ids == [a, b, c, d, d, c] and trees.position_ids == [0, 1, 2, 3, 3, 2]
    assert trees.labels == [IGNORED, IGNORED, d, e, f, g]
    assert trees.segments() == Segments([2, 1, 1, 1, 1], [(0,), (0, 1), (0, 1, 2), (0, 1, 3), (0, 4)])


def test_the_next_turn_continues_the_turn_before_it():
    # Turn 1: prompt 1 2, answer 3 4. Turn 2: prompt 1 2 3 4 9, answer 5. Nothing is repeated.
    trees, index = packed(([1, 2], [3, 4]), ([1, 2, 3, 4, 9], [5]))
    assert trees.input_ids == [1, 2, 3, 4, 9]
    assert trees.labels == [IGNORED, 3, 4, IGNORED, 5]
    assert index.tolist() == [[1, 2], [4, 0]]
    assert trees.segments() == Segments([5], [(0,)])


def test_an_empty_completion_has_no_label():
    trees, index = packed(([1], []), ([1, 2], []), ([1, 2], [3]), ([1, 4], [5]))
    assert trees.input_ids == [1, 2, 1, 4]  # the pad token 1 joins no trees
    assert trees.position_ids == [0, 1, 0, 1]
    assert trees.labels == [IGNORED, 3, IGNORED, 5]
    assert index.tolist() == [[0], [0], [1], [3]]


def test_rows_without_any_completion_are_one_token_without_label():
    input_ids, mask = torch.tensor([[7, 0], [7, 0]]), torch.tensor([[1, 0], [1, 0]])
    (trees,), index = pack(input_ids, mask, 1)
    assert (trees.input_ids, trees.labels) == ([7], [IGNORED])
    assert attended(trees, 0) == [7] and index.tolist() == [[0], [0]]


def test_prompts_of_two_problems_do_not_share_a_short_beginning():
    trees, index = packed(([1, 7], [8, 2]), ([1, 2, 3], [4, 5, 6]), ([1, 9, 9], []))
    assert trees.input_ids == [1, 2, 3, 4, 5, 1, 7, 8, 1, 9]
    assert attended(trees, 7) == [1, 7, 8] and attended(trees, 9) == [1, 9]
    assert index.tolist() == [[6, 7, 0], [2, 3, 4], [0, 0, 0]]
    assert trees.segments() == Segments([5, 3, 2], [(0,), (1,), (2,)])


def test_prompts_of_two_problems_share_a_long_beginning():
    examples = list(range(100, 100 + MIN_SHARED))
    rows = ([*examples, 1, 2], [3]), ([*examples, 1, 2], [4]), ([*examples, 5], [6])
    trees, index = packed(*rows)
    assert trees.input_ids == [*examples, 1, 2, 2, examples[-1], 5]
    assert attended(trees, len(trees) - 1) == [*examples, 5]
    assert index[:, 0].tolist() == [MIN_SHARED + 1, MIN_SHARED + 2, MIN_SHARED + 4]
    assert len(packed(*((prompt[1:], completion) for prompt, completion in rows))[0]) == 2 * MIN_SHARED + 2


def test_a_pass_ends_before_a_row_that_exceeds_its_limit():
    rows = ([1, 2], [3]), ([4, 5], [6, 6]), ([4, 5], [6, 7]), ([8, 9], [9])
    passes, index = packed_passes(*rows, max_tokens=5)
    assert [trees.input_ids for trees in passes] == [[1, 2, 4, 5, 6], [4, 5, 6, 8, 9]]
    assert index.tolist() == [[1, 0], [3, 4], [6, 7], [9, 0]]
    assert passes[1].last_descendant == [2, 2, 2, 4, 4]
    assert [len(trees) for trees in packed_passes(*rows, max_tokens=1)[0]] == [2, 3, 3, 2]


def test_a_row_that_adds_no_token_begins_no_pass():
    long = ([1, 2], [3, 4, 5])
    passes, index = packed_passes(long, long, ([9], []), max_tokens=2)
    assert [trees.input_ids for trees in passes] == [[1, 2, 3, 4]]
    assert index.tolist() == [[1, 2, 3], [1, 2, 3], [0, 0, 0]]


def random_rows(chance, num_problems, group_size, num_turns):
    """Return rows as training makes them: shared examples, siblings, turns, equal and empty completions."""

    def tokens(low, high):
        return [chance.randrange(5, 600) for _ in range(chance.randint(low, high))]

    rows = []
    examples = tokens(5, 20) * chance.choice([1, MIN_SHARED])
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
        has_long_examples = min(len(prompt) for prompt, _ in rows) >= MIN_SHARED
        num_roots = packed(*rows)[0].position_ids.count(0)
        assert num_roots == (1 if has_long_examples else num_problems)
        longest = max(len(prompt) + len(completion) for prompt, completion in rows)
        passes, index = packed_passes(*rows, max_tokens=longest * chance.randint(1, 9))
        assert all(len(trees) <= longest * 9 for trees in passes)
        places = [(trees, place) for trees in passes for place in range(len(trees))]
        num_labels = sum(trees.labels[place] != IGNORED for trees, place in places)
        assert len(set(index[index > 0].tolist())) == num_labels
        allowed = {id(trees): dense_mask(trees) for trees in passes}
        for (prompt, completion), numbers in zip(rows, index.tolist(), strict=True):
            for place, number in enumerate(numbers[: len(completion)]):
                trees, token = places[number]
                seen = allowed[id(trees)][token]
                assert trees.labels[token] == completion[place]
                assert torch.tensor(trees.input_ids)[seen].tolist() == prompt + completion[:place]
                assert torch.tensor(trees.position_ids)[seen].tolist() == [*range(len(prompt) + place)]


def test_segments_attend_to_what_the_mask_allows():
    chance = random.Random(1)
    for _ in range(40):
        trees, _ = packed(
            *random_rows(chance, chance.randint(1, 3), chance.randint(2, 4), chance.randint(1, 3))
        )
        segments, allowed = trees.segments(), dense_mask(trees)
        starts = [0, *accumulate(segments.lengths)]
        assert starts[-1] == len(trees)
        for path in segments.paths:
            tokens = [token for number in path for token in range(starts[number], starts[number + 1])]
            for token in range(starts[path[-1]], starts[path[-1] + 1]):
                assert [t for t in tokens if t <= token] == allowed[token].nonzero()[:, 0].tolist()
