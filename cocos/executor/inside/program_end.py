"""The program's end of a driven test: it does what the driver asks for and sends data back.

Nothing here is trusted. Objects never leave this process: the driver knows them by expressions that name
them, such as `_kept_[3]`.
"""

import builtins
import json
import os
import sys
from typing import Any

import data_codec
import data_types
from wire_format import MESSAGE_CHARS, PEER_FD

KEPT = "_kept_"  # name of the list of all values that the driver has asked for
MAX_BYTES = 16 << 20  # of one message
_BUILTINS = {name: value for name, value in vars(builtins).items() if name[:1] != "_"}
_to_json, _from_json = json.JSONEncoder().encode, json.JSONDecoder().decode
_compile, _exec, _eval, _read, _write = compile, exec, eval, os.read, os.write
_modules = sys.modules


def serve(namespace: dict) -> None:
    """Answer the driver's requests until its test has ended.

    The first message lists the names of builtins that the program has given to something else. A request is
    [operation, bindings, sources]. Each binding is [name, encoded value], or ["", source to run].

        ["get", ...]    evaluate the expressions, keep the values, and send them as they are then
        ["do", ...]     run the sources
        ["end"]         the test has ended; no answer

    The answer is ["v", item per expression], or for an exception, which is kept too, ["e", number, names of
    its classes, text, encoded arguments, attributes that are data]. An item is one of

        ["d", number, encoded data]
        ["b", number, encoded data]         the data that an instance of a subclass derives from
        ["o", number, name of the class]    an object
    """
    kept = namespace[KEPT] = []
    send([own_builtins(namespace)])
    while (request := receive())[0] != "end":
        operation, bindings, sources = request
        try:
            shared: dict[int, Any] = {}
            for name, value in bindings:
                if name:
                    namespace[name] = data_codec.decode(value, shared)
                else:
                    _exec(_compile(value, "<test>", "exec", 0, True), namespace)
            if operation == "do":
                for source in sources:
                    _exec(_compile(source, "<test>", "exec", 0, True), namespace)
                answer: list = ["v"]
            else:
                first = len(kept)
                for source in sources:
                    kept.append(_eval(_compile(source, "<test>", "eval", 0, True), namespace))
                answer = ["v", *[_item(number, kept[number]) for number in range(first, len(kept))]]
        except BaseException as error:
            kept.append(error)
            names = list(map(_class_name, type(error).__mro__[:-1]))
            answer = ["e", len(kept) - 1, names, _text(error), _data(error.args), _attributes(error)]
        try:
            send(answer)
        except (MemoryError, RecursionError, OverflowError) as error:
            name = f"builtins.{type(error).__name__}"
            send(["e", 0, [name, "builtins.Exception"], "while a value was sent", None, []])


def own_builtins(namespace: dict) -> list[str]:
    """Return the names of builtins that the program has given to something else."""
    # Not the builtins one by one: touching each of them costs a copy of its page.
    return [name for name in _BUILTINS.keys() & namespace if namespace[name] is not _BUILTINS[name]]


def send(message: list) -> None:
    """Write one message."""
    data = _to_json(message).encode()
    if len(data) > MAX_BYTES:
        raise OverflowError
    view = memoryview(len(data).to_bytes(4, "big") + data)
    while view:
        view = view[_write(PEER_FD, view) :]


def receive() -> list:
    """Read one message; raise EOFError if the other process has ended, or sends none."""
    size = int.from_bytes(_read_exactly(4), "big")
    if size > MAX_BYTES:
        raise EOFError
    return _from_json(_read_exactly(size).decode())


def _read_exactly(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        if not (part := _read(PEER_FD, size - len(data))):
            raise EOFError("the other process has ended")
        data += part
    return bytes(data)


def _item(number: int, value: Any) -> list:
    try:
        return ["d" if data_types.is_data(value) else "b", number, data_codec.encode(value)]
    except (data_codec.NotData, ValueError, TypeError, AttributeError):
        return ["o", number, str(type(value).__name__)[:80]]


def _data(value: Any) -> Any:
    try:
        return data_codec.encode(value)
    except (data_codec.NotData, ValueError, TypeError, AttributeError):
        return None


def _attributes(error: BaseException) -> list:
    found = BaseException.__dict__["__dict__"].__get__(error)
    return [[name, node] for name, value in found.items() if (node := _data(value)) is not None]


def _class_name(cls: type) -> str:
    """Return module and name of a class; "?" in place of a module that has another class of this name."""
    module = cls.__module__
    found = vars(_modules[module]).get(cls.__name__) if module in _modules else None
    return f"{module if found is cls else '?'}.{cls.__qualname__}"


def _text(error: BaseException) -> str:
    try:
        return str(str(error))[:MESSAGE_CHARS]
    except BaseException as worse:
        return f"<{type(worse).__name__} in __str__>"
