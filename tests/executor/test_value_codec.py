"""The codec: plain values come back unchanged, and decoding builds nothing else."""

import json

import pytest

from cocos.executor.inside import value_codec


def roundtrip(value: object) -> object:
    return value_codec.decode(json.loads(json.dumps(value_codec.encode(value))))


def test_decoding_builds_plain_values_only():
    for text in (
        '["y", "open"]',
        '["l", {}]',
        '["i", 5]',
        '["d", 1]',
        '["s", ["l"]]',
        '["r", 1, 2, 0]',
        '["kv"]',
        '[""]',
        "[]",
        '["D", "x"]',
    ):
        with pytest.raises(value_codec.CodecError):
            value_codec.decode(json.loads(text))

    class Liar(int):
        __eq__ = lambda *_: True  # noqa: E731
        __hash__ = int.__hash__

    assert type(roundtrip(Liar(7))) is int and roundtrip(Liar(7)) == 7
    values = [1, -(2**70), 1.5, "\ud800", (1, [2]), {1: {2}}, frozenset([3]), b"x", 1j, range(3), None]
    assert roundtrip(values) == values
