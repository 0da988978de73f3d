"""Decoding of the values that a split test compares, in the trusted process.

The candidate can change what its process sends, and the trusted process has no limits. So `decode` builds
only what needs no more memory or time than its encoding.
"""

import collections
from typing import Any

from cocos.executor.inside import data_types
from cocos.executor.inside.data_types import (
    MAX_DEPTH,
    MAX_INT_BITS,
    PLAIN_CONTAINERS,
    PLAIN_LEAVES,
    CodecError,
)

MAX_EQUAL_HASHES = 256
_MAX_HEX_DIGITS = MAX_INT_BITS // 4 + len("-0x")


class NotPlainValue(CodecError):
    """Error for an integer of more than MAX_INT_BITS bits."""


def decode(node: object, depth: int = 0) -> Any:
    """Return the value that `node`, which is parsed JSON, encodes.

    Raises:
        NotPlainValue: The value is an integer of more than MAX_INT_BITS bits.
        CodecError: `node` is not an encoded value, is nested deeper than MAX_DEPTH, or contains too many keys
            or elements with equal hashes.

    """
    if not isinstance(node, list):
        if isinstance(node, dict):
            raise CodecError("a JSON object is not an encoded value")
        return node
    if depth > MAX_DEPTH or not node or not isinstance(node[0], str):
        raise CodecError("nested too deeply, or no tag")
    tag, *parts = node
    try:
        if tag in PLAIN_CONTAINERS:
            return _decode_container(tag, [decode(part, depth + 1) for part in parts])
        if tag == "i":
            if len(parts[0]) > _MAX_HEX_DIGITS:
                raise NotPlainValue(f"returned an integer of {len(parts[0])} hexadecimal digits")
        elif tag not in PLAIN_LEAVES:
            raise CodecError(f"unknown tag {tag!r}")
        return data_types.decode_leaf(node)
    except CodecError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, MemoryError, RecursionError) as error:
        raise CodecError(f"malformed {tag!r}: {error}") from None


def _decode_container(tag: str, parts: list) -> Any:
    keys = (
        parts
        if tag in "szk"
        else [key for key, _ in parts]
        if tag == "m"
        else parts[: len(parts) // 2]
        if tag in "dCOf"
        else []
    )
    # A candidate can choose integers with equal hashes. A set of n of them takes about n**2 comparisons.
    if len(keys) > MAX_EQUAL_HASHES and max(collections.Counter(map(hash, keys)).values()) > MAX_EQUAL_HASHES:
        raise CodecError("too many equal hashes")
    if tag in data_types.IMMUTABLE:
        return data_types.build(tag, parts)
    value = data_types.new(tag, None)
    data_types.fill(tag, value, parts)
    return value
