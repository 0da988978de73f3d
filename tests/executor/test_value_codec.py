"""The codec: plain values come back unchanged, decoding builds nothing else, and nothing costly crosses."""

import collections
import datetime
import importlib
import json
from decimal import Decimal
from fractions import Fraction

import pytest

from cocos.executor.inside import data_types
from cocos.executor.judging import plain_values
from cocos.executor.sandboxes.interpreter import INSIDE


@pytest.fixture(scope="module")
def plain_encoding():
    """Return the candidate's module, which a sandbox imports from its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(INSIDE))
        yield importlib.import_module("plain_encoding")


@pytest.fixture
def roundtrip(plain_encoding):
    return lambda value: plain_values.decode(json.loads(json.dumps(plain_encoding.encode(value))))


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
        with pytest.raises(plain_values.CodecError):
            plain_values.decode(json.loads(text))


def test_plain_values_come_back(roundtrip):
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


def test_an_instance_of_a_subclass_is_not_plain(plain_encoding):
    class Liar(int):
        __eq__ = lambda *_: True  # noqa: E731
        __hash__ = int.__hash__

    class Point(collections.namedtuple("Point", "x")):
        pass

    for value in (Liar(7), Point(1), [Point(1)], type("D", (dict,), {})(a=1), type("S", (str,), {})("a")):
        with pytest.raises(plain_encoding.NotPlainValue):
            plain_encoding.encode(value)


def test_costly_values_and_objects_are_left_to_the_judge(plain_encoding):
    for value in (range(10**12), Decimal("1e1000000"), Fraction(1, 3), 1 << 70000, iter([1]), object(), len):
        with pytest.raises(plain_encoding.NotPlainValue):
            plain_encoding.encode([value])


def test_no_costly_part_of_a_leaf_is_built():
    for text in (
        '["td", ["F", 1, 3]]',
        '["dt", "2024-01-01", ["r", 0, 1, 1]]',
        '["c", ["D", "1"], 0]',
        '["td", []]',
    ):
        with pytest.raises(plain_values.CodecError):
            plain_values.decode(json.loads(text))


def test_integers_beyond_the_limit_are_refused_on_both_sides(roundtrip):
    largest = (1 << data_types.MAX_INT_BITS) - 1
    assert roundtrip([largest, -largest]) == [largest, -largest]
    with pytest.raises(plain_values.NotPlainValue):
        plain_values.decode(["i", hex(1 << 100_000)])
