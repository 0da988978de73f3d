"""MinHash with locality-sensitive hashing (Broder 1997): candidates for near duplicates among many sets.

Two sets share a band of hashes with probability 1 - (1 - s^rows)^bands, where s is their Jaccard similarity:
with 21 bands of 6 rows 99.8 % at s = 0.8 and 8 % at 0.4. The share of equal hashes then estimates s, with a
standard error of at most 0.5 / sqrt(NUM_HASHES) = 0.045.

The sets are digests of n-grams of words or tokens. An n-gram's digest is a polynomial in the digests
of its tokens, modulo 2^64, so that numpy computes those of a whole text at once.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cocos.dataprep.checks.tokens import digest

Digests = npt.NDArray[np.uint64]
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no token of an n-gram is lost
Halves = npt.NDArray[np.uint32]  # of 64-bit digests
NUM_HASHES = 126
MARGIN = 0.135  # three standard errors
MAX_MISSED = 0.005  # share of the pairs at the threshold that no band has


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


def _constants(name: str) -> Digests:
    return np.array([int.from_bytes(digest(f"{name} {n}")) for n in range(NUM_HASHES)], np.uint64)


# Hash functions x -> a * x + b modulo 2^64 of digests, with an odd a; their upper halves are kept.
_A, _B = _constants("a") | np.uint64(1), _constants("b")


def signature(ngrams: Halves) -> Halves:
    """Return the least value of each hash function over a set of n-grams."""
    return ((ngrams[:, None].astype(np.uint64) * _A + _B).min(axis=0) >> np.uint64(32)).astype(np.uint32)


def band_rows(similarity: float) -> int:
    """Return the most rows of a band with which pairs of a similarity are found; more rows propose less."""
    missed = {rows: (1 - similarity**rows) ** (NUM_HASHES // rows) for rows in range(1, NUM_HASHES + 1)}
    return max(rows for rows, share in missed.items() if share <= MAX_MISSED or rows == 1)


class Candidates:
    """Earlier sets that may be similar to a set, by signatures of all sets; about 0.8 KB per set.

    Args:
        signatures: One per set, in the order of the sets.
        similarity: Jaccard similarity from which sets are similar.

    """

    def __init__(self, signatures: Sequence[Halves], similarity: float) -> None:
        self._least = similarity - MARGIN
        self._signatures = np.array(signatures, np.uint32).reshape(-1, NUM_HASHES)
        # Of each band: the sets sorted by its hashes, and for each set its place and the first of equal ones.
        self._bands: list[tuple[npt.NDArray, npt.NDArray, npt.NDArray]] = []
        rows = band_rows(similarity)
        for start in range(0, NUM_HASHES - rows + 1, rows):
            keys = np.zeros(len(self._signatures), np.uint64)
            for column in range(start, start + rows):
                keys = keys * MULTIPLIER + self._signatures[:, column]
            order = np.argsort(keys, kind="stable").astype(np.int32)
            in_order = keys[order]
            place = np.empty_like(order)
            place[order] = np.arange(len(order), dtype=np.int32)
            first = np.searchsorted(in_order, in_order)[place].astype(np.int32)
            self._bands.append((order, first, place))

    def before(self, number: int) -> list[int]:
        """Return the numbers of the sets before this one that may be similar to it, in their order."""
        parts = [order[first[number] : place[number]] for order, first, place in self._bands]
        found = np.unique(np.concatenate(parts))
        equal = (self._signatures[found] == self._signatures[number]).mean(axis=1)
        return found[equal >= self._least].tolist()
