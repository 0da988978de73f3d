"""Values and messages between the driver of tests and the program's process.

Both processes have a table of the objects that the other one knows, each with a number: odd numbers are the
driver's, even ones the program's. Data cross by value (`data_types.py`). A container crosses once. After that
each message says which of the known containers have changed, so a list that a call sorts in place is sorted
in the other process as well, under all names that it has there. Anything else stays where it is, and the
other process knows its number.

The driver asks and the program answers, as JSON after four bytes with its size: [operation, arguments, names
of keyword arguments, changes, dropped numbers, new values of what functions of the test read] and [kind,
value, changes, names of the program that stand for something else now, numbers of the driver's that it has
dropped]. Kind is "v" for a value and "e" for an exception. An encoded value is an atom or a list:

    [tag, ...]                         data, see `data_types.py`
    [tag, number, detail, ...]         a container that is new
    ["@", number]                      what both processes know
    ["instance", number, class, ...]   an object of a class of the setup: names, then values of its attributes
    ["class", class]  ["member", class, name]  ["named tuple", class, ...]   of the setup
    ["error", number, class, args, text, attributes, causes, members]   an exception
"""

import ctypes
import enum
import json
import sys
from contextlib import suppress
from operator import is_
from os import read
from types import GetSetDescriptorType, MappingProxyType, MemberDescriptorType
from typing import Any

from . import data_types
from .data_types import ATOMS, CodecError
from .wire_format import MESSAGE_CHARS, PEER_FD, read_exactly, write_all

MAX_BYTES = 16 << 20  # of one message
SMALL_TABLE = 64  # objects that the driver always sweeps, and the program never
MAX_CAUSES = 9  # of an exception's causes, and of groups in groups
MEMBERS = (MemberDescriptorType, GetSetDescriptorType)
SHARED_MODULES = set(sys.stdlib_module_names)  # and packages
ALONE = 3  # references to an object that only the table refers to, during a sweep
LARGE = 100  # elements, from which on a comparison in C is faster
SCALARS = ATOMS | {int}
SIZE_BYTES, READ_BYTES = 4, 1 << 16
# What JSONEncoder and JSONDecoder call, without what they build for each message.
_encoder: Any = json.encoder
_to_json = _encoder.c_make_encoder(None, None, _encoder.encode_basestring, None, ":", ",", False, False, True)
_from_json: Any = vars(json.JSONDecoder())["scan_once"]
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
_TUPLE_HEADER, _POINTER = tuple.__basicsize__, tuple.__itemsize__


class End:
    """One end of the conversation about the tests of a job.

    Args:
        first_number: 1 for the driver, 2 for the program.

    """

    def __init__(self, first_number: int) -> None:
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}  # by id
        self.classes: dict[str, type] = {}  # of the setup, by their names
        self.contents: dict[int, tuple[str, tuple]] = {}  # of containers, as the other process knows them
        self._unfilled: list[tuple[int, str, list]] = []  # containers of the message that is decoded
        self._changed: dict[int, tuple[str, tuple]] = {}  # contents that the next message tells
        self.next_number, self._parity = first_number, first_number % 2
        self._swept_size = 0
        self.dropped: list[int] = []  # numbers that the next message drops in the other process, too

    def encode(self, value: Any) -> Any:
        """Encode a value; what cannot cross raises as `encode_object` does."""
        kind = type(value)
        if kind in ATOMS or (kind is int and -data_types.SHORT < value < data_types.SHORT):
            return value
        if (number := self.numbers.get(id(value))) is not None:
            return ["@", number]
        if not (tag := data_types.tag_of(value)):
            leaf = data_types.encode_leaf(value)
            return self.encode_object(value) if leaf is None else leaf
        content = data_types.content(tag, value)
        if tag in data_types.IMMUTABLE:
            return [tag, *self._encode_all(content)]
        number = self.register(value)
        self.contents[number] = tag, content
        detail = self.encode(value.default_factory) if tag == "f" else data_types.detail(tag, value)
        return [tag, number, detail, *self._encode_all(content)]

    def _encode_all(self, values: tuple) -> list:
        kinds = set(map(type, values))
        short = int not in kinds or all(
            -data_types.SHORT < v < data_types.SHORT for v in values if type(v) is int
        )
        return list(values) if kinds <= SCALARS and short else [self.encode(value) for value in values]

    def encode_object(self, value: Any) -> Any:
        """Encode what is no data: a class of the setup, or what has one; an exception; or an object."""
        if issubclass(type(value), BaseException):
            return self.encode_error(value)
        cls = value if isinstance(value, type) else type(value)
        if self.classes.get(cls.__name__) is not cls:
            return self.encode_foreign(value)
        name = str(cls.__name__)
        if cls is value:
            return ["class", name]
        if type(members := getattr(cls, "__members__", None)) is MappingProxyType:
            return ["member", name, value.name if value.name in members else self.encode(value.value)]
        if issubclass(cls, tuple):
            return ["named tuple", name, *self._encode_all(tuple(tuple.__iter__(value)))]
        if not hasattr(value, "__dict__") or data_types.data_base(cls):
            return self.encode_foreign(value)
        number, content = self.register(value), data_types.content("x", value)
        self.contents[number] = "x", content
        return ["instance", number, name, *self._encode_all(content)]

    def encode_error(self, error: BaseException, depth: int = 0) -> list:
        """Encode an exception: its class, arguments, text, and the attributes that are data."""
        if (known := self.numbers.get(id(error))) is not None:
            return ["@", known]
        found = dict(vars(error))
        for base in type(error).__mro__[: type(error).__mro__.index(BaseException)]:
            for name, member in vars(base).items():
                if isinstance(member, MEMBERS) and name not in ("args", "obj"):
                    with suppress(AttributeError, TypeError):
                        found[name] = member.__get__(error)
        number = self.register(error)
        # The test's own context may have a value that it expects.
        has_context = not (self._parity or error.__suppress_context__)
        causes = [error.__cause__, error.__context__ if has_context else None] if depth < MAX_CAUSES else []
        attributes = [
            [str(name), self.encode(value)]
            for name, value in found.items()
            if value is not None and data_types.is_data(value) and not callable(value)
        ]
        members = error.exceptions if isinstance(error, BaseExceptionGroup) and depth < MAX_CAUSES else ()
        # An OSError looks its arguments up.
        is_whole = all(map(data_types.is_data, error.args)) or not (
            self._parity or isinstance(error, OSError)
        )
        args = self.encode(error.args) if is_whole and not members else None
        return [
            *("error", number, self.encode_error_class(type(error)), args, text_of(error), attributes),
            [None if cause is None else self.encode_error(cause, depth + 1) for cause in causes],
            [self.encode_error(member, depth + 1) for member in members],
        ]

    def _add_causes(self, error: BaseException, causes: list) -> None:
        """Give an exception the causes of a node: what it was raised from, and what was handled then."""
        for name, cause in zip(("__cause__", "__context__"), causes, strict=False):
            if cause is not None:
                setattr(error, name, self.decode(cause))

    def encode_error_class(self, cls: Any) -> list:
        """Encode a class of exceptions: its module and name, then its bases, unless it is a builtin."""
        name = str(cls.__name__)
        if self.classes.get(name) is cls:
            return ["setup", name]
        module = str(cls.__module__)
        if vars(sys.modules.get(module, data_types)).get(name) is not cls:
            module = ""
        elif module == "builtins":
            return [module, name]
        bases = [base for base in cls.__bases__ if issubclass(base, BaseException)]
        return [module, name[:80], *map(self.encode_error_class, bases)]

    def encode_foreign(self, value: Any) -> Any:
        """Encode an object of this process."""
        raise NotImplementedError

    def decode(self, node: Any) -> Any:
        """Return the value of a node; raise an Exception if it is malformed."""
        if type(node) is not list:
            if type(node) is dict:
                raise CodecError("a JSON object is not an encoded value")
            return node
        tag, *parts = node
        if tag == "@":
            return self.objects[parts[0]]
        if tag in data_types.IMMUTABLE:
            return data_types.build(tag, self.decode_all(parts))
        if tag in data_types.CONTAINERS:
            number, detail, *parts = parts
            value = data_types.new(tag, detail)
            self.add(number, value)
            if tag == "f":
                value.default_factory = self.decode(detail)
            self._fill(number, tag, parts)
            return value
        match node:
            case ["instance", int(number), str(name), *parts]:
                value = object.__new__(self.classes[name])
                self.add(number, value)
                self._fill(number, "x", parts)
                return value
            case ["class", str(name)]:
                return self.classes[name]
            case ["member", str(name), str(member)]:
                return vars(self.classes[name])["_member_map_"][member]
            case ["member", str(name), int(flags)] if issubclass(self.classes[name], enum.Flag):
                return self.classes[name](flags)
            case ["named tuple", str(name), *parts] if issubclass(self.classes[name], tuple):
                return tuple.__new__(self.classes[name], self.decode_all(parts))
        return self.decode_foreign(node)

    def decode_all(self, nodes: list) -> list:
        kinds = set(map(type, nodes))
        return [self.decode(node) for node in nodes] if list in kinds or dict in kinds else nodes

    def decode_foreign(self, node: list) -> Any:
        """Return the value of a node that only this end understands."""
        return data_types.decode_leaf(node)

    def register(self, value: Any) -> int:
        """Give an object of this process a number."""
        number = self.next_number
        self.next_number += 2
        self.objects[number] = value
        self.numbers[id(value)] = number
        return number

    def add(self, number: Any, value: Any) -> None:
        """Note the number of what the other process has sent."""
        if type(number) is not int or number % 2 == self._parity or number in self.objects:
            raise CodecError("a number that is not new, or not the other process's")
        self.objects[number] = value
        self.numbers[id(value)] = number

    def is_foreign(self, value: Any) -> bool:
        """Return whether the other process has sent a value, which has a number of its."""
        return self.numbers.get(id(value), self._parity) % 2 != self._parity

    def _fill(self, number: int, tag: str, parts: list) -> None:
        items = self.decode_all(parts)
        if tag not in data_types.HASHING:  # at once: a frozen set may hash what an object holds
            data_types.fill(tag, self.objects[number], items)
        self._unfilled.append((number, tag, items))

    def changes(self) -> list:
        """Return number and content of each container that has changed since the other process saw it."""
        self._changed = {}
        for number, (tag, known) in self.contents.items():
            content = data_types.content(tag, self.objects[number])
            # The bytes of an array are another object each time.
            if not _are_same(content, known) and (tag not in "Na" or content != known):
                self._changed[number] = tag, content
        return [[number, *self._encode_all(content)] for number, (_, content) in self._changed.items()]

    def send(self, message: list, max_bytes: int = MAX_BYTES) -> None:
        """Send a message with the changes; only then the other process knows them."""
        send(message, max_bytes)
        self.dropped = []
        for number in self._changed.keys() & self.contents.keys():  # not what a sweep has dropped
            self.contents[number] = self._changed[number]

    def apply(self, changes: list) -> None:
        """Fill the containers that are new, and change those that have changed in the other process."""
        for number, *parts in changes:
            self._fill(number, self.contents[number][0], parts)
        unfilled, self._unfilled = self._unfilled, []
        for number, tag, items in unfilled:
            if tag in data_types.HASHING:
                data_types.fill(tag, self.objects[number], items)
            self.contents[number] = tag, data_types.content(tag, self.objects[number])

    def sweep(self) -> list[int]:
        """Remove the objects that only the table refers to; return what the next message drops."""
        if not SMALL_TABLE < len(self.objects) < 2 * self._swept_size:
            for number in filter(self._may_go, list(self.objects)):
                value = self.objects[number]
                if sys.getrefcount(value) <= ALONE:
                    self.dropped.append(number)
                    self.forget([number])
                del value  # which refers to the object, perhaps as the last
            self._swept_size = len(self.objects)
        return self.dropped

    def _may_go(self, number: int) -> bool:
        """Return whether this end may forget an object to which nothing but the table refers."""
        return True

    def forget(self, numbers: list) -> None:
        """Remove objects from the table."""
        for number in numbers:
            self.numbers.pop(id(self.objects.pop(number)), None)
            self.contents.pop(number, None)

    def forget_from(self, first: int) -> None:
        """Remove the objects of this process that have got a number since `first`, and were not sent."""
        self.forget([number for number in range(first, self.next_number, 2) if number in self.objects])


def _are_same(left: tuple, right: tuple) -> bool:
    """Return whether two tuples have the same objects as elements."""
    if len(left) != len(right):
        return False
    if len(left) < LARGE:
        return all(map(is_, left, right))
    # The pointers to a tuple's elements lie behind its header.
    starts = id(left) + _TUPLE_HEADER, id(right) + _TUPLE_HEADER
    return not _memcmp(*starts, _POINTER * len(left))


def send(message: list, max_bytes: int = MAX_BYTES) -> None:
    """Write one message.

    Raises:
        OverflowError: It is larger than `max_bytes`.
        OSError: The other process has ended.

    """
    data = packed(message)
    if len(data) > max_bytes:
        raise OverflowError
    write_all(PEER_FD, data)


def packed(message: list) -> bytes:
    """Return a message as it is sent."""
    data = "".join(_to_json(message, 0)).encode("utf-8", "surrogatepass")
    return len(data).to_bytes(SIZE_BYTES, "big") + data


def receive() -> bytes:
    """Read one message.

    Raises:
        EOFError, OSError: The other process has ended, or has sent no message.

    """
    data = read(PEER_FD, READ_BYTES)
    if len(data) < SIZE_BYTES:
        raise EOFError("the other process has ended")
    size = SIZE_BYTES + int.from_bytes(data[:SIZE_BYTES], "big")
    if size > MAX_BYTES or len(data) > size:
        raise EOFError("a message that is too large")
    if len(data) < size:
        data += read_exactly(PEER_FD, size - len(data))
        if len(data) < size:
            raise EOFError("the other process has ended")
    return data[SIZE_BYTES:]


def parsed(message: bytes) -> list:
    """Return the content of a message.

    Raises:
        ValueError, RecursionError, StopIteration: It is not JSON, or nested too deeply.

    """
    return _from_json(message.decode("utf-8", "surrogatepass"), 0)[0]


def text_of(value: Any, convert: Any = str) -> str:
    """Return the text of a value, truncated, even if its class raises."""
    try:
        return str(convert(value))[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __{convert.__name__}__>"
