"""Requests between the candidate's process and the judge during one judged test, through their socket.

Each process may send a request while it answers one of the other: a test calls the candidate's function,
which calls a function of the test. A message is JSON after its length (four bytes, big-endian):

    ["q", [operation, object, argument, ...], [names of the keyword arguments], changes, dropped]
    ["v", [result], [], changes, dropped]  or  ["e", [exception], ...]                 the answer

The operation is a special method, as in "__call__", or "getattr", "setattr", ... Both processes number the
objects that they share: one gives 1, 3, 5, ..., the other 2, 4, 6, ... Where a message mentions an object for
the first time it says what it is, afterwards [number]. A list, for example, exists in both processes, with
the same content: every message carries the new content of the containers that have changed since the last
one. So a change in place, an alias, and `is` mean what they mean in one process.

    (a, a, 5) with a = [1]       ["t", 2, null, ["l", 4, null, 1], [4], 5]

In the place of null stand the details of what is no data (`End.describe`).
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import copy
import json
import operator
import os
import sys
import types
from contextlib import suppress
from operator import is_
from typing import Any

import data_types
import handles
from data_types import CodecError, OutputLimit
from wire_format import PEER_FD

MAX_BYTES = 64 << 20  # of a message; what it holds counts against the memory limit of both processes
_to_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_from_json = json.JSONDecoder().decode
_FUNCTIONS: dict[str, Any] = {
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "__copy__": copy.copy,
    "__deepcopy__": lambda value, *memo: copy.deepcopy(value),
    "__instancecheck__": lambda value, item: isinstance(item, value),
    "__subclasscheck__": lambda value, item: issubclass(item, value),
    "__contains__": operator.contains,
    "__reversed__": reversed,
    "__iter__": iter,
    "__getitem__": operator.getitem,
    "__bool__": bool,
    "__dir__": dir,
}
_DEFINING = data_types.CONTAINERS | data_types.REFERENCES  # tags of objects with numbers
_ALONE = 3  # references to an object that only the table holds: the table, a variable, the argument
_SMALL_TABLE = 64
_HEAP_TYPE = 1 << 9  # in __flags__ of a class that was defined in Python
MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)


class End:
    """One end of the conversation, and its table of objects.

    Args:
        first_id: First number for objects of this process.

    """

    def __init__(self, first_id: int) -> None:
        self.objects: dict[int, Any] = {}
        self.ids: dict[int, int] = {}  # the numbers by `id()` of the object
        self.lent: set[int] = set()  # own objects for which the other process has a handle
        self.setup_classes: dict[str, Any] = {}  # by name: both processes have run the setup
        self.named: list[type] = []  # own classes that the test names
        self._contents: dict[
            int, tuple[str, tuple]
        ] = {}  # of mutable containers, as the other end knows them
        self._parity = first_id % 2
        self._next_id = first_id
        self._swept_size = 0
        self._turn = _thread.RLock()  # held from a request to its answer: the program may have threads
        self._stream = open(PEER_FD, "rb", closefd=False)  # noqa: SIM115
        handles.end = self

    def is_foreign(self, value: Any) -> bool:
        """Return whether a value stands for an object of the other process."""
        return self.ids.get(id(value), self._parity) % 2 != self._parity

    # Values of messages.

    def encode(self, value: Any) -> Any:
        """Return the node of a value."""
        if data_types.is_atom(value):
            return value
        if (number := self.ids.get(id(value))) is not None:
            return [number]
        if (node := self.encode_by_name(value) or data_types.encode_leaf(value)) is not None:
            return node
        number = self._next_id
        self._next_id += 2
        self._add(number, value)
        if not (tag := data_types.tag_of(value)):
            self.lent.add(number)
            tag, detail, parts = self.describe(value)
            return [tag, number, detail, *map(self.encode, parts)]
        content = data_types.content(tag, value)
        if tag not in data_types.IMMUTABLE:
            self._contents[number] = tag, content
        detail = self.encode(value.default_factory) if tag == "f" else data_types.detail(tag, value)
        return [tag, number, detail, *self._encode_all(content)]

    def _encode_all(self, values: tuple) -> list:
        kinds = set(map(type, values))
        if kinds <= data_types.ATOMS or (
            kinds == {int} and min(values) > -data_types.SHORT and max(values) < data_types.SHORT
        ):
            return list(values)
        return [self.encode(value) for value in values]

    def encode_by_name(self, value: Any) -> list | None:
        """Return the node of what both processes know by a name: classes and enum members of the setup."""
        cls = value if isinstance(value, type) else type(value)
        if self.setup_classes.get(cls.__name__) is not cls:
            return None
        if cls is value:
            return ["x", cls.__name__]
        is_member = isinstance(getattr(cls, "__members__", None), types.MappingProxyType)
        return ["E", cls.__name__, value.name] if is_member else None

    def decode_by_name(self, node: list) -> Any:
        """Return the value of a node without a number."""
        match node:
            case ["x", str(name)]:
                return self.setup_classes[name]
            case ["E", str(name), str(member)]:
                return vars(self.setup_classes[name])["_member_map_"][member]
        return data_types.decode_leaf(node)

    def describe(self, value: Any) -> tuple[str, Any, tuple]:
        """Return tag, details and parts of a class of exceptions, an exception, a group, or an object."""
        cls = type(value)
        if issubclass(cls, type) and issubclass(value, BaseException):
            bases = [base for base in value.__bases__ if issubclass(base, BaseException)]
            plain = [base for base in bases if not issubclass(base, BaseExceptionGroup)]
            return "class", str(value.__name__), tuple(plain or [Exception])
        if issubclass(cls, BaseExceptionGroup):
            return "group", issubclass(cls, ExceptionGroup), (str(value.message), *value.exceptions)
        if issubclass(cls, BaseException):
            attributes = self.attributes_of(value)
            args = BaseException.__dict__["args"].__get__(value)
            return "error", list(attributes), (cls, *args, *attributes.values())
        named = value if issubclass(cls, type) else cls
        return "object", [*self.bits_and_hash(value), str(named.__name__)[:80]], (self.kind_of(value),)

    def bits_and_hash(self, value: Any) -> tuple[int, int | None]:
        """Return two of the facts about an object."""
        cls = type(value)

        def defines(name: str) -> bool:  # not hasattr: a metaclass may have it too
            return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None) is not None

        found = (
            *map(defines, handles.SHOWN),
            cls.__eq__ is not object.__eq__ or cls.__ne__ is not object.__ne__,
            defines("__bool__") or defines("__len__"),
            defines("__contains__"),
            data_types.data_base(cls),
            any(base in self.named for base in (value.__mro__ if issubclass(cls, type) else cls.__mro__)),
        )
        bits = sum(bool(is_so) << number for number, is_so in enumerate(found))
        try:
            return bits, hash(value)
        except Exception:
            return bits, None

    def attributes_of(self, error: BaseException) -> dict[str, Any]:
        """Return the attributes with which an exception arrives, beside its arguments."""
        return {}

    def kind_of(self, value: Any) -> type | None:
        """Return the class that `isinstance` shall find in the other process, or None."""
        return next(filter(self.is_known, type(value).__mro__[:-1]), None)

    def decode(self, node: Any) -> Any:
        """Return the value of a node."""
        if type(node) is not list:
            if type(node) is dict:
                raise CodecError("a JSON object is not an encoded value")
            return node
        if len(node) == 1 and type(node[0]) is int:
            return self.known(node[0])
        if node[0] not in _DEFINING:
            return self.decode_by_name(node)
        tag, number, detail, *parts = node
        if type(number) is not int or number % 2 == self._parity:
            raise CodecError("no number of the other process")
        if tag in data_types.IMMUTABLE:
            value = data_types.build(tag, self._decode_all(parts))
        elif tag in data_types.CONTAINERS:
            value = data_types.new(tag, detail)
            self._add(number, value)
            if tag == "f":
                value.default_factory = self.factory(self.decode(detail))
            self._fill(number, tag, parts)
        else:
            value = self.represent(tag, number, detail, parts)
        if self.objects.get(number) is not value:
            self._add(number, value)
        return value

    def known(self, number: int) -> Any:
        """Return an object that was described before."""
        return self.objects[number]

    def _decode_all(self, nodes: list) -> list:
        kinds = set(map(type, nodes))
        return [self.decode(node) for node in nodes] if list in kinds or dict in kinds else nodes

    def _add(self, number: int, value: Any) -> None:
        if number in self.objects:
            raise CodecError("a number that is not new")
        self.objects[number] = value
        self.ids[id(value)] = number

    def _fill(self, number: int, tag: str, parts: list) -> None:
        value = self.objects[number]
        data_types.fill(tag, value, self._decode_all(parts))
        self._contents[number] = tag, data_types.content(tag, value)

    def represent(self, tag: str, number: int, detail: Any, parts: list) -> Any:
        """Return what stands for something that `describe` has described."""
        match tag, detail, self.decode(parts[0]):
            case "object", [int(bits), int() | None as hash_value, str(name)], kind:
                if not (kind is None or self.is_known(kind)):
                    raise CodecError("no class that both processes know")
                return self.handle(handles.Facts(bits, hash_value, name[:80], kind))
            case "class", str(name), first:
                bases = (first, *map(self.decode, parts[1:]))
                if not all(map(self._is_error, bases)):
                    raise CodecError("no class of exceptions")
                return handles.stand_in(name[:80], bases)
            case "group", bool(is_exception), str(message):
                kind = ExceptionGroup if is_exception else BaseExceptionGroup
                return kind(message, [self.decode(part) for part in parts[1:]])
            case "error", list(names), cls if self._is_error(cls):
                # Of the first class that is implemented in C: no code of another class is called.
                builtin = next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)
                error = builtin.__new__(cls)
                self._add(number, error)
                values = [self.decode(part) for part in parts[1:]]
                num_args = len(values) - len(names)
                BaseException.__dict__["args"].__set__(error, tuple(values[:num_args]))
                for name, value in zip(names, values[num_args:], strict=True):
                    _set_attribute(error, builtin, name, value)
                return error
        raise CodecError("an unknown tag")

    def factory(self, value: Any) -> Any:
        """Return the factory of a defaultdict, if it is one."""
        return value

    def handle(self, facts: handles.Facts) -> Any:
        """Return a new handle."""
        return handles.new(facts)

    # Messages.

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        """Write one message.

        Raises:
            Exception: A value cannot be encoded, or the values are too large. Nothing was written.
            OSError: The other process has closed the socket.

        """
        first = self._next_id
        try:
            nodes = [self.encode(value) for value in values]
            changes = [[number, *self._encode_all(content)] for number, content in self._changed()]
            message = _to_json([kind, nodes, names, changes, self.sweep(first)])
            data = message.encode("utf-8", "surrogatepass")
            if len(data) > MAX_BYTES:
                raise OutputLimit(f"more than {MAX_BYTES >> 20} MiB of values")
        except BaseException:
            self._forget(range(first, self._next_id, 2))
            raise
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(PEER_FD, view) :]

    def receive(self) -> tuple[str, list, list]:
        """Read one message.

        Raises:
            Exception: The other process has closed the socket, or sent a malformed message.

        """
        size = int.from_bytes(self._stream.read(4), "big")
        if not 0 < size <= MAX_BYTES:
            raise EOFError("the end, or a message that is too large")
        message = self._stream.read(size).decode("utf-8", "surrogatepass")
        kind, nodes, names, changes, dropped = _from_json(message)
        values = self._decode_all(nodes)
        for number, *parts in changes:
            self._fill(number, self._contents[number][0], parts)
        self._forget(dropped)
        return kind, values, names

    def _changed(self) -> list[tuple[int, tuple]]:
        """Return number and content of each container that has changed since the other process saw it."""
        changes = []
        for number, (tag, known) in self._contents.items():
            content = data_types.content(tag, self.objects[number])
            is_same = len(content) == len(known) and all(map(is_, content, known))
            # The bytes of an array are another object each time.
            if not is_same and (tag != "N" or content != known):
                changes.append((number, content))
        for number, content in changes:
            self._contents[number] = self._contents[number][0], content
        return changes

    def sweep(self, first_new: int) -> list[int]:
        """Remove the objects that only the table refers to, and return their numbers.

        Args:
            first_new: First number of those that the other process does not know yet; they stay.

        """
        if _SMALL_TABLE < len(self.objects) < 2 * self._swept_size:
            return []
        dropped = []
        for number in list(self.objects):
            is_new = number >= first_new and number % 2 == self._parity
            value = self.objects[number]
            if sys.getrefcount(value) <= _ALONE and not is_new and number not in self.lent:
                dropped.append(number)
                self._forget((number,))
            del value  # which refers to the object, perhaps as the last
        self._swept_size = len(self.objects)
        return dropped

    def _forget(self, numbers: Any) -> None:
        """Remove these objects from the table."""
        for number in numbers:
            if number in self.objects:
                self.ids.pop(id(self.objects.pop(number)), None)
                self._contents.pop(number, None)
                self.lent.discard(number)

    # Requests.

    def request(self, operation: str, target: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Have the other process do something and return the result, or raise the exception."""
        with self._turn:
            kwargs = kwargs or {}
            self.send("q", (operation, target, *args, *kwargs.values()), tuple(kwargs))
            while True:
                kind, values, names = self.receive()
                if kind == "v":
                    return values[0]
                if kind == "e":
                    raise self.error_to_raise(operation, values[0])
                self.answer(values, names)

    def answer(self, values: list, names: list) -> None:
        """Perform a request and send the result."""
        operation, target, *args = values
        split = len(args) - len(names)
        try:
            kwargs = dict(zip(names, args[split:], strict=True))
            result = self.perform(operation, target, tuple(args[:split]), kwargs)
        except BaseException as error:
            self.send("e", (error,))
        else:
            self.send("v", (result,))

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Do what the other process requests with an object of this process."""
        if function := _FUNCTIONS.get(operation):
            return function(target, *args)
        if (method := getattr(type(target), operation, None)) is not None:
            return method(target, *args, **kwargs)
        if operation in handles.DECIDING:
            return NotImplemented
        raise TypeError(f"{type(target).__name__!r} object has no {operation}")

    def operate(self, operation: str, handle: Any, args: tuple, kwargs: dict) -> Any:
        """Answer an operation on a handle, or on an exception of the other process."""
        if operation in ("__eq__", "__ne__") and not handles.facts(handle).bits & handles.HAS_EQ:
            return NotImplemented
        return self.request(operation, handle, args, kwargs)

    def get_attribute(self, handle: Any, name: str) -> Any:
        """Answer `handle.name`."""
        return self.request("getattr", handle, (name,))

    def error_to_raise(self, operation: str, error: Any) -> BaseException:
        """Return the exception to raise where the answer to a request is an exception."""
        return error

    def is_known(self, cls: Any) -> bool:
        """Return whether both processes know this class by a name."""
        if not issubclass(type(cls), type):
            return False
        return data_types.class_name(cls) is not None or self.setup_classes.get(cls.__name__) is cls

    def _is_error(self, cls: Any) -> bool:
        is_ours = type(cls) is handles.ErrorClass or self.is_known(cls)
        return is_ours and issubclass(cls, BaseException) and not issubclass(cls, BaseExceptionGroup)


def _set_attribute(error: Any, builtin: type, name: Any, value: Any) -> None:
    """Give an exception one attribute, without a call of code of its class."""
    if name in ("__cause__", "__notes__"):
        BaseException.__setattr__(error, name, value)
    elif type(name) is str and name[:1] != "_" and not hasattr(BaseException, name) and not callable(value):
        member = getattr(builtin, name, None)
        with suppress(AttributeError, TypeError):
            member.__set__(error, value) if isinstance(member, MEMBERS) else vars(error).update({name: value})
