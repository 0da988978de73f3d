"""Arrays and scalars of numpy between the candidate's process and the judge, which cross by value.

Nothing here is used if numpy is not among the packages of programs. Arrays of objects, records, and instances
of subclasses such as numpy.matrix cross as other objects do, by proxy. A view crosses as an array of its own.
"""

import re
import sys
from typing import Any

_TYPE = re.compile(r"[<>|=]([biufcSU]\d+|[mM]8(\[\w+\])?)")  # numbers, strings and dates, as `dtype.str`


def is_array(value: Any) -> bool:
    """Return whether a value is an array that crosses by value."""
    cls = type(value)
    return cls.__name__ == "ndarray" and _is_of(cls, "ndarray") and bool(_TYPE.fullmatch(value.dtype.str))


def content(array: Any) -> tuple:
    """Return the bytes of an array and its shape."""
    return (array.tobytes(), *array.shape)


def new(dtype: str) -> Any:
    """Return an empty array for elements of this type."""
    return _numpy().empty(0, _checked(dtype))


def fill(array: Any, data: bytes, shape: list[int]) -> None:
    """Replace shape and elements of an array in place.

    Raises:
        ValueError: The bytes do not fill the shape, or the number of elements has changed.

    """
    elements = _numpy().frombuffer(data, array.dtype).reshape(shape)
    if array.shape != elements.shape:
        # A view of the array would keep the memory that a resize frees. An empty array has no memory to view.
        if array.size and array.size != elements.size:
            raise ValueError("an array that has changed its size in place")
        array.resize(elements.shape, refcheck=False)
    array[...] = elements


def encode_scalar(value: Any) -> list | None:
    """Encode a scalar of numpy, such as numpy.int64(3); return None for any other value."""
    cls = type(value)
    if not _is_of(cls, cls.__name__) or not issubclass(cls, _numpy().generic):
        return None
    dtype = value.dtype.str
    return ["np", dtype, value.tobytes().hex()] if _TYPE.fullmatch(dtype) else None


def decode_scalar(dtype: str, data: str) -> Any:
    """Return the scalar that `encode_scalar` has encoded; raise ValueError if it is malformed."""
    [scalar] = _numpy().frombuffer(bytes.fromhex(data), _checked(dtype))
    return scalar


def _checked(dtype: str) -> str:
    if not _TYPE.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is no type of elements")
    return dtype


def _is_of(cls: type, name: str) -> bool:
    """Return whether numpy is loaded and this is its class of this name."""
    return getattr(sys.modules.get("numpy"), name, None) is cls


def _numpy() -> Any:
    """Return the module if it is loaded; nothing that a process sends makes the other import it."""
    return sys.modules["numpy"]
