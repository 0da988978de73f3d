"""Requests between the candidate's process and the judge during one judged test, through their socket.

Each process may send a request while it answers one of the other: a test calls the candidate's function,
which calls a function of the test. A request names an operation and an object of the other process:

    ["q", [operation, object, argument, ...], [names of the keyword arguments], ...]
    ["v", [result], [], ...]  or  ["e", [exception], [], ...]                          the answer

The operation is a special method, as in "__call__", or "getattr", "setattr", ... The rest of a message is
described in `heap.py`. A message is sent as its length (four bytes, big-endian) and its bytes, in JSON.
"""

import _thread  # not `threading`: its hook in every fork touches 130 pages that are shared with the zygote
import copy
import json
import operator
import os
import types
from contextlib import suppress
from typing import Any

import handles
import value_codec
from heap import CodecError, Heap
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
    "__contains__": lambda value, item: item in value,
    "__reversed__": reversed,
    "__iter__": iter,
    "__getitem__": operator.getitem,
    "__bool__": bool,
    "__dir__": dir,
}


class MessageTooLarge(Exception):
    """Error for values that are too large for one message."""


class End(Heap):
    """One end of the conversation. All handles of this process send their requests through the newest one."""

    def __init__(self, first_id: int) -> None:
        super().__init__(first_id)
        self._turn = _thread.RLock()  # held from a request to its answer: the program may have threads
        self._received = b""  # but not yet taken
        handles.connect(self)

    def describe(self, value: Any) -> tuple[str, Any, list]:
        cls = type(value)
        if not isinstance(value, BaseException):
            named = value if isinstance(value, type) else cls
            return "o", [*_bits_and_hash(value), self.kind_of(value), str(named.__name__)[:80]], []
        if isinstance(value, BaseExceptionGroup):
            is_exception = isinstance(value, ExceptionGroup)
            return "g", is_exception, [str(value.message), *value.exceptions]
        form = self.form_of_error(cls)
        attributes = _attributes(value, form[0] in ("standard", "setup", "test"))
        args = BaseException.__dict__["args"].__get__(value)
        return "e", [*form, list(attributes)], [*args, *attributes.values()]

    def kind_of(self, value: Any) -> str:
        """Return the name of the class that `isinstance` shall find in the other process, or ""."""
        return next(filter(None, map(value_codec.class_name, type(value).__mro__[:-1])), "")

    def kind_of_name(self, name: str) -> Any:
        return value_codec.TYPES[name] if name else None

    def form_of_error(self, cls: type) -> list:
        """Return how the other process finds the class of an exception: a form and a name."""
        raise NotImplementedError

    def error_class(self, form: str, name: Any) -> Any:
        if form != "standard" or not issubclass(cls := value_codec.class_of_name(name), BaseException):
            raise CodecError("no class of exceptions")
        return cls

    def represent(self, tag: str, detail: Any, parts: list | None = None) -> Any:
        if tag == "e":
            cls = self.error_class(*detail[:2])
            # Of the first class that is implemented in C: no code of another class is called.
            base = next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)
            return base.__new__(cls)
        if tag == "g":
            assert parts is not None
            return (ExceptionGroup if detail else BaseExceptionGroup)(str(parts[0]), parts[1:])
        bits, hash_value, kind, name = detail
        if type(bits) is not int or type(hash_value) not in (int, type(None)) or type(name) is not str:
            raise CodecError("no facts about an object")
        return handles.new(handles.Facts(bits, self.kind_of_name(kind), hash_value, name[:80]))

    def complete(self, error: Any, detail: Any, parts: list) -> None:
        num_args = len(parts) - len(detail[-1])
        error.args = tuple(parts[:num_args])
        for name, value in zip(detail[-1], parts[num_args:], strict=True):
            with suppress(AttributeError, TypeError):
                if name in ("__cause__", "__notes__") or type(error).__module__ == "builtins":
                    if name in ("__cause__", "__notes__") or (
                        name[:1] != "_" and not hasattr(BaseException, name)
                    ):
                        BaseException.__setattr__(error, name, value)
                elif name[:1] != "_" and not hasattr(BaseException, name):
                    vars(error)[str(name)] = value

    def operate(self, operation: str, handle: Any, args: tuple, kwargs: dict) -> Any:
        """Answer an operation on a handle, or on an exception of the other process."""
        bits = handles.facts(handle).bits if handles.is_handle(handle) else -1
        if operation == "__bool__" and not bits & handles.HAS_BOOL:
            return not hasattr(type(handle), "__len__") or len(handle) != 0
        if operation == "__contains__" and not bits & handles.HAS_CONTAINS:
            return any(item is args[0] or item == args[0] for item in handle)
        if operation in ("__eq__", "__ne__") and not bits & handles.HAS_EQ:
            return NotImplemented
        return self.request(operation, handle, args, kwargs)

    def get_attribute(self, handle: Any, name: str) -> Any:
        """Answer `handle.name`."""
        return self.request("getattr", handle, (name,))

    def hash_of(self, handle: Any) -> int:
        """Return the hash that the other process has sent."""
        found = handles.facts(handle)
        if found.hash is None:
            raise TypeError(f"unhashable type: {found.name!r}")
        return found.hash

    def error_to_raise(self, operation: str, error: Any) -> BaseException:
        """Return the exception to raise where the answer to a request is an exception."""
        return error

    def perform(self, operation: str, target: Any, args: tuple, kwargs: dict) -> Any:
        """Do what the other process requests with an object of this process."""
        if function := _FUNCTIONS.get(operation):
            return function(target, *args)
        method = getattr(type(target), operation, None)
        if method is not None:
            return method(target, *args, **kwargs)
        if operation in handles.COMPARISONS | handles.ARITHMETIC:
            return NotImplemented
        raise TypeError(f"{type(target).__name__!r} object has no {operation}")

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
            result = self.perform(
                operation, target, tuple(args[:split]), dict(zip(names, args[split:], strict=True))
            )
        except BaseException as error:
            self.send("e", (error,))
        else:
            self.send("v", (result,))

    def send(self, kind: str, values: tuple, names: tuple = ()) -> None:
        """Write one message.

        Raises:
            MessageTooLarge: Nothing was written.
            OSError: The other process has closed the socket.

        """
        first = self._next_id
        message = _to_json(self.encode_message(kind, values, names)).encode("utf-8", "surrogatepass")
        if len(message) > MAX_BYTES:
            self.retract(first)
            raise MessageTooLarge(f"more than {MAX_BYTES >> 20} MiB of values")
        view = memoryview(len(message).to_bytes(4, "big") + message)
        while view:
            view = view[os.write(PEER_FD, view) :]

    def receive(self) -> tuple[str, list, list]:
        """Read one message.

        Raises:
            Exception: The other process has closed the socket, or sent a malformed message.

        """
        size = int.from_bytes(self._take(4), "big")
        if size > MAX_BYTES:
            raise ValueError("a message that is too large")
        return self.decode_message(_from_json(self._take(size).decode("utf-8", "surrogatepass")))

    def _take(self, size: int) -> bytes:
        """Return the next `size` bytes. Reads what has come, usually a whole message."""
        if len(self._received) < size:
            parts, missing = [self._received], size - len(self._received)
            while missing > 0:
                parts.append(os.read(PEER_FD, 1 << 18))
                if not parts[-1]:
                    raise EOFError("the other process has closed the socket")
                missing -= len(parts[-1])
            self._received = b"".join(parts)
        taken, self._received = self._received[:size], self._received[size:]
        return taken


_HEAP_TYPE = 1 << 9  # in __flags__ of a class that was defined in Python
_MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def _bits_and_hash(value: Any) -> tuple[int, int | None]:
    cls = type(value)

    def defines(name: str) -> bool:  # not hasattr: a metaclass may have it too
        return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None) is not None

    has_eq = cls.__eq__ is not object.__eq__
    found = (
        *map(defines, handles.SHOWN),
        has_eq,
        defines("__bool__"),
        defines("__contains__"),
        value_codec.data_base(cls),
    )
    bits = sum(bool(is_so) << number for number, is_so in enumerate(found))
    try:
        return bits, hash(value)
    except Exception:
        return bits, None


def _attributes(error: BaseException, has_own: bool) -> dict[str, Any]:
    """Return the attributes with which an exception arrives; those of other classes are asked for."""
    attributes = dict(BaseException.__dict__["__dict__"].__get__(error))
    for base in type(error).__mro__:
        if base is BaseException:
            break
        for name, member in vars(base).items():
            if isinstance(member, _MEMBERS) and name not in ("args", "obj"):
                with suppress(AttributeError, TypeError):
                    if (value := member.__get__(error)) is not None:
                        attributes[name] = value
    attributes = {
        name: value
        for name, value in attributes.items()
        if has_own and name[:1] != "_" and value_codec.is_data(value)
    }
    for name in ("__cause__", "__notes__"):
        if (value := getattr(error, name, None)) is not None:
            attributes[name] = value
    return attributes
