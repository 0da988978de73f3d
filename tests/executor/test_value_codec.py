"""The codec: plain values come back unchanged, decoding builds nothing else, and nothing costly crosses."""

import collections
import datetime
import json
from decimal import Decimal
from fractions import Fraction

import pytest

from cocos.executor.inside import value_codec


def roundtrip(value: object) -> object:
    return value_codec.decode(json.loads(json.dumps(value_codec.encode(value))))


def test_decoding_builds_plain_values_only():
    for text in (
        *(
            '["y", "open"]',
            '["l", {}]',
            '["i", 5]',
            '["d", 1]',
            '["s", ["l"]]',
            '["r", 1, 2, 0]',
            '["kv"]',
            '[""]',
            "[]",
        ),
        *(
            '["D", "1e1000000"]',
            '["r", 0, 1000000000000, 1]',
            '["F", 1, 2]',
            '["g", 1]',
            '["o", "x", true]',
            '["...", 1]',
        ),
    ):
        with pytest.raises(value_codec.CodecError):
            value_codec.decode(json.loads(text))


def test_plain_values_come_back():
    values = [
        1,
        -(2**70),
        1.5,
        "\ud800",
        (1, [2]),
        {1: {2}},
        frozenset([3]),
        b"x",
        bytearray(b"y"),
        1j,
        None,
        ...,
        True,
    ]
    values += [
        datetime.date(2024, 2, 29),
        datetime.timedelta(1, 2, 3),
        collections.deque([1]),
        int,
        ValueError,
        {1: 2}.keys(),
    ]
    assert roundtrip(values) == values
    for value in (
        collections.OrderedDict(b=1, a=2),
        collections.Counter("aab"),
        collections.defaultdict(None, {1: 2}),
    ):
        assert roundtrip(value) == value and type(roundtrip(value)) is type(value)


def test_an_instance_of_a_subclass_becomes_a_plain_value():
    class Liar(int):
        __eq__ = lambda *_: True  # noqa: E731
        __hash__ = int.__hash__

    assert type(roundtrip(Liar(7))) is int and roundtrip(Liar(7)) == 7


def test_costly_values_and_objects_are_left_to_the_judge():
    for value in (range(10**12), Decimal("1e1000000"), Fraction(1, 3), 1 << 70000, iter([1]), object(), len):
        with pytest.raises(value_codec.NotPlainValue):
            value_codec.encode([value])


def test_integers_beyond_the_limit_are_refused_on_both_sides():
    largest = (1 << value_codec.MAX_INT_BITS) - 1
    assert roundtrip([largest, -largest]) == [largest, -largest]
    with pytest.raises(value_codec.NotPlainValue):
        value_codec.decode(["i", hex(1 << 100_000)])
