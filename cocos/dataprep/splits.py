"""Train, validation or test: as the source has it, else by a hash of the seed and what the problem says.

A row's split depends on nothing but itself, so a set of any size is dealt out while it streams by, and rows
of one text, or of one group, never part.
"""

import hashlib
import re

from cocos.dataprep.formats.conversion import Converted

DEALT = ("train", "validation", "test")


def deal(converted: Converted, fractions: tuple[float, float, float], seed: int) -> str:
    """The split of a problem in a set without standard splits."""
    key = converted.group or plain(converted.problem.text)
    digest = hashlib.sha256(f"{seed}\0{key}".encode()).digest()
    point = int.from_bytes(digest[:8], "big") / 2**64 * sum(fractions)
    for split, fraction in zip(DEALT, fractions, strict=True):
        point -= fraction
        if point < 0:
            return split
    return max(zip(fractions, DEALT, strict=True))[1]  # rounding ate the last sliver


def plain(text: str) -> str:
    """A text without case, marks of punctuation and spacing: what two copies of it have in common. Brackets
    and operators stay: they can be all that tells two tasks apart.
    """
    return " ".join(re.findall(r"\w+|[^\w\s.,;:!?'\"`]", text.lower()))
