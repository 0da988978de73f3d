"""Prefix trees of token rows: each token that rows share is laid out, and computed, once.

Rows of one problem repeat its prompt for every sibling, and every turn's row repeats the turns before it. A
tree repeats only the token before rows part, because each place has one label, the token that follows. The
last token of a row predicts nothing and is left out. Prompts of two problems share what they begin with if
it is long, as few-shot examples are.

    rows       a b c | d e     a b c | d f     a b c | g       (prompt | completion)
    tokens     a b c d d c     in depth-first order
    labels     - - d e f g     - is not scored
    depth      0 1 2 3 3 2     the position in the row
    segments   0 0 1 2 3 4     runs without a branch; the path of the last one is 0, 4

In depth-first order the descendants of a token follow it without a gap. So one number per token describes the
attention: token q attends to token k if k <= q <= last_descendant[k]. The same in segments: a token attends
to its own segment up to itself, and to all of the segments on its path from the root.

Knows token ids only: no model, no loss. Axes: R rows of L tokens, C completion tokens; n tokens of a pass.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch

IGNORED = -100  # label of a token whose successor is not scored, as in transformers
MIN_SHARED = 128  # tokens that prompts of two problems share; for fewer, a branch more does not pay


@dataclass
class Trees:
    """Trees of one pass, one after another, each in depth-first order."""

    input_ids: list[int] = field(default_factory=list)  # token ids; length n
    position_ids: list[int] = field(default_factory=list)  # depth of each token: its position in its rows
    last_descendant: list[int] = field(default_factory=list)  # number of its last descendant, or its own
    labels: list[int] = field(default_factory=list)  # token that follows, or IGNORED if it is not scored

    def __len__(self) -> int:
        """Return the number of tokens, n."""
        return len(self.input_ids)

    def segments(self) -> "Segments":
        """Return the runs of tokens without a branch, and the path of each from its root."""
        n = len(self)
        # A token continues the run if it is the only child of the token before it.
        is_only_child = (
            last == next_last and next_depth == depth + 1
            for (last, next_last), (depth, next_depth) in zip(
                pairwise(self.last_descendant), pairwise(self.position_ids), strict=True
            )
        )
        starts = [0, *(place for place, is_only in enumerate(is_only_child, start=1) if not is_only)]
        paths: list[tuple[int, ...]] = []
        for number, start in enumerate(starts):
            path = paths[-1] if paths else ()
            while path and self.last_descendant[starts[path[-1]]] < start:
                path = path[:-1]
            paths.append((*path, number))
        return Segments([end - start for start, end in pairwise([*starts, n])], paths)


@dataclass(frozen=True)
class Segments:
    """Runs of tokens without a branch, of all trees, in the order of the tokens."""

    lengths: list[int]  # tokens of each segment
    paths: list[tuple[int, ...]]  # numbers of the segments from the root to each one, itself the last


def pack(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    num_completion_tokens: int,
    max_tokens: float = math.inf,
) -> tuple[list[Trees], torch.Tensor]:
    """Lay out padded rows as trees, on the processor.

    Rows share what they begin with if it is the shortest prompt among them, or MIN_SHARED tokens.

    Args:
        input_ids: Token ids; prompts are padded on the left, completions on the right. Shape (R, L).
        attention_mask: 0 in the padding. Shape (R, L).
        num_completion_tokens: Width of the completions, C.
        max_tokens: Limit of a pass, which only a single row exceeds. The next row begins another one.

    Returns:
        The trees of each pass, and for each completion token the number, over all passes, of the token whose
        label it is; 0 in the padding. Shape (R, C); on the processor.

    """
    rows = [
        (ids[is_real].tolist(), int(is_real[:-num_completion_tokens].sum()))
        for ids, is_real in zip(input_ids.cpu(), attention_mask.bool().cpu(), strict=True)
    ]
    trees = Trees()
    passes, first = [trees], 0  # number of the first token of the pass
    index = torch.zeros(len(rows), num_completion_tokens, dtype=torch.long)
    previous: list[int] = []
    path: list[int] = []  # numbers of the previous row's tokens, within the pass
    shortest_prompt = 0  # of the rows that share
    # In lexicographic order, a row shares its longest prefix with the row before it.
    for row in sorted(range(len(rows)), key=lambda row: rows[row][0]):
        ids, prompt_length = rows[row]
        num_shared = _common_prefix(previous, ids)
        # A turn that was not sampled has one pad token as its prompt, with which all prompts may begin.
        if num_shared < min(MIN_SHARED, max(2, min(shortest_prompt, prompt_length))):
            num_shared, shortest_prompt = 0, prompt_length
        shortest_prompt = min(shortest_prompt, prompt_length)
        # Rows share a token if they share its successor too, which is its label.
        path = path[: max(0, num_shared - 1)]
        num_new = len(ids) - 1 - len(path)  # 0 of a turn that was not sampled: it needs no pass
        if trees and num_new and len(trees) + num_new > max_tokens:
            first += len(trees)
            trees, path = Trees(), []
            passes.append(trees)
        for depth in range(len(path), len(ids) - 1):
            path.append(len(trees))
            trees.input_ids.append(ids[depth])
            trees.position_ids.append(depth)
            trees.last_descendant.append(0)
            trees.labels.append(IGNORED)
        for number in path:
            trees.last_descendant[number] = len(trees) - 1
        scored = path[prompt_length - 1 :]
        for number, label in zip(scored, ids[prompt_length:], strict=True):
            trees.labels[number] = label
        index[row, : len(scored)] = torch.tensor(scored, dtype=torch.long) + first
        previous = ids
    if not trees:  # such a batch makes a pass too, because other ranks may wait for it
        passes = [Trees([rows[0][0][0]], [0], [0], [IGNORED])]
    return passes, index


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the number of tokens that two rows begin with alike."""
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return place
    return min(len(left), len(right))
