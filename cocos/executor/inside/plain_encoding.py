"""Encoding of the values that a split test compares, in the candidate's process.

Only what needs no more memory or time than its encoding is plain, because the trusted process, which decodes
it, has no limits (`judging/plain_values.py`). An instance of a subclass is not plain: the driver decides what
a test may see of it (`data_codec.py`).

    [1, (2, 3)]      ["l", 1, ["t", 2, 3]]
    {"a": 2**70}     ["d", "a", ["i", "0x400000000000000000"]]
"""

from typing import Any

import data_types
from data_types import ATOMS, MAX_DEPTH, MAX_INT_BITS, PLAIN_CONTAINERS, PLAIN_LEAVES, SHORT


class NotPlainValue(ValueError):
    """Error for a value that is not plain; the message says which."""


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a plain value for `json.dumps`.

    Raises:
        NotPlainValue: The value, or a part of it, is of another type, too large or nested too deeply.

    """
    kind = type(value)
    if kind in ATOMS or (kind is int and -SHORT < value < SHORT):
        return value
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise NotPlainValue(f"returned an integer of {value.bit_length()} bits")
        return data_types.encode_leaf(value)
    if depth >= MAX_DEPTH:
        raise NotPlainValue("returned a value that is nested too deeply")
    if (tag := data_types.tag_of(value)) in PLAIN_CONTAINERS:
        return [tag, *[encode(part, depth + 1) for part in data_types.content(tag, value)]]
    if (node := data_types.encode_leaf(value)) is not None and node[0] in PLAIN_LEAVES:
        return node
    raise NotPlainValue(f"returned {str(kind.__name__)[:80]}, which is not a plain value")
