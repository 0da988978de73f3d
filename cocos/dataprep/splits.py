"""Assignment of problems to train, validation and test in sets without standard splits.

The split of a problem depends only on the seed and on the problem. A set of any size is therefore split while
it is streamed. Problems with the same text, or of the same group, are in the same split.
"""

import hashlib

from cocos.dataprep.checks.duplicates import normalize_text
from cocos.dataprep.formats.conversion import Converted

ASSIGNED_SPLITS = ("train", "validation", "test")


def assign_split(converted: Converted, shares: tuple[float, float, float], seed: int) -> str:
    """Return the split of a problem, drawn with a hash of the seed and the problem's group or text.

    Args:
        converted: The problem and its group; without a group, its text is hashed.
        shares: Shares of train, validation and test, which add up to 1.
        seed: Another seed gives another assignment.

    """
    key = converted.group or normalize_text(converted.problem.text)
    digest = hashlib.sha256(f"{seed}\0{key}".encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64  # uniform in [0, 1)
    for split, share in zip(ASSIGNED_SPLITS, shares, strict=True):
        point -= share
        if point < 0:
            return split
    # Rounding can leave the point above the last split: then the split with the largest share.
    return max(zip(shares, ASSIGNED_SPLITS, strict=True))[1]
