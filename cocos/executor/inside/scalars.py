"""Encoding of immutable values without parts between the candidate's process and the judge.

Adds to `value_codec` the values that are costly to handle, which only a process with limits may decode, and
the functions and classes of the standard library that both processes have. They cross by name.
"""

import datetime
import decimal
import fractions
import pathlib
import sys
import types
from typing import Any

import arrays
import value_codec
from value_codec import CodecError

_SHORT = 1 << 63
# Top-level modules whose functions and classes have one name in both processes. `__main__` adds packages.
shared_modules = set(sys.stdlib_module_names)
_CHEAP = frozenset([bytes, complex, *value_codec.DATES.values(), datetime.timedelta, type(...), type])
_PATHS = {kind.__name__: kind for kind in (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)}
_CONSTANTS = {"NotImplemented": NotImplemented}
# The types of the standard library that have no global name.
_NAMELESS = {value: name for name, value in vars(types).items() if isinstance(value, type)}
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def encode(value: Any) -> list | None:
    """Encode a value that is exactly of one of the types of this module; return None for any other."""
    kind = type(value)
    if kind is int:
        return ["i", hex(value)]
    if kind in _CHEAP and (node := value_codec.encode_scalar(value)) is not None:
        return node
    if kind is decimal.Decimal:
        return ["D", str(value)]
    if kind is fractions.Fraction:
        return ["F", hex(value.numerator), hex(value.denominator)]
    if kind is range:
        return ["r", hex(value.start), hex(value.stop), hex(value.step)]
    if _PATHS.get(kind.__name__) is kind:
        return ["P", kind.__name__, str(value)]
    if kind is slice:
        bounds = (value.start, value.stop, value.step)
        if all(bound is None or type(bound) is int for bound in bounds):
            return ["sl", *(bound if bound is None else hex(bound) for bound in bounds)]
    if kind is memoryview:
        return ["mv", value.tobytes().hex()]
    if kind.__name__ == "UUID" and kind.__module__ == "uuid":
        return ["U", hex(value.int)]
    if kind.__module__ == "numpy":
        return arrays.encode_scalar(value)
    return ["c1", "NotImplemented"] if value is NotImplemented else None


def decode(node: list) -> Any:
    """Return the value of a node.

    Raises:
        ValueError, TypeError, KeyError, ArithmeticError: It is malformed.

    """
    tag, *parts = node
    match tag, parts:
        case "i", [str(digits)]:
            return int(digits, 16)
        case "D", [str(text)]:
            return decimal.Decimal(text)
        case "F", [str(numerator), str(denominator)]:
            return fractions.Fraction(int(numerator, 16), int(denominator, 16))
        case "r", [str(start), str(stop), str(step)]:
            return range(int(start, 16), int(stop, 16), int(step, 16))
        case "sl", [_, _, _]:
            return slice(*(None if part is None else int(part, 16) for part in parts))
        case "P", [str(name), str(text)]:
            return _PATHS[name](text)
        case "mv", [str(data)]:
            return memoryview(bytes.fromhex(data))
        case "U", [str(digits)]:
            import uuid  # rarely used, and slow to import

            return uuid.UUID(int=int(digits, 16))
        case "np", [str(dtype), str(data)]:
            return arrays.decode_scalar(dtype, data)
        case "c1", [str(name)]:
            return _CONSTANTS[name]
    if not isinstance(tag, str):
        raise CodecError("no tag")
    return value_codec.decode_scalar(tag, parts)


def global_name(value: Any) -> tuple[str, str] | None:
    """Return module and qualified name of a function or class of a shared module, None for all others."""
    if isinstance(value, type):
        if value in _NAMELESS:
            return "types", _NAMELESS[value]
        module = value.__module__
    elif isinstance(value, _FUNCTIONS):
        owner = getattr(value, "__objclass__", None)
        module = owner.__module__ if owner else value.__module__
    else:
        return None
    name = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module.split(".")[0] not in shared_modules:
        return None
    return (module, name) if _find(module, name) is value else None


def by_name(module: str, name: str) -> Any:
    """Return the function or class of this name, or None; imports nothing."""
    return _find(module, name) if module.split(".")[0] in shared_modules else None


def _find(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def module_attribute(module: str, name: str) -> Any:
    """Return what a loaded module has under this name, or None; calls nothing, and follows no dots."""
    loaded = sys.modules.get(module)
    return vars(loaded).get(name) if module.split(".")[0] in shared_modules and loaded else None
