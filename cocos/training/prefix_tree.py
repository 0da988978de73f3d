"""Prefix trees of token rows: each token that rows share is laid out, and computed, once.

Rows of one problem repeat its prompt for every sibling, and every turn's row repeats the turns before it. A
tree repeats only the token before rows part, because each place has one label, the token that follows. The
last token of a row predicts nothing and is left out.

    rows     a b c | d e     a b c | d f     a b c | g       (prompt | completion)
    tokens   a b c d d c     in depth-first order
    labels   - - d e f g     - is not scored
    depth    0 1 2 3 3 2     the position in the row

In depth-first order the descendants of a token follow it without a gap. So one number per token describes the
attention: the token at place q attends to the token at place k if k <= q <= last_descendant[k].

Knows token ids only: no model, no loss. Axes: R rows of L tokens, C completion tokens; M trees of N tokens.
"""

from typing import Any, NamedTuple

import torch
from torch.nn.attention.flex_attention import create_block_mask
from torch.nn.functional import pad

IGNORED = -100  # label of a token whose successor is not scored, as in transformers
END = -1  # stands after the last token of a row; sorts before every token


class Trees(NamedTuple):
    """Trees as sequences of equal length, one tree each.

    Attributes:
        input_ids: Token ids, 0 in the padding. Shape (M, N).
        position_ids: Depth of each token, which is its position in its rows. Shape (M, N).
        last_descendant: Place of each token's last descendant, itself if it has none; N in the padding, which
            attends to padding alone. Shape (M, N).
        labels: Token that follows, or IGNORED if it is not scored. Shape (M, N).

    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    last_descendant: torch.Tensor
    labels: torch.Tensor

    def attention_mask(self, in_blocks: bool = False) -> Any:
        """Return which places attend to which, as booleans of shape (M, 1, N, N).

        In blocks it is a BlockMask of FlexAttention, which skips blocks without a pair that attends.
        """
        (num_trees, length), device = self.labels.shape, self.labels.device

        def attends(tree: Any, head: Any, query: Any, key: Any) -> torch.Tensor:
            return (key <= query) & (query <= self.last_descendant[tree, key])

        if in_blocks:
            return create_block_mask(attends, num_trees, None, length, length, device)
        tree, place = torch.arange(num_trees, device=device), torch.arange(length, device=device)
        return attends(tree[:, None, None, None], None, place[:, None], place)

    def split(self, num_trees: int) -> list["Trees"]:
        """Return parts of `num_trees` trees each; the last one may have fewer."""
        return [Trees(*part) for part in zip(*(field.split(num_trees) for field in self), strict=True)]


def pack(
    input_ids: torch.Tensor, attention_mask: torch.Tensor, num_completion_tokens: int
) -> tuple[Trees, torch.Tensor]:
    """Lay out padded rows as trees, on the processor; the results are on the device of the rows.

    Rows share a tree if they begin with the shortest prompt among them, so a tree belongs to one problem.
    Examples that all prompts begin with do not join the trees: the attention would become large.

    Args:
        input_ids: Token ids; prompts are padded on the left, completions on the right. Shape (R, L).
        attention_mask: 0 in the padding. Shape (R, L).
        num_completion_tokens: Width of the completions, C.

    Returns:
        The trees, and for each completion token the place, in the flattened (M * N), whose label it is;
        0 in the padding. Shape (R, C).

    """
    real, device = attention_mask.bool().cpu(), input_ids.device
    prompt_lengths = real[:, :-num_completion_tokens].sum(1)
    from_left = real.int().argsort(dim=1, descending=True, stable=True)
    ids = input_ids.cpu().masked_fill(~real, END).gather(1, from_left)
    # In lexicographic order, a row shares its longest prefix with the row before it.
    order = ids.unique(dim=0, return_inverse=True)[1].argsort()
    ids, prompt_lengths = ids[order], prompt_lengths[order]
    is_shared = (ids[1:] == ids[:-1]).int().cumprod(1)  # (R - 1, L), with the row before
    tree = torch.tensor(_numbers_of_trees(prompt_lengths.tolist(), is_shared.sum(1).tolist()))  # (R,)
    is_shared = pad(is_shared * (tree.diff() == 0)[:, None], (0, 0, 1, 0)).bool()  # (R, L)

    # Rows share a token if they share its successor too, which is its label.
    has_successor = ids[:, 1:] != END  # (R, L - 1)
    is_new = has_successor & ~is_shared[:, 1:]
    is_new[0, 0] |= not is_new.any()  # such a batch makes a pass too, because other ranks may wait for it
    row, depth = is_new.nonzero(as_tuple=True)  # of each token of the trees, in depth-first order
    number = is_new.flatten().cumsum(0).view_as(is_new) - 1
    owner = torch.where(is_new, torch.arange(len(ids))[:, None], 0).cummax(0).values  # row that added it
    number = number.gather(0, owner)  # (R, L - 1), number of each token of the rows
    newest = (is_new.sum(1).cumsum(0) - 1)[:, None].expand_as(number)  # descends from all tokens of its row
    last = torch.zeros_like(row).scatter_reduce(0, number[has_successor], newest[has_successor], "amax")
    is_scored = has_successor & (torch.arange(ids.size(1) - 1) >= prompt_lengths[:, None] - 1)
    labels = torch.full_like(row, IGNORED)
    labels[number[is_scored]] = ids[:, 1:][is_scored]

    _, tree, sizes = tree[row].unique_consecutive(return_inverse=True, return_counts=True)
    first = (sizes.cumsum(0) - sizes)[tree]  # number of the first token of each token's tree
    num_trees, length = len(sizes), int(sizes.max())
    place = tree * length + torch.arange(len(row)) - first  # in the flattened (M, N)

    def laid_out(values: torch.Tensor, padding: int) -> torch.Tensor:
        flat = torch.full((num_trees * length,), padding).index_copy(0, place, values)
        return flat.view(num_trees, length).to(device)

    trees = Trees(
        input_ids=laid_out(ids[row, depth], 0),
        position_ids=laid_out(depth, 0),
        last_descendant=laid_out(last - first, length),
        labels=laid_out(labels, IGNORED),
    )
    index = torch.zeros(len(ids), num_completion_tokens, dtype=torch.long)
    index[real[order, -num_completion_tokens:]] = place[number[is_scored]]
    return trees, index[order.argsort()].to(device)


def _numbers_of_trees(prompt_lengths: list[int], num_shared: list[int]) -> list[int]:
    """Return the tree of each row, from 0; `num_shared` are the tokens shared with the row before."""
    numbers, shortest = [0], prompt_lengths[0]
    for length, shared in zip(prompt_lengths[1:], num_shared, strict=True):
        # A turn that was not sampled has one pad token as its prompt, with which all prompts may begin.
        starts = shared < max(2, min(shortest, length))
        numbers.append(numbers[-1] + starts)
        shortest = length if starts else min(shortest, length)
    return numbers
