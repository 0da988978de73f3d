"""MinHash with locality-sensitive hashing (Broder 1997): candidates for near duplicates among many sets.

Two sets share a band of hashes with probability 1 - (1 - s^ROWS)^BANDS, where s is their Jaccard similarity:
99.8 % at s = 0.8, 8 % at 0.4. The share of equal hashes then estimates s, with a standard error of at most
0.5 / sqrt(BANDS * ROWS) = 0.045.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cocos.dataprep.checks.shingles import MULTIPLIER, Digests, digest

BANDS, ROWS = 21, 6
NUM_HASHES = BANDS * ROWS
MARGIN = 0.135  # three standard errors


def _constants(name: str) -> Digests:
    return np.array([int.from_bytes(digest(f"{name} {n}")) for n in range(NUM_HASHES)], np.uint64)


# Hash functions x -> a * x + b modulo 2^64 of digests, with an odd a; their upper halves are kept.
_A, _B = _constants("a") | np.uint64(1), _constants("b")


def signature(ngrams: Digests) -> npt.NDArray[np.uint32]:
    """Return the least value of each hash function over a set of n-grams."""
    return ((ngrams[:, None] * _A + _B).min(axis=0) >> np.uint64(32)).astype(np.uint32)


class Candidates:
    """Earlier sets that may be similar to a set, by signatures of all sets; about 0.8 KB per set.

    Args:
        signatures: One per set, in the order of the sets.
        similarity: Jaccard similarity from which sets are similar.

    """

    def __init__(self, signatures: Sequence[npt.NDArray[np.uint32]], similarity: float) -> None:
        self._least = similarity - MARGIN
        self._signatures = np.array(signatures, np.uint32).reshape(-1, NUM_HASHES)
        # Of each band: the sets sorted by its hashes, and for each set its place and the first of equal ones.
        self._bands: list[tuple[npt.NDArray, npt.NDArray, npt.NDArray]] = []
        for band in range(BANDS):
            keys = np.zeros(len(self._signatures), np.uint64)
            for column in range(band * ROWS, (band + 1) * ROWS):
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
