"""Permissions of the candidate on the objects of a test that it receives.

It may call functions, and use the public attributes and special methods of instances of classes that the test
or the setup defines. A way from an object to the test's code must not exist, because the test's expectation
is there: so no name with a leading underscore, and nothing of functions, frames and modules but the call.
"""

import functools
import sys
import types
from typing import Any

from handles import COMPARISONS, OPERATIONS

MODULE = "test"  # of the classes that test and setup define
# Modules of the standard library whose objects have no way to a test's code or data but their own content.
_OPEN_MODULES = frozenset(
    [MODULE, "_io", "io", "re", "random", "queue", "_queue", "_csv", "argparse", "_struct", "types"]
)
_OPEN_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__doc__"))  # of functions and classes
_TUPLE_ATTRIBUTES = frozenset(("_fields", "_asdict", "_replace", "_make"))
_ITERATOR_OPERATIONS = frozenset(("__iter__", "__next__", "__length_hint__", "send", "throw", "close"))
# Methods are compared by identity; the keys of `cmp_to_key` call the test's function.
_COMPARED: tuple[Any, ...] = (types.BuiltinMethodType, types.MethodType, types.MethodWrapperType)
_COMPARED += (type(functools.cmp_to_key(max)),)
# Top-level modules whose functions and classes have one name in both processes. `__main__` adds packages.
shared_modules = set(sys.stdlib_module_names)
_FUNCTIONS = (
    *(type, types.FunctionType, types.BuiltinFunctionType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
)


def is_permitted(operation: str, target: Any, args: tuple) -> bool:
    """Return whether the candidate may do this with an object of the test."""
    kind = type(target)
    is_open = kind.__module__ in _OPEN_MODULES or (issubclass(kind, type) and target.__module__ == MODULE)
    if operation in ("getattr", "setattr", "delattr"):
        name = args[0] if args and type(args[0]) is str else "_"
        if operation == "getattr" and name in _OPEN_ATTRIBUTES:
            return callable(target)
        return is_open and (name[:1] != "_" or (issubclass(kind, tuple) and name in _TUPLE_ATTRIBUTES))
    if operation in _ITERATOR_OPERATIONS and hasattr(kind, "__next__"):
        return True
    if kind in _COMPARED and operation in COMPARISONS:
        return True
    return operation == "__call__" or (is_open and operation in OPERATIONS)


def parameters(function: types.FunctionType | types.MethodType) -> list[tuple]:
    """Return name, kind and whether there is a default of each parameter, for programs that curry."""
    import inspect  # slow to import

    found = inspect.signature(function).parameters.values()
    return [(p.name, int(p.kind), p.default is not inspect.Parameter.empty) for p in found]


def global_name(value: Any) -> tuple[str, str] | None:
    """Return module and qualified name of a function or class of a shared module, None for all others."""
    if not isinstance(value, _FUNCTIONS):
        return None
    owner = value if isinstance(value, type) else getattr(value, "__objclass__", value)
    module, name = owner.__module__, value.__qualname__
    if not isinstance(module, str) or module.split(".")[0] not in shared_modules:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is value else None
