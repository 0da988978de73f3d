"""Objects that candidate and judge share during one test, by number, and the messages that mention them.

Both processes keep such a table, with the same numbers: one gives 1, 3, 5, ..., the other 2, 4, 6, ... A
list, for example, exists in both, with the same content, and every message carries the new content of each
container that has changed since the last one. So a change in place, an alias, and `is` mean what they mean in
one process.

Encoded values are JSON: None, bool, str, float and short int as themselves; [5] for the object with number 5;
a list of a tag and its parts for other values without parts. A message describes the objects that it mentions
for the first time, one by one, so neither depth nor cycles matter:

    (a, a) with a = [1]      value [2], objects [[2, "t", null, [[4], [4]]], [4, "l", null, [1]]]
"""

import sys
from operator import is_
from typing import Any

import value_codec
from value_codec import CodecError

_ALONE = 3  # references to an object that only the table holds: the table, a variable, the argument
_SMALL_TABLE = 64


class Heap:
    """The table of one process.

    Args:
        first_id: First number for objects of this process.

    """

    may_sweep = False  # an object that this process has forgotten may still be of use to the other

    def __init__(self, first_id: int) -> None:
        self.objects: dict[int, Any] = {}
        self.ids: dict[int, int] = {}  # the numbers by `id()` of the object
        self.lent: set[int] = set()  # own objects for which the other process has a handle
        self.parity = first_id % 2
        self._contents: dict[int, tuple] = {}  # of mutable containers, as the other process knows them
        self._new: list[int] = []  # mentioned, but not yet described
        self._next_id = first_id
        self._swept_size = 0

    # The two ends differ in how objects that are no data cross.

    def encode_object(self, value: Any) -> list | None:
        """Return the node of an object that is no data, if it is known by another way than its number."""
        return None

    def describe(self, value: Any) -> tuple[str, Any, list]:
        """Return tag, details and parts of an object that is no data."""
        raise NotImplementedError

    def represent(self, tag: str, detail: Any, parts: list | None = None) -> Any:
        """Return what stands for an object (tag "o"), an exception ("e") or an exception group ("g")."""
        raise NotImplementedError

    def complete(self, error: Any, detail: Any, parts: list) -> None:
        """Give an exception its parts."""
        raise NotImplementedError

    def decode_special(self, node: list) -> Any:
        """Return the value of a node that only this end knows."""
        return value_codec.decode_scalar(node)

    def factory(self, value: Any) -> Any:
        """Return the factory of a defaultdict, if it is one."""
        return value

    def encode_message(self, kind: str, values: tuple, names: tuple = ()) -> list:
        """Return a message with values, names, and all that is needed to decode the values."""
        first = self._next_id
        try:
            nodes = [self.encode(value) for value in values]
            changes = [[number, self._encode_all(content)] for number, content in self._changed()]
            objects = []
            while self._new:
                number = self._new.pop()
                objects.append(self._describe(number, self.objects[number]))
        except BaseException:
            self.retract(first)
            raise
        return [kind, nodes, names, objects, changes, self._sweep(first) if self.may_sweep else []]

    def encode(self, value: Any) -> Any:
        """Return the node of a value; an object that is new to the other process is described later."""
        kind = type(value)
        if kind in value_codec.ATOMS or (kind is int and -value_codec.SHORT < value < value_codec.SHORT):
            return value
        if (number := self.ids.get(id(value))) is not None:
            return [number]
        if (node := value_codec.encode_scalar(value)) is not None or (
            node := self.encode_object(value)
        ) is not None:
            return node
        self._new.append(self.add(value))
        return [self._new[-1]]

    def add(self, value: Any) -> int:
        """Give an object of this process a number."""
        number = self._next_id
        self._next_id += 2
        self.objects[number] = value
        self.ids[id(value)] = number
        return number

    def _encode_all(self, values: tuple | list) -> list:
        kinds = set(map(type, values))
        if kinds <= value_codec.ATOMS or (
            kinds == {int} and min(values) > -value_codec.SHORT and max(values) < value_codec.SHORT
        ):
            return list(values)
        return [self.encode(value) for value in values]

    def _describe(self, number: int, value: Any) -> list:
        if not (tag := value_codec.tag_of(value)):
            self.lent.add(number)
            tag, detail, parts = self.describe(value)
            return [number, tag, detail, self._encode_all(parts)]
        content = value_codec.content(tag, value)
        if tag not in value_codec.IMMUTABLE:
            self._contents[number] = content
        detail = self.encode(value.default_factory) if tag == "f" else value_codec.details(tag, value)
        return [number, tag, detail, self._encode_all(content)]

    def _changed(self) -> list[tuple[int, tuple]]:
        """Return number and content of each container that has changed since the other process saw it."""
        changes = []
        for number, known in self._contents.items():
            value = self.objects[number]
            content = value_codec.content(value_codec.tag_of(value), value)
            is_same = len(content) == len(known) and all(map(is_, content, known))
            # The bytes of an array are another object each time.
            if not is_same and (type(value).__name__ != "ndarray" or content != known):
                changes.append((number, content))
        self._contents.update(changes)
        return changes

    def decode_message(self, message: Any) -> tuple[str, list, list]:
        """Return kind, values and names of a message, after all objects have been added and changed.

        Raises:
            Exception: The message is malformed. The table is then of no more use.

        """
        kind, nodes, names, objects, changes, dropped = message
        waiting: dict[int, tuple] = {}
        for number, tag, detail, parts in objects:
            if tag in value_codec.IMMUTABLE or tag == "g":
                waiting[number] = (tag, detail, parts)
            elif tag != "e":
                self._add(number, self.represent(tag, detail) if tag == "o" else value_codec.new(tag, detail))
        for number, tag, detail, _ in objects:
            if tag == "e":  # after the classes of exceptions
                self._add(number, self.represent(tag, detail))
        self._add_immutables(waiting)
        for number, tag, detail, parts in objects:
            if tag == "e":
                self.complete(self.objects[number], detail, self.decode_all(parts))
            elif tag != "o" and number not in waiting:
                if tag == "f":
                    self.objects[number].default_factory = self.factory(self.decode(detail))
                self._fill(number, tag, parts)
        for number, parts in changes:
            self._fill(number, value_codec.tag_of(self.objects[number]), parts)
        values = self.decode_all(nodes)
        self.forget(dropped)
        return kind, values, names

    def decode(self, node: Any) -> Any:
        """Return the value of a node."""
        if type(node) is not list:
            if type(node) is dict:
                raise CodecError("a JSON object is not an encoded value")
            return node
        if len(node) == 1 and type(node[0]) is int:
            return self.objects[node[0]]
        return self.decode_special(node)

    def decode_all(self, nodes: list) -> list:
        kinds = set(map(type, nodes))
        return [self.decode(node) for node in nodes] if list in kinds or dict in kinds else nodes

    def _add(self, number: Any, value: Any) -> None:
        if type(number) is not int or number in self.objects or number % 2 == self.parity:
            raise CodecError("a number that is not new")
        self.objects[number] = value
        self.ids[id(value)] = number

    def _fill(self, number: int, tag: str, parts: list) -> None:
        value = self.objects[number]
        value_codec.fill(tag, value, self.decode_all(parts))
        self._contents[number] = value_codec.content(tag, value)

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
                tag, detail, parts = waiting[number]
                inner = {node[0] for node in parts if type(node) is list and len(node) == 1}
                missing = {part for part in inner if type(part) is int and part not in self.objects}
                if not missing:
                    stack.pop()
                    items = self.decode_all(parts)
                    value = (
                        self.represent(tag, detail, items)
                        if tag == "g"
                        else value_codec.new_immutable(tag, items)
                    )
                    self._add(number, value)
                elif number in opened:
                    raise CodecError("a tuple that contains itself")
                else:
                    opened.add(number)
                    stack += missing

    def _sweep(self, first_new: int) -> list[int]:
        """Remove the objects that only the table refers to, and return their numbers.

        Args:
            first_new: First number of those that the other process does not know yet; they stay.

        """
        if _SMALL_TABLE < len(self.objects) < 2 * self._swept_size:
            return []
        dropped = []
        for number in list(self.objects):
            value = self.objects[number]
            is_new = number >= first_new and number % 2 == self.parity
            if sys.getrefcount(value) <= _ALONE and not is_new and number not in self.lent:
                dropped.append(number)
                del self.ids[id(value)], self.objects[number]
                self._contents.pop(number, None)
            del value
        self._swept_size = len(self.objects)
        return dropped

    def retract(self, first: int) -> None:
        """Remove all own objects from this number on, because the other process has not seen them."""
        self.forget(list(range(first, self._next_id, 2)))
        self._new = []

    def forget(self, numbers: list[int]) -> None:
        """Remove these objects from the table."""
        for number in numbers:
            if number in self.objects:
                self.ids.pop(id(self.objects.pop(number)), None)
                self._contents.pop(number, None)
                self.lent.discard(number)
