"""Classes whose instances stand for objects of the other process.

During a judged test, an object of the candidate is represented in the judge by a proxy, and the reverse. A
proxy's class is made here, with the name, the bases and the special methods of the original's class. So
`isinstance`, `except`, `callable`, `iter` and `with` treat a proxy as they would treat the original. What a
proxy does is a request to the other process (`conversation.py`); which requests are made and answered is
decided there and in `judge.py`.
"""

import abc
import collections
import functools
import types
from typing import Any

from operations import COMPARISONS, CONVERSIONS, FORWARDED, GENERATOR_METHODS

_HEAP_TYPE = 1 << 9  # in __flags__ of a class that was defined in Python

_conversation: Any = None


def connect(conversation: Any) -> None:
    """Let all proxies of this process send their requests through this conversation."""
    global _conversation
    _conversation = conversation


def _forwarder(operation: str):
    def method(self, *args, **kwargs):
        return _conversation.forward(operation, self, args, kwargs)

    method.__name__ = method.__qualname__ = operation
    return method


def _attribute(name: str) -> property:
    return property(lambda self: _conversation.forward("getattr", self, (name,), {}))


def _copy(self):
    return _conversation.forward("copy", self, (), {})


def _deepcopy(self, memo):
    return _conversation.forward("deepcopy", self, (), {})


def _class_getitem(cls, item):
    return _conversation.forward("getattr", cls, ("__class_getitem__",), {})(item)


def _counter_comparison(operation: str):
    def method(self, other):
        exact: collections.Counter = collections.Counter()
        dict.update(exact, dict.items(self))
        return getattr(exact, operation)(other)

    return method


_FORWARDERS = {name: _forwarder(name) for name in FORWARDED | GENERATOR_METHODS}


def _refuse_array_protocol(name: str) -> None:
    """Refuse the attributes with which an object tells numpy what to do, or at which address to read.

    `__array__` remains, which returns an array.
    """
    if name.startswith("__array_") and name != "__array__":
        raise AttributeError(name)


class RemoteType(type):
    """Metaclass of the proxies' classes. A call of such a class makes an object in the other process."""

    __doc__ = _attribute("__doc__")

    def __new__(cls, name, bases, namespace, made_here=False):
        if not made_here:
            _conversation.cannot("defines a subclass of a class of the program")
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, made_here=False):
        super().__init__(name, bases, namespace)

    __call__ = _forwarder("__call__")
    __hash__ = type.__hash__

    def __eq__(cls, other):
        return _conversation.compare_identity(cls, other)

    def __getattr__(cls, name):
        _refuse_array_protocol(name)
        return _conversation.forward("getattr", cls, (name,), {})

    def __setattr__(cls, name, value):
        if name in ("_abc_impl", "__abstractmethods__"):  # ABCMeta sets them
            super().__setattr__(name, value)
        else:
            _conversation.forward("setattr", cls, (name, value), {})

    def __delattr__(cls, name):
        _conversation.forward("delattr", cls, (name,), {})


class RemoteObject:
    """Base class of all objects that have an original in the other process."""

    __slots__ = ()

    def __getattr__(self, name):
        _refuse_array_protocol(name)
        return _conversation.forward("getattr", self, (name,), {})

    def __setattr__(self, name, value):
        _conversation.forward("setattr", self, (name, value), {})

    def __delattr__(self, name):
        _conversation.forward("delattr", self, (name,), {})


class Proxy(RemoteObject):
    """Base class of objects that are only in the other process; not of lists, say, which are in both."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__

    def __eq__(self, other):
        return _conversation.compare_identity(self, other)


class _Twin(RemoteObject):
    """Base class of proxies for instances of a class of the setup, which both processes have.

    Methods and properties of this process's class run here; all other attributes are the original's.
    """

    __slots__ = ()

    def __getattribute__(self, name):
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        for klass in type(self).__mro__:
            if name in vars(klass):
                if hasattr(type(vars(klass)[name]), "__get__"):
                    return object.__getattribute__(self, name)
                break
        return _conversation.forward("getattr", self, (name,), {})

    def __setattr__(self, name, value):
        if any(isinstance(vars(klass).get(name), property) for klass in type(self).__mro__):
            object.__setattr__(self, name, value)
        else:
            _conversation.forward("setattr", self, (name, value), {})


def describe(cls: type, plain_base: type | None) -> tuple[list[str], list[str]]:
    """Return the names of the operations that a class and its metaclass define; "-" precedes a missing one.

    Args:
        cls: The class.
        plain_base: The first of its bases whose instances are in both processes, or None. Then the names that
            override attributes of this base are listed too.

    """
    names = [
        name if value is not None else f"-{name}"
        for name, value in vars(cls).items()
        if name in FORWARDED or (plain_base and name[:1] != "_" and hasattr(plain_base, name))
    ]
    if cls is types.GeneratorType:
        names += GENERATOR_METHODS
    if "__class_getitem__" in vars(cls):
        names.append("__class_getitem__")
    meta = [name for kind in type.mro(type(cls)) if kind not in (type, object) for name in vars(kind)]
    return names, sorted((FORWARDED - CONVERSIONS - {"__call__"}).intersection(meta))


def make_class(
    name: str,
    bases: tuple[type, ...],
    names: list[str],
    meta_names: list[str],
    real: type | None = None,
    twin: type | None = None,
) -> type:
    """Make the class of proxies for the instances of one class.

    Args:
        name: Name of the class.
        bases: Classes of this process that stand for the bases of the class.
        names: Its operations, as `describe` returns them.
        meta_names: The operations of its metaclass.
        real: Class that `isinstance` must find, for a class of the standard library.
        twin: Class of this process that the same source has defined; its methods are then used.

    """
    is_local = any(not issubclass(base, Proxy) and base is not object for base in bases)  # content, exception
    metaclass = _metaclass(tuple(meta_names), abc.ABCMeta in map(type, (*bases, twin)))
    namespace: dict[str, Any] = {"__slots__": (), "__module__": __name__}
    if "__next__" not in names:  # itertools.tee would copy an iterator
        namespace |= {"__copy__": _copy, "__deepcopy__": _deepcopy}
    if twin is not None:
        keeps_content = is_local or issubclass(twin, BaseException)
        own = {"__class__": property(lambda self: twin)}  # dataclasses compare `other.__class__`
        try:
            if keeps_content:
                return metaclass(name, (twin, RemoteObject), namespace, made_here=True)
            return metaclass(name, (_Twin, twin), {**namespace, **own}, made_here=True)
        except TypeError:  # the twin's metaclass or layout does not combine with ours
            pass
    if not is_local:
        namespace["__doc__"] = _attribute("__doc__")
    for operation in names:
        if operation.startswith("-"):
            namespace[operation[1:]] = None
        elif operation in _FORWARDERS:
            namespace[operation] = _FORWARDERS[operation]
        elif operation == "__class_getitem__":
            namespace[operation] = classmethod(_class_getitem)
        else:
            namespace[operation] = _attribute(operation)
    if any(issubclass(base, collections.Counter) for base in bases):  # its comparison asks its own methods
        namespace |= {name: _counter_comparison(name) for name in COMPARISONS - {"__contains__"}}
    if "__len__" in namespace and "__bool__" not in namespace and not is_local:
        namespace["__bool__"] = lambda self: _conversation.truth_of_length(self)
    if real is not None:
        namespace["__class__"] = property(lambda self: real)
    bases = tuple(base for base in bases if base is not object)
    root = RemoteObject if is_local else Proxy
    if not any(issubclass(base, root) for base in bases):
        bases += (root,)
    for attempt in (bases, (root,)):
        try:
            return metaclass(name, attempt, namespace, made_here=True)
        except TypeError:  # metaclasses of the bases conflict, or their order
            continue
    raise TypeError(f"no class can be made for {name}")


@functools.cache
def _metaclass(names: tuple[str, ...], is_abstract: bool) -> Any:
    """Return the metaclass of proxies whose original's metaclass defines these operations."""
    bases = (RemoteType, abc.ABCMeta) if is_abstract else (RemoteType,)
    return type("RemoteType", bases, {name: _FORWARDERS[name] for name in names})


def static_base(cls: type) -> type:
    """Return the first base that is implemented in C."""
    return next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)
