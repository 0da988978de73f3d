"""Digests of n-grams of words or tokens, and the sets of them that may be similar.

An n-gram's digest is a polynomial in the digests of its tokens, modulo 2^64, so that numpy computes those of
a whole text at once.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cocos.dataprep.checks.tokens import digest

Digests = npt.NDArray[np.uint64]
Halves = npt.NDArray[np.uint32]  # of 64-bit digests
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no token of an n-gram is lost


@lru_cache(1 << 18)  # some 30 MB
def _token_digest(token: str) -> int:
    return int.from_bytes(digest(token))


def ngram_digests(tokens: list[str], n: int) -> Digests:
    """Return the digests of the n-grams in their order; none if there are fewer than n tokens."""
    digests = np.fromiter(map(_token_digest, tokens), np.uint64, len(tokens))
    count = max(0, len(tokens) - n + 1)
    result = np.zeros(count, np.uint64)
    for offset in range(n):
        result = result * MULTIPLIER + digests[offset : offset + count]
    return result


def earlier_candidates(sets: Sequence[Halves], similarity: float) -> Iterator[list[int]]:
    """Yield for each set the numbers of all earlier ones that may have this Jaccard similarity s with it.

    Two such sets A and B have at least s * |A| members in common. In one order of all members, the rarest
    first, the first |A| - s * |A| + 1 of A and as many of B therefore have one in common (prefix filtering,
    Bayardo et al., WWW 2007).
    """
    members, counts = np.unique(np.concatenate([np.empty(0, np.uint32), *sets]), return_counts=True)
    numbers: dict[int, list[int]] = defaultdict(list)  # member -> the sets among whose rarest it is
    for number, ngrams in enumerate(sets):
        rarest_first = np.lexsort((ngrams, counts[np.searchsorted(members, ngrams)]))
        least = math.ceil(similarity * len(ngrams) - 1e-9)  # members in common
        prefix = ngrams[rarest_first][: len(ngrams) - least + 1].tolist()
        yield sorted({other for member in prefix for other in numbers[member]})
        for member in prefix:
            numbers[member].append(number)
