"""Objects that the candidate's process and the judge share during one test, and their encoding.

Both processes keep a table of the objects that have crossed, under the same numbers. A list, for example,
exists in both, with the same content: every message carries the new content of each shared container that has
changed since the last message. So a change in place, an alias, and `is` mean what they mean in one process.

Encoded values are JSON: None, bool, str, float and short int as themselves; [5] for the object with number 5;
a list of a tag and its parts for all others (`scalars.py`). A message describes the objects that it mentions
for the first time, one by one, so neither depth nor cycles matter:

    (a, a) with a = [1]      value [2], objects [[2, "t", null, null, [[4], [4]]], [4, "l", null, null, [1]]]

`decode` is strict: whatever the other process sends, it builds nothing but containers, exceptions and proxies
(`remote_classes.py`), or raises.
"""

import array
import collections
import decimal
import sys
import types
from operator import is_
from typing import Any

import arrays
import exceptions
import remote_classes
import scalars
from value_codec import CodecError

_SHORT = 1 << 63
_KEYS, _VALUES, _ITEMS = type({}.keys()), type({}.values()), type({}.items())
# The tag of each class whose instances exist in both processes.
_TAGS: dict[type, str] = {
    **{list: "l", tuple: "t", set: "s", frozenset: "z", dict: "d", bytearray: "B", array.array: "a"},
    **{collections.Counter: "C", collections.OrderedDict: "O", collections.defaultdict: "f"},
    **{collections.deque: "q", types.SimpleNamespace: "n", collections.UserDict: "n"},
    **{collections.UserList: "n", collections.UserString: "n", _KEYS: "k", _VALUES: "k", _ITEMS: "m"},
    **dict.fromkeys((int, float, str, bytes, complex, decimal.Decimal), "v"),
}
_MUTABLE = frozenset("lsdBaCOfqnN")
_MAPPINGS = frozenset("dCOf")
_ATOMS = frozenset((type(None), bool, float, str))
_DEFAULT_FACTORY: Any = vars(collections.defaultdict)["default_factory"]
_DROPPED_TYPES = (types.TracebackType,)
_ALONE = 3  # references to an object that only the table holds: the table, a variable, the argument
_SMALL_TABLE = 64


class SharedObjects:
    """The table of one process.

    Args:
        first_id: First number for objects of this process; it uses every second number, the other process
            those in between.

    """

    def __init__(self, first_id: int) -> None:
        self.objects: dict[int, Any] = {}
        self.ids: dict[int, int] = {}  # by id() of the object
        self.twins: dict[str, type] = {}  # classes of the setup, which both processes have
        self.plain_bases: dict[type, type] = {}  # of classes whose instances exist in both processes
        self._contents: dict[int, tuple] = {}  # of mutable containers, as the other process knows them
        self._parity = first_id % 2
        self._next_id = first_id
        self._new: list[int] = []  # mentioned, but not yet described
        self._new_classes: list[list] = []  # their descriptions, bases first
        self._proxied: dict[type, int] = {}  # classes of own objects for which the other process has proxies
        self._lent: set[int] = set()  # own objects for which the other process has a proxy
        self._swept_size = 0

    may_sweep = False  # the other process may still need the objects of this one

    # -- what a process may allow or refuse -------------------------------------------------------------------

    def name_of(self, value: Any) -> tuple[str, str] | None:
        """Return the name under which the other process finds a function or class, or None."""
        name = scalars.global_name(value)
        return name if name and scalars.is_harmless(*name, value) else None

    def find(self, module: str, name: str) -> Any:
        """Return the function or class of this name."""
        raise NotImplementedError

    def describe_exception(self, error: BaseException) -> tuple[tuple, dict[str, Any]]:
        return exceptions.describe(error)

    # -- encoding ---------------------------------------------------------------------------------------------

    def encode(self, value: Any) -> Any:
        """Return the node of a value; an object that is new to the other process is described later."""
        kind = type(value)
        if kind in _ATOMS or (kind is int and -_SHORT < value < _SHORT):
            return value
        if (number := self.ids.get(id(value))) is not None:
            return [number]
        if kind not in _TAGS or kind in (int, bytes, complex, decimal.Decimal):
            if (node := scalars.encode(value)) is not None:
                return node
            if issubclass(kind, _DROPPED_TYPES):
                return None
            if (name := self.name_of(value)) is not None:
                return ["n", *name]
            if self.twins and (node := self._encode_twins_member(value)) is not None:
                return node
            if issubclass(kind, type):
                return [self._add_class(value)]
        number = self._add(value)
        self._new.append(number)
        return [number]

    def _encode_twins_member(self, value: Any) -> list | None:
        """Encode a member of an Enum that both processes have."""
        cls = type(value)
        name = cls.__name__
        if self.twins.get(name) is cls and isinstance(
            getattr(cls, "__members__", None), types.MappingProxyType
        ):
            return ["E", name, value.name]
        return None

    def _add(self, value: Any) -> int:
        number = self._next_id
        self._next_id += 2
        self.objects[number] = value
        self.ids[id(value)] = number
        return number

    def _describe_new(self) -> list[list]:
        """Return the description of every object that is mentioned for the first time."""
        described: list[list] = []
        while self._new:
            number = self._new.pop()
            described.append(self._describe(number, self.objects[number]))
        return described

    def _describe(self, number: int, value: Any) -> list:
        cls = type(value)
        if arrays.is_array(value):
            self._contents[number] = content = arrays.content(value)
            return [number, "N", None, value.dtype.str, self._encode_all(content)]
        base = cls if cls in _TAGS else plain_base(cls)
        node = None if base is cls else self._class_node(cls)
        if node is not None:
            self._lent.add(number)
        if base is None:
            if issubclass(cls, BaseException):
                args, attributes = self.describe_exception(value)
                children = [self.encode(part) for part in (*args, *attributes.values())]
                return [number, "e", node, [name for name in attributes if isinstance(name, str)], children]
            return [number, "o", node, None, []]
        tag = _TAGS[base]
        extra: Any = None
        if tag == "q":
            extra = value.maxlen
        elif tag == "a":
            extra = value.typecode
        elif tag == "f":
            extra = self.encode(value.default_factory)
        elif tag == "n":
            node = self._class_node(cls)
        elif tag == "k":
            extra = "k" if base is _KEYS else "v"
        if tag == "v":
            return [number, tag, node, extra, [self._encode_scalar(base, value)]]
        content = _content(tag, value)
        if tag in _MUTABLE:
            self._contents[number] = content
        return [number, tag, node, extra, self._encode_all(content)]

    def _encode_scalar(self, base: type, value: Any) -> Any:
        if base is int:
            return self.encode(int.__index__(value))
        if base is float:
            return float.__float__(value)
        if base is str:
            return str.__str__(value)
        return scalars.encode(base(value))

    def _encode_all(self, values: tuple) -> list:
        kinds = set(map(type, values))
        if kinds <= _ATOMS or (kinds == {int} and -_SHORT < min(values) and max(values) < _SHORT):
            return list(values)
        return [self.encode(value) for value in values]

    def _add_class(self, cls: type) -> int:
        number = self._next_id
        self._next_id += 2
        self.objects[number] = cls
        if (
            self.name_of(cls) is None
        ):  # a class that crosses by name is one thing, that of its proxies another
            self.ids[id(cls)] = number
        base = plain_base(cls)
        names, meta_names = remote_classes.describe(cls, base)
        bases = [self._class_node(parent) for parent in cls.__bases__]
        real = ["", cls.__name__] if self.twins.get(cls.__name__) is cls else scalars.global_name(cls)
        self._new_classes.append([number, str(cls.__name__), bases, names, meta_names, real])
        return number

    def _class_node(self, cls: type) -> list:
        """Return the node of an object's class. A class that the judge may not use becomes one of proxies."""
        if (number := self.ids.get(id(cls))) is not None:
            return [number]
        if cls in _TAGS or cls is object or issubclass(cls, BaseException):
            name = scalars.global_name(cls)
            if name and scalars.is_harmless(*name, cls):
                return ["n", *name]
        if cls not in self._proxied:
            self._proxied[cls] = self._add_class(cls)
        return [self._proxied[cls]]

    def _changes(self) -> list[list]:
        """Return the number and the content of each shared container that has changed since the last message."""
        changes = []
        for number, known in list(self._contents.items()):
            value = self.objects[number]
            tag = _tag_of(value)
            content = _content(tag, value)
            if tag == "N" and content == known:  # its bytes are another object each time
                continue
            if len(content) != len(known) or not all(map(is_, content, known)):
                self._contents[number] = content
                changes.append([number, self._encode_all(content)])
        return changes

    def encode_message(self, kind: str, values: tuple, names: tuple = ()) -> list:
        """Return a message with values, names, and all that is needed to decode the values."""
        first = self._next_id
        try:
            nodes = [self.encode(value) for value in values]
            changes = self._changes()
            objects = self._describe_new()
        except BaseException:
            self.retract(first)
            raise
        classes, self._new_classes = self._new_classes, []
        dropped = self.sweep(first) if self.may_sweep else []
        return [kind, nodes, names, classes, objects, changes, dropped]

    # -- decoding ---------------------------------------------------------------------------------------------

    def decode_message(self, message: Any) -> tuple[str, list, list]:
        """Return kind, values and names of a message, after all objects have been added and changed.

        Raises:
            Exception: The message is malformed. The table is then of no more use.

        """
        kind, nodes_of_values, names, classes, objects, changes, dropped = message
        self._add_classes(classes)
        self._add_objects(objects)
        for number, nodes in changes:
            value = self.objects[number]
            tag = _tag_of(value)
            if tag not in _MUTABLE:
                raise CodecError("a change of an immutable value")
            self._fill(number, tag, value, self._decode_all(nodes))
        values = [self.decode(node) for node in nodes_of_values]
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
            case ["E", str(cls), str(name)]:
                return self.twins[cls][name]  # type: ignore[index]
        return scalars.decode(node)

    def _decode_all(self, nodes: list) -> list:
        kinds = set(map(type, nodes))
        if list in kinds or dict in kinds:
            return [self.decode(node) for node in nodes]
        return nodes

    def _register(self, number: Any, value: Any) -> None:
        if type(number) is not int or number in self.objects or number % 2 == self._parity:
            raise CodecError("a number that is not new")
        self.objects[number] = value
        self.ids[id(value)] = number

    def _add_classes(self, descriptions: list) -> None:
        for number, name, base_nodes, names, meta_names, real in descriptions:
            bases = tuple(self.decode(node) for node in base_nodes)
            if not all(isinstance(item, str) for item in (name, *names, *meta_names)):
                raise CodecError("a name that is not a string")
            original = twin = None
            if real is not None and real[0] == "":
                twin = self.twins.get(real[1])
            elif real is not None:
                original = scalars.by_name(*real)
                if (
                    not isinstance(original, type)
                    or plain_base(original)
                    or issubclass(original, BaseException)
                ):
                    original = None
            cls = remote_classes.make_class(name[:80], bases, names, meta_names, original, twin)
            self._register(number, cls)

    def _add_objects(self, descriptions: list) -> None:
        """Make all objects first, then fill them, because they may refer to each other."""
        immutable: dict[int, tuple] = {}
        fill: list[tuple] = []
        for number, tag, class_node, extra, nodes in descriptions:
            cls = None if class_node is None else self.decode(class_node)
            if cls is not None and not isinstance(cls, type):
                raise CodecError("a class that is none")
            if tag in ("t", "z", "k", "m"):
                immutable[number] = (tag, cls, extra, nodes)
                continue
            value = self._new_object(tag, cls, extra, nodes)
            self._register(number, value)
            if tag not in ("o", "v"):
                fill.append((number, tag, value, extra, nodes))
        self._add_immutables(immutable)
        for number, tag, value, extra, nodes in fill:
            items = self._decode_all(nodes)
            if tag == "e":
                num_args = len(items) - len(extra)
                attributes = dict(zip(extra, items[num_args:], strict=True))
                exceptions.restore(value, tuple(items[:num_args]), attributes)
            else:
                if tag == "f":
                    _DEFAULT_FACTORY.__set__(value, self.decode(extra))
                self._fill(number, tag, value, items)

    def _new_object(self, tag: str, cls: type | None, extra: Any, nodes: list) -> Any:
        base = _BASES.get(tag) if tag != "n" and tag != "v" else None
        if tag == "N":
            return arrays.new(extra)
        if tag == "o" and cls is not None and issubclass(cls, remote_classes.RemoteObject):
            return object.__new__(cls)
        if tag == "e" and cls is not None and issubclass(cls, BaseException):
            return exceptions.new(cls)
        if tag in ("n", "v") and cls is not None:
            base = plain_base(cls)
            if base is None or _TAGS[base] != tag:
                raise CodecError("a class of another kind")
            [node] = nodes if tag == "v" else [None]
            return base.__new__(cls, self.decode(node)) if tag == "v" else base.__new__(cls)
        if base is None or (cls is not None and plain_base(cls) is not base):
            raise CodecError("a class of another kind")
        if tag == "a":
            return base.__new__(cls or base, extra)  # type: ignore[call-arg]
        value: Any = base.__new__(cls or base)
        if tag == "q":
            collections.deque.__init__(value, (), extra)
        elif tag == "f":
            collections.defaultdict.__init__(value)
        elif tag == "O":
            collections.OrderedDict.__init__(value)
        return value

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
                tag, cls, extra, nodes = waiting[number]
                missing = {
                    node[0]
                    for node in nodes
                    if type(node) is list and len(node) == 1 and type(node[0]) is int
                } - self.objects.keys()
                if missing:
                    if number in opened:
                        raise CodecError("a tuple that contains itself")
                    opened.add(number)
                    stack += missing
                    continue
                stack.pop()
                self._register(number, _new_immutable(tag, cls, extra, self._decode_all(nodes)))

    def _fill(self, number: int, tag: str, value: Any, items: list) -> None:
        """Replace the content of a container in place."""
        if tag == "l":
            list.__setitem__(value, slice(None), items)
        elif tag == "s":
            set.clear(value)
            set.update(value, items)
        elif tag == "q":
            collections.deque.clear(value)
            collections.deque.extend(value, items)
        elif tag == "B":
            bytearray.__setitem__(value, slice(None), bytes(items))
        elif tag == "N":
            arrays.fill(value, items[0], items[1:])
        elif tag == "a":
            value[:] = array.array(value.typecode, items)
        else:
            half = len(items) // 2
            pairs = zip(items[:half], items[half:], strict=True)
            if tag == "n":
                state = vars(value)
                state.clear()
                state.update((str(key), item) for key, item in pairs)
            elif tag == "O":
                collections.OrderedDict.clear(value)
                for key, item in pairs:
                    collections.OrderedDict.__setitem__(value, key, item)
            else:
                dict.clear(value)
                dict.update(value, pairs)
        self._contents[number] = _content(tag, value)

    # -- release ----------------------------------------------------------------------------------------------

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
        self._proxied = {cls: number for cls, number in self._proxied.items() if number < first}
        self._new, self._new_classes = [], []

    def forget(self, numbers: list[int]) -> None:
        """Remove these objects from the table."""
        for number in numbers:
            if number in self.objects:
                self.ids.pop(id(self.objects.pop(number)), None)
                self._contents.pop(number, None)
                self._lent.discard(number)


def plain_base(cls: type) -> type | None:
    """Return the first base whose instances exist in both processes."""
    return next((base for base in cls.__mro__ if base in _TAGS), None)


def _tag_of(value: Any) -> str:
    cls = type(value)
    if cls in _TAGS:
        return _TAGS[cls]
    base = plain_base(cls)
    return _TAGS[base] if base else "N" if arrays.is_array(value) else ""


def _content(tag: str, value: Any) -> tuple:
    """Return the parts of a container, flat; for a mapping first all keys."""
    if tag == "l":
        return tuple(list.__iter__(value))
    if tag == "t":
        return tuple(tuple.__iter__(value))
    if tag in _MAPPINGS:
        # dict.keys ignores the order that OrderedDict.move_to_end has set.
        base = collections.OrderedDict if tag == "O" else dict
        return (*base.keys(value), *base.values(value))
    if tag == "s":
        return tuple(set.__iter__(value))
    if tag == "N":
        return arrays.content(value)
    if tag == "n":
        return (*vars(value).keys(), *vars(value).values())
    if tag == "m":
        return tuple(part for item in value for part in item)
    return tuple(value if tag in "ka" else _BASES[tag].__iter__(value))


def _new_immutable(tag: str, cls: type | None, extra: Any, items: list) -> Any:
    if tag == "k":
        return dict.fromkeys(items).keys() if extra == "k" else dict(enumerate(items)).values()
    if tag == "m":
        return dict(zip(items[::2], items[1::2], strict=True)).items()
    base = _BASES[tag]
    if cls is not None and plain_base(cls) is not base:
        raise CodecError("a class of another kind")
    return base.__new__(cls or base, items)  # type: ignore[call-arg]


_BASES: dict[str, Any] = {tag: base for base, tag in _TAGS.items() if tag not in "vnkm"}
