"""Decoding of the objects that the candidate's process and the judge share during one test.

Decoding is strict: whatever the other process sends, it builds nothing but containers, exceptions and proxies
(`remote_classes.py`), or raises. `object_encoder.py` describes the format.
"""

from typing import Any

import containers
import exceptions
import remote_classes
import scalars
from containers import plain_base
from object_table import ObjectTable
from operations import FORWARDED, GENERATOR_METHODS
from value_codec import CodecError


class ObjectDecoder(ObjectTable):
    """Table that decodes messages."""

    def find(self, module: str, name: str) -> Any:
        """Return the function or class of this name."""
        raise NotImplementedError

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
            original = scalars.module_attribute(*real)
            if not isinstance(original, type) or plain_base(original) or issubclass(original, BaseException):
                original = None
        decoded = tuple(map(self.decode, bases))
        if not all(map(_may_be_base, decoded)) or not all(_may_be_forwarded(item, decoded) for item in names):
            raise CodecError("a class that no program has")
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
                missing = {part for part in parts if type(part) is int and part not in self.objects}
                if not missing:
                    stack.pop()
                    items = self._decode_all(nodes)
                    self.add_foreign(number, containers.new_immutable(tag, cls, detail, items))
                elif number in opened:
                    raise CodecError("a tuple that contains itself")
                else:
                    opened.add(number)
                    stack += missing


def _may_be_base(base: Any) -> bool:
    return isinstance(base, type) and (
        base is object
        or base in containers.TAGS
        or isinstance(base, remote_classes.RemoteType)
        or issubclass(base, BaseException)
    )


def _may_be_forwarded(item: str, bases: tuple[type, ...]) -> bool:
    """Return whether `remote_classes.describe` can have listed this operation of a class with these bases."""
    name = item.removeprefix("-")
    if name in FORWARDED or name in GENERATOR_METHODS or name == "__class_getitem__":
        return True
    return name[:1] != "_" and any(hasattr(plain_base(base), name) for base in bases)
