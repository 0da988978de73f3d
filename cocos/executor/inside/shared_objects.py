"""Encoding of the objects that the candidate's process and the judge share during one test.

A list, for example, exists in both processes, with the same content: every message carries the new content of
each shared container that has changed since the last message. So a change in place, an alias, and `is` mean
what they mean in one process.

Encoded values are JSON: None, bool, str, float and short int as themselves; [5] for the object with number 5;
a list of a tag and its parts for all others (`scalars.py`). A message describes the objects that it mentions
for the first time, one by one, so neither depth nor cycles matter:

    (a, a) with a = [1]      value [2], objects [[2, "t", null, null, [[4], [4]]], [4, "l", null, null, [1]]]

Decoding is strict: whatever the other process sends, it builds nothing but containers, exceptions and proxies
(`remote_classes.py`), or raises.
"""

import decimal
import types
from typing import Any

import containers
import exceptions
import remote_classes
import scalars
from containers import TAGS, plain_base
from object_table import ObjectTable
from value_codec import CodecError

_SHORT = 1 << 63
_ATOMS = frozenset((type(None), bool, float, str))
_CONTAINERS = TAGS.keys() - {int, bytes, complex, decimal.Decimal}


class SharedObjects(ObjectTable):
    """Encoder and decoder of the messages of one process."""

    may_sweep = False  # an object that this process has forgotten may still be of use to the other

    def __init__(self, first_id: int) -> None:
        super().__init__(first_id)
        self._new: list[int] = []  # mentioned, but not yet described
        self._new_classes: list[list] = []  # their descriptions, bases first
        self._proxied: dict[type, int] = {}  # classes of own objects for which the other process has proxies

    # The judge overrides these three.

    def name_of(self, value: Any) -> tuple[str, str] | None:
        """Return the name under which the other process finds a function or class, or None."""
        name = scalars.global_name(value)
        return name if name and scalars.is_harmless(*name, value) else None

    def find(self, module: str, name: str) -> Any:
        """Return the function or class of this name."""
        raise NotImplementedError

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
        is_exception = issubclass(cls, BaseException)
        if issubclass(cls, BaseExceptionGroup):  # cannot be made empty and filled later
            is_exception = False
        if cls in TAGS or cls is object or is_exception:
            name = scalars.global_name(cls)
            if name and scalars.is_harmless(*name, cls):
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

    def decode_message(self, message: Any) -> tuple[str, list, list]:
        """Return kind, values and names of a message, after all objects have been added and changed.

        Raises:
            Exception: The message is malformed. The table is then of no more use.

        """
        kind, nodes, names, classes, objects, changes, dropped = message
        for description in classes:
            self._add_proxy_class(*description)
        self._add_objects(objects)
        for number, content in changes:
            tag = containers.tag_of(self.objects[number])
            if tag not in containers.MUTABLE:
                raise CodecError("a change of what cannot change")
            self.fill(number, tag, self._decode_all(content))
        values = [self.decode(node) for node in nodes]
        self.forget(dropped)
        return kind, values, names

    def decode(self, node: Any) -> Any:
        """Return the value of a node."""
        if type(node) is not list:
            if type(node) is dict:
                raise CodecError("a JSON object is not an encoded value")
            return node
        match node:
            case [int(number)]:
                return self.objects[number]
            case ["n", str(module), str(name)]:
                return self.find(module, name)
            case ["E", str(enum), str(name)]:
                return vars(self.twins[enum])["_member_map_"][name]
        return scalars.decode(node)

    def _decode_all(self, nodes: list) -> list:
        kinds = set(map(type, nodes))
        return [self.decode(node) for node in nodes] if list in kinds or dict in kinds else nodes

    def _add_proxy_class(
        self, number: int, name: str, bases: list, names: list, meta_names: list, real: list | None
    ) -> None:
        if not all(isinstance(item, str) for item in (name, *names, *meta_names, *(real or ()))):
            raise CodecError("a name that is not a string")
        original = twin = None
        if real is not None and real[0] == "":
            twin = self.twins.get(real[1])
        elif real is not None:
            original = scalars.by_name(*real)
            if not isinstance(original, type) or plain_base(original) or issubclass(original, BaseException):
                original = None
        decoded = tuple(map(self.decode, bases))
        self.add_foreign(
            number, remote_classes.make_class(name[:80], decoded, names, meta_names, original, twin)
        )

    def _add_objects(self, descriptions: list) -> None:
        """Make all objects first, then fill them, because they may refer to each other."""
        immutable: dict[int, tuple] = {}
        fill: list[tuple] = []
        for number, tag, class_node, detail, nodes in descriptions:
            cls = None if class_node is None else self.decode(class_node)
            if cls is not None and not isinstance(cls, type):
                raise CodecError("a class that is none")
            if tag in containers.IMMUTABLE:
                immutable[number] = (tag, cls, detail, nodes)
                continue
            self.add_foreign(number, self._new_object(tag, cls, detail, nodes))
            if tag not in ("o", "v"):
                fill.append((number, tag, detail, nodes))
        self._add_immutables(immutable)
        for number, tag, detail, nodes in fill:
            items = self._decode_all(nodes)
            if tag == "e":
                num_args = len(items) - len(detail)
                attributes = dict(zip(detail, items[num_args:], strict=True))
                exceptions.restore(self.objects[number], tuple(items[:num_args]), attributes)
                continue
            if tag == "f":
                containers.set_default_factory(self.objects[number], self.decode(detail))
            self.fill(number, tag, items)

    def _new_object(self, tag: str, cls: type | None, detail: Any, nodes: list) -> Any:
        if tag == "v":
            [node] = nodes
            return containers.new_scalar(cls, self.decode(node))
        if tag == "o" and cls is not None and issubclass(cls, remote_classes.RemoteObject):
            return object.__new__(cls)
        if tag == "e" and cls is not None and issubclass(cls, BaseException):
            return exceptions.new(cls)
        return containers.new(tag, cls, detail)

    def _add_immutables(self, waiting: dict[int, tuple]) -> None:
        """Make tuples and the like, those that others contain first."""
        opened: set[int] = set()
        for first in waiting:
            stack = [first]
            while stack:
                number = stack[-1]
                if number in self.objects:
                    stack.pop()
                    continue
                tag, cls, detail, nodes = waiting[number]
                parts = {node[0] for node in nodes if type(node) is list and len(node) == 1}
                missing = {part for part in parts if type(part) is int} - self.objects.keys()
                if not missing:
                    stack.pop()
                    items = self._decode_all(nodes)
                    self.add_foreign(number, containers.new_immutable(tag, cls, detail, items))
                elif number in opened:
                    raise CodecError("a tuple that contains itself")
                else:
                    opened.add(number)
                    stack += missing
