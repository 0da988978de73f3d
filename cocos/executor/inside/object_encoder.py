"""Encoding of the objects that the candidate's process and the judge share during one test.

Encoded values are JSON: None, bool, str, float and short int as themselves; [5] for the object with number 5;
a list of a tag and its parts for all others (`scalars.py`). A message describes the objects that it mentions
for the first time, one by one, so neither depth nor cycles matter:

    (a, a) with a = [1]      value [2], objects [[2, "t", null, null, [[4], [4]]], [4, "l", null, null, [1]]]
"""

import decimal
import types
from typing import Any

import containers
import exceptions
import remote_classes
import scalars
import shared_names
from containers import TAGS, plain_base
from object_table import ObjectTable

_SHORT = 1 << 63
_ATOMS = frozenset((type(None), bool, float, str))
_CONTAINERS = TAGS.keys() - {int, bytes, complex, decimal.Decimal}


class ObjectEncoder(ObjectTable):
    """Table that encodes messages."""

    may_sweep = False  # an object that this process has forgotten may still be of use to the other

    def __init__(self, first_id: int) -> None:
        super().__init__(first_id)
        self._new: list[int] = []  # mentioned, but not yet described
        self._new_classes: list[list] = []  # their descriptions, bases first
        self._proxied: dict[type, int] = {}  # classes of own objects for which the other process has proxies

    def name_of(self, value: Any) -> tuple[str, str] | None:
        """Return the name under which the other process finds a function or class, or None."""
        name = scalars.global_name(value)
        return name if name in shared_names.NAMES else None

    def describe_exception(self, error: BaseException) -> tuple[tuple, dict[str, Any]]:
        """Return arguments and attributes of an exception."""
        return exceptions.describe(error)

    def encode_message(self, kind: str, values: tuple, names: tuple = ()) -> list:
        """Return a message with values, names, and all that is needed to decode the values."""
        first = self._next_id
        try:
            nodes = [self.encode(value) for value in values]
            changes = [[number, self._encode_all(content)] for number, content in self.changed()]
            objects = []
            while self._new:
                number = self._new.pop()
                objects.append(self._describe(number, self.objects[number]))
        except BaseException:
            self.retract(first)
            raise
        classes, self._new_classes = self._new_classes, []
        dropped = self.sweep(first) if self.may_sweep else []
        return [kind, nodes, names, classes, objects, changes, dropped]

    def retract(self, first: int) -> None:
        super().retract(first)
        self._proxied = {cls: number for cls, number in self._proxied.items() if number < first}
        self._new, self._new_classes = [], []

    def encode(self, value: Any) -> Any:
        """Return the node of a value; an object that is new to the other process is described later."""
        kind = type(value)
        if kind in _ATOMS or (kind is int and -_SHORT < value < _SHORT):
            return value
        if (number := self.ids.get(id(value))) is not None:
            return [number]
        if kind not in _CONTAINERS:
            if (node := scalars.encode(value)) is not None:
                return node
            if issubclass(kind, types.TracebackType):
                return None
            if (name := self.name_of(value)) is not None:
                return ["n", *name]
            if self.twins and (node := self._encode_twins_member(value)) is not None:
                return node
            if issubclass(kind, type):
                return [self._add_class(value)]
        number = self.add_own(value)
        self._new.append(number)
        return [number]

    def _encode_twins_member(self, value: Any) -> list | None:
        """Encode a member of an Enum that both processes have."""
        cls = type(value)
        is_enum = isinstance(getattr(cls, "__members__", None), types.MappingProxyType)
        return ["E", cls.__name__, value.name] if is_enum and self.twins.get(cls.__name__) is cls else None

    def _encode_all(self, values: tuple) -> list:
        kinds = set(map(type, values))
        if kinds <= _ATOMS or (kinds == {int} and min(values) > -_SHORT and max(values) < _SHORT):
            return list(values)
        return [self.encode(value) for value in values]

    def _describe(self, number: int, value: Any) -> list:
        """Return [number, tag, class if it is not the tag's own, details, content]."""
        cls = type(value)
        tag = containers.tag_of(value)
        is_exact = cls in TAGS or tag == containers.ARRAY
        node = self._class_node(cls) if tag == "n" or not is_exact else None
        if not is_exact:
            self._lent.add(number)
        if not tag:
            if not issubclass(cls, BaseException):
                return [number, "o", node, None, []]
            args, attributes = self.describe_exception(value)
            children = [self.encode(part) for part in (*args, *attributes.values())]
            return [number, "e", node, [str(name) for name in attributes], children]
        if tag == "v":
            return [number, tag, node, None, [self._encode_scalar(plain_base(cls), value)]]
        detail = self.encode(value.default_factory) if tag == "f" else containers.details(tag, value)
        content = containers.content(tag, value)
        if tag in containers.MUTABLE:
            self._contents[number] = content
        return [number, tag, node, detail, self._encode_all(content)]

    def _encode_scalar(self, base: Any, value: Any) -> Any:
        for plain, convert in ((int, int.__index__), (float, float.__float__), (str, str.__str__)):
            if base is plain:
                return self.encode(convert(value))
        return scalars.encode(base(value))

    def _class_node(self, cls: type) -> list:
        """Return the node of an object's class. A class that the judge may not use becomes one of proxies."""
        if (number := self.ids.get(id(cls))) is not None:
            return [number]
        # An exception group cannot be made empty and filled later, so it crosses as another exception.
        is_exception = issubclass(cls, BaseException) and not issubclass(cls, BaseExceptionGroup)
        if cls in TAGS or cls is object or is_exception:
            name = scalars.global_name(cls)
            if name in shared_names.NAMES:
                return ["n", *name]
        if cls not in self._proxied:
            self._proxied[cls] = self._add_class(cls)
        return [self._proxied[cls]]

    def _add_class(self, cls: type) -> int:
        # A class that crosses by name is one thing, the class of its instances' proxies another.
        number = self.add_own(cls, is_reachable=self.name_of(cls) is None)
        names, meta_names = remote_classes.describe(cls, plain_base(cls))
        bases = [self._class_node(parent) for parent in cls.__bases__]
        real = ["", cls.__name__] if self.twins.get(cls.__name__) is cls else scalars.global_name(cls)
        self._new_classes.append([number, str(cls.__name__), bases, names, meta_names, real])
        return number
