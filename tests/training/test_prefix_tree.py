"""Layout of rows as prefix trees: by hand, and as an invariant over random rows."""

import random

import torch

from cocos.training.prefix_tree import IGNORED, Row, pack


def attended(packed, place):
    """Return the token ids that the token at a place of the first sequence attends to."""
    allowed = packed.attention_mask()[0, 0, place]
    return packed.input_ids[0][allowed].tolist()


def test_siblings_share_their_prompt_and_repeat_the_token_before_they_part():
    # The prompt 1 2 3 is followed by 4 5 in two rows and by 6 in one. Its last token needs two labels, 4 and 6.
    rows = [Row([1, 2, 3, 6], 3), Row([1, 2, 3, 4, 5], 3), Row([1, 2, 3, 4, 5], 3)]
    packed = pack(rows, 2)
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 5, 3, 6]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 4, 2, 3]]
    assert packed.labels.tolist() == [[IGNORED, IGNORED, 4, 5, IGNORED, 6, IGNORED]]
    assert packed.last_descendant.tolist() == [[6, 6, 4, 4, 4, 6, 6]]
    assert attended(packed, 4) == [1, 2, 3, 4, 5] and attended(packed, 6) == [1, 2, 3, 6]
    assert packed.index.tolist() == [[5, 0], [2, 3], [2, 3]]


def test_the_next_turn_continues_the_turn_before_it():
    # Turn 1: prompt 1 2, answer 3 4. Turn 2: prompt 1 2 3 4 9, answer 5. Nothing is repeated.
    packed = pack([Row([1, 2, 3, 4], 2), Row([1, 2, 3, 4, 9, 5], 5)], 2)
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 9, 5]]
    assert packed.labels.tolist() == [[IGNORED, 3, 4, IGNORED, 5, IGNORED]]
    assert packed.index.tolist() == [[1, 2], [4, 0]]


def test_an_empty_completion_has_no_label():
    packed = pack([Row([1, 2], 2), Row([1, 2, 3], 2)], 1)
    assert packed.input_ids.tolist() == [[1, 2, 3]]
    assert packed.labels.tolist() == [[IGNORED, 3, IGNORED]]


def test_trees_of_different_problems_share_a_sequence_but_see_nothing_of_each_other():
    packed = pack([Row([1, 2, 3, 4, 5, 6], 3), Row([1, 7, 8], 2), Row([1, 9, 3], 2)], 3)
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 5, 6], [1, 7, 8, 1, 9, 3]]
    assert packed.attention_mask()[1, 0, 5].tolist() == [False] * 3 + [True] * 3


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
                rows.append(Row(context + answer, len(context)))
                context = context + answer + [sibling % 2, *tokens(0, 5)]
    chance.shuffle(rows)
    return rows


def test_every_row_can_be_read_off_its_tree():
    chance = random.Random(0)
    for _ in range(40):
        rows = random_rows(chance, chance.randint(1, 4), chance.randint(2, 4), chance.randint(1, 3))
        longest = max(len(row.ids) - row.prompt_length for row in rows)
        packed = pack(rows, longest)
        allowed = packed.attention_mask()[:, 0]
        labels, length = packed.labels.flatten(), packed.input_ids.size(1)
        for row, places in zip(rows, packed.index.tolist(), strict=True):
            scored = row.ids[row.prompt_length :]
            for number, place in enumerate(places[: len(scored)]):
                sequence, column = divmod(place, length)
                seen = allowed[sequence, column]
                assert labels[place] == scored[number]
                assert packed.input_ids[sequence][seen].tolist() == row.ids[: row.prompt_length + number]
                depths = packed.position_ids[sequence][seen]
                assert torch.equal(depths, torch.arange(len(depths)))
