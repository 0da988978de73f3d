"""Table of the objects that candidate and judge share during one test.

Both processes keep one, with the same numbers. One process numbers its objects 1, 3, 5, ..., the other
2, 4, 6, ... A list, for example, exists in both processes, with the same content: every message carries the
new content of each shared container that has changed since the last message. So a change in place, an alias,
and `is` mean what they mean in one process.
"""

import sys
from operator import is_
from typing import Any

import containers
from value_codec import CodecError

_ALONE = 3  # references to an object that only the table holds: the table, a variable, the argument
_SMALL_TABLE = 64


class ObjectTable:
    """The table of one process.

    Args:
        first_id: First number for objects of this process.

    Attributes:
        objects: The objects by number.
        ids: The numbers by `id()` of the object.
        twins: Classes of the setup, by name. Both processes have run the setup.

    """

    def __init__(self, first_id: int) -> None:
        self.objects: dict[int, Any] = {}
        self.ids: dict[int, int] = {}
        self.twins: dict[str, type] = {}
        self._contents: dict[int, tuple] = {}  # of mutable containers, as the other process knows them
        self._lent: set[int] = set()  # own objects for which the other process has a proxy
        self._parity = first_id % 2
        self._next_id = first_id
        self._swept_size = 0

    def add_own(self, value: Any, is_reachable: bool = True) -> int:
        """Give an object of this process a number; if it is reachable, the number stands for the object."""
        number = self._next_id
        self._next_id += 2
        self.objects[number] = value
        if is_reachable:
            self.ids[id(value)] = number
        return number

    def add_foreign(self, number: Any, value: Any) -> None:
        """Add the representative of an object of the other process."""
        if type(number) is not int or number in self.objects or number % 2 == self._parity:
            raise CodecError("a number that is not new")
        self.objects[number] = value
        self.ids[id(value)] = number

    def fill(self, number: int, tag: str, items: list) -> None:
        """Replace the content of a container by what the other process has sent."""
        value = self.objects[number]
        containers.fill(tag, value, items)
        self._contents[number] = containers.content(tag, value)

    def changed(self) -> list[tuple[int, tuple]]:
        """Return number and content of each container that has changed since the other process saw it."""
        changes = []
        for number, known in self._contents.items():
            value = self.objects[number]
            tag = containers.tag_of(value)
            content = containers.content(tag, value)
            if tag == containers.ARRAY and content == known:  # its bytes are another object each time
                continue
            if len(content) != len(known) or not all(map(is_, content, known)):
                changes.append((number, content))
        self._contents.update(changes)
        return changes

    def sweep(self, first_new: int) -> list[int]:
        """Remove the objects that only the table refers to, and return their numbers.

        Args:
            first_new: First number of those that the other process does not know yet; they stay.

        """
        if _SMALL_TABLE < len(self.objects) < 2 * self._swept_size:
            return []
        dropped = []
        for number in list(self.objects):
            value = self.objects[number]
            is_new = number >= first_new and number % 2 == self._parity
            if (
                sys.getrefcount(value) <= _ALONE
                and not is_new
                and number not in self._lent
                and not isinstance(value, type)
            ):
                dropped.append(number)
                del self.ids[id(value)], self.objects[number]
                self._contents.pop(number, None)
            del value
        self._swept_size = len(self.objects)
        return dropped

    def retract(self, first: int) -> None:
        """Remove all own objects from this number on, because the other process has not seen them."""
        self.forget(list(range(first, self._next_id, 2)))

    def forget(self, numbers: list[int]) -> None:
        """Remove these objects from the table."""
        for number in numbers:
            if number in self.objects:
                self.ids.pop(id(self.objects.pop(number)), None)
                self._contents.pop(number, None)
                self._lent.discard(number)
