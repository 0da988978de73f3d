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
_OPEN_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__doc__"))
_TUPLE_ATTRIBUTES = frozenset(("_fields", "_asdict", "_replace", "_make"))
_ITERATOR_OPERATIONS = frozenset(("__iter__", "__next__", "__length_hint__", "send", "throw", "close"))
_IDENTITY = frozenset(("__eq__", "__ne__", "__hash__"))
_MORE_OPERATIONS = {
    **dict.fromkeys((types.BuiltinMethodType, types.MethodType, types.MethodWrapperType), _IDENTITY),
    type(functools.cmp_to_key(max)): COMPARISONS,  # these call the test's function
}
# Modules of the standard library whose objects have no way to a test's code or data but their own content.
_OPEN_MODULES = frozenset(["_io", "io", "re", "random", "queue", "_queue", "_csv", "argparse", "_struct"])
# Top-level modules whose functions and classes have one name in both processes. `__main__` adds packages.
shared_modules = set(sys.stdlib_module_names)
_FUNCTIONS = (
    *(type, types.FunctionType, types.BuiltinFunctionType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType),
)


def is_permitted(operation: str, target: Any, args: tuple) -> bool:
    """Return whether the candidate may do this with an object of the test."""
    kind = type(target)
    is_open = kind.__module__ == MODULE or kind.__module__ in _OPEN_MODULES or kind is types.SimpleNamespace
    if operation in ("__copy__", "__deepcopy__"):
        return is_open
    if operation in ("getattr", "setattr", "delattr"):
        name = args[0] if args else None
        if not isinstance(name, str):
            return False
        if operation == "getattr" and name in _OPEN_ATTRIBUTES:
            return callable(target)
        if name.startswith("_"):
            return isinstance(target, tuple) and is_open and name in _TUPLE_ATTRIBUTES
        return is_open or (isinstance(target, type) and target.__module__ == MODULE)
    if operation not in OPERATIONS | _ITERATOR_OPERATIONS or not hasattr(kind, operation):
        return False
    if is_open or (isinstance(target, type) and target.__module__ == MODULE):
        return True
    if operation in _ITERATOR_OPERATIONS:
        return hasattr(kind, "__next__")
    return operation == "__call__" or operation in _MORE_OPERATIONS.get(kind, ())


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
