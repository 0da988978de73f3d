"""Digests of n-grams of words or tokens, which overlaps are searched by.

An n-gram's digest is a polynomial in the digests of its tokens, modulo 2^64, so that numpy computes those of
a whole text at once.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cocos.dataprep.checks.tokens import digest

Digests = npt.NDArray[np.uint64]
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
