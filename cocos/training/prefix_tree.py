"""Prefix trees of token rows: each token that rows share is laid out, and computed, once.

Rows of one problem repeat its prompt for every sibling, and every turn's row repeats the turns before it. A
tree repeats nothing. It is packed in depth-first order, so the tokens below a token follow it without a gap,
and two numbers per token describe the attention: its place k, and the place of its last descendant. The token
at place q attends to the token at place k if k <= q <= last_descendant[k].

    rows     a b c | d e            (prompt | completion)      a b c | d e        a b c | f
    packed   a b c d e c' f         c is repeated, because each token has one label, the next token
    depth    0 1 2 3 4 2  3

Knows token ids only: no model, no loss. Axes: R rows, C completion tokens, M packed sequences of N tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch

IGNORED = -100  # label of a token whose successor is not scored, as in transformers


class Row(NamedTuple):
    """Token ids of one row; `ids[prompt_length:]` are scored."""

    ids: list[int]
    prompt_length: int


@dataclass(frozen=True)
class PackedTrees:
    """Trees packed into sequences of equal length.

    Attributes:
        input_ids: Token ids, 0 in the padding. Shape (M, N).
        position_ids: Depth of each token in its tree, which is its position in its rows. Shape (M, N).
        last_descendant: Place of each token's last descendant in its sequence. Shape (M, N).
        labels: Token that follows, or IGNORED if it is not scored. Shape (M, N).
        index: For each completion token the place, in the flattened (M * N), whose label it is; 0 in the
            padding. Shape (R, C).

    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    last_descendant: torch.Tensor
    labels: torch.Tensor
    index: torch.Tensor

    def __getitem__(self, sequences: slice) -> "PackedTrees":
        """Return some of the sequences. `index` stays as it is."""
        return PackedTrees(
            self.input_ids[sequences],
            self.position_ids[sequences],
            self.last_descendant[sequences],
            self.labels[sequences],
            self.index,
        )

    def to(self, device: torch.device) -> "PackedTrees":
        """Return the same trees on a device."""
        return PackedTrees(*(getattr(self, field.name).to(device) for field in fields(self)))

    def attention_mask(self) -> torch.Tensor:
        """Return which tokens attend to which, as booleans. Shape (M, 1, N, N)."""
        place = torch.arange(self.input_ids.size(1), device=self.input_ids.device)
        query, key = place[:, None], place[None, :]
        return ((key <= query) & (query <= self.last_descendant[:, None, :]))[:, None]


class _Tree:
    """Tree under construction: one packed list of tokens, and the path of the row that was added last."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.depths: list[int] = []
        self.last_descendants: list[int] = []
        self.labels: list[int] = []
        self.paths: dict[int, list[int]] = {}  # number of a row -> places of its tokens
        self._path: list[int] = []

    def add(self, number: int, row: Row, num_shared: int) -> None:
        """Add a row, which shares its first `num_shared` tokens with the row that was added last.

        Rows must arrive in lexicographic order.
        """
        is_repeated = num_shared == len(row.ids)
        if num_shared and not is_repeated and self.labels[self._path[num_shared - 1]] != IGNORED:
            num_shared -= 1  # the last shared token has a label already; repeat it for this row's label
        for place in self._path[num_shared:]:
            self.last_descendants[place] = len(self.ids) - 1
        new = range(num_shared, len(row.ids))
        self._path = self._path[:num_shared] + [len(self.ids) + i for i in range(len(new))]
        self.ids += row.ids[num_shared:]
        self.depths += new
        self.labels += [IGNORED] * len(new)
        self.last_descendants += [-1] * len(new)
        for depth in range(row.prompt_length - 1, len(row.ids) - 1):
            self.labels[self._path[depth]] = row.ids[depth + 1]
        self.paths[number] = self._path

    def close(self) -> None:
        """Set the last descendants of the row that was added last."""
        for place in self._path:
            self.last_descendants[place] = len(self.ids) - 1


def pack(rows: Sequence[Row], num_completion_tokens: int) -> PackedTrees:
    """Lay out rows as trees and pack the trees into sequences as long as the largest tree.

    Rows share a tree if the whole prompt of one is the beginning of the other. So a tree belongs to one
    problem. Examples that all prompts begin with do not join the trees: the attention would become large.

    Args:
        rows: Rows in any order; every prompt has at least one token.
        num_completion_tokens: Width of `index`; at least the length of the longest completion.

    """
    trees = _trees(rows)
    length = max(len(tree.ids) for tree in trees)
    sequences: list[list[_Tree]] = []
    free: list[int] = []
    for tree in sorted(trees, key=lambda tree: -len(tree.ids)):  # first fit, the largest first
        size = len(tree.ids)
        chosen = next((i for i, space in enumerate(free) if size <= space), None)
        if chosen is None:
            chosen = len(sequences)
            sequences.append([])
            free.append(length)
        sequences[chosen].append(tree)
        free[chosen] -= size
    shape = (len(sequences), length)
    input_ids, position_ids = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    labels = torch.full(shape, IGNORED)
    last_descendant = torch.arange(length).repeat(len(sequences), 1)  # padding attends to itself alone
    index = torch.zeros(len(rows), num_completion_tokens, dtype=torch.long)
    for number, sequence in enumerate(sequences):
        start = 0
        for tree in sequence:
            part = slice(start, start + len(tree.ids))
            input_ids[number, part] = torch.tensor(tree.ids)
            position_ids[number, part] = torch.tensor(tree.depths)
            labels[number, part] = torch.tensor(tree.labels)
            last_descendant[number, part] = torch.tensor(tree.last_descendants) + start
            for row_number, path in tree.paths.items():
                scored = torch.tensor(path[rows[row_number].prompt_length - 1 : -1], dtype=torch.long)
                index[row_number, : len(scored)] = scored + start + number * length
            start = part.stop
    return PackedTrees(input_ids, position_ids, last_descendant, labels, index)


def _trees(rows: Sequence[Row]) -> list[_Tree]:
    """Return the trees of rows, in lexicographic order."""
    trees: list[_Tree] = []
    previous = None
    for number in sorted(range(len(rows)), key=lambda number: rows[number].ids):
        row = rows[number]
        num_shared = _num_shared(previous.ids, row.ids) if previous else 0
        if not previous or num_shared < min(previous.prompt_length, row.prompt_length):
            trees.append(_Tree())
            num_shared = 0
        trees[-1].add(number, row, num_shared)
        previous = row
    for tree in trees:
        tree.close()
    return trees


def _num_shared(first: list[int], second: list[int]) -> int:
    """Return the length of the common prefix."""
    pairs = zip(first, second, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
