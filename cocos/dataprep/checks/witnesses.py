"""Further inputs of a function, like those of its own tests.

An input is a tuple of arguments. What holds for all inputs of the tests holds for the further ones: types,
ranges, lengths, characters, order, and how an argument is bounded by another one's length.
"""

import ast
from collections.abc import Callable, Collection, Iterator
from itertools import permutations
from random import Random
from typing import Any, NamedTuple

from cocos.files.python_parser import parse

Input = tuple[Any, ...]
MAX_ATTEMPTS = 20  # at one input


def inputs_of(tests: Collection[str], name: str) -> list[Input]:
    """Return the inputs of a function in its tests: the arguments of its calls, if these are literals."""
    found: dict[str, Input] = {}
    for node in (node for test in tests for node in ast.walk(parse(test))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            try:
                arguments = tuple(map(ast.literal_eval, node.args))
            except (ValueError, TypeError, RecursionError, MemoryError):
                continue
            if not node.keywords:
                found.setdefault(repr(arguments), arguments)
    return list(found.values())


def further_inputs(seen: list[Input], count: int, random: Random) -> Iterator[Input]:
    """Yield up to `count` different inputs like those that are seen; none if these differ in their shape."""
    if len({len(arguments) for arguments in seen}) != 1:
        return
    relations = _relations(seen)
    known = set(map(repr, seen))
    columns = list(zip(*seen, strict=True))
    for _ in range(count * MAX_ATTEMPTS):
        base = random.choice(seen)
        # Often one argument alone changes: boundaries are near what the tests have.
        chosen = range(len(base)) if random.random() < 0.5 else [random.randrange(len(base) or 1)]
        new = tuple(
            _like(columns[i], value, random) if i in chosen else value for i, value in enumerate(base)
        )
        if repr(new) not in known and all(relation.holds(new) for relation in relations):
            known.add(repr(new))
            yield new
            if len(known) >= count + len(seen):
                return


def _like(column: Collection[Any], base: Any, random: Random) -> Any:
    """Return a value like those of a column, made from one of them."""
    peers = [value for value in column if type(value) is type(base)]
    match base:
        case bool():
            return random.choice(sorted({*peers}))
        case int():
            low, high = min(peers), max(peers)
            near = base + random.choice((-1, 1))
            return near if low <= near <= high and random.random() < 0.5 else random.randint(low, high)
        case float():
            return round(random.uniform(min(peers), max(peers)), 2)
        case str():
            shortest, longest = min(map(len, peers)), max(map(len, peers))
            characters = "".join(peers)
            if random.random() < 0.5:  # a part of one, and a part of another
                other = random.choice(peers)
                made = base[: random.randint(0, len(base))] + other[random.randint(0, len(other)) :]
                return made if shortest <= len(made) <= longest else base
            return "".join(
                random.choice(characters) for _ in range(random.randint(shortest, longest)) if characters
            )
        case list() | tuple() | set():
            items = [
                item
                for value in peers
                for item in (sorted(value, key=repr) if isinstance(value, set) else value)
            ]
            length = random.randint(min(map(len, peers)), max(map(len, peers)))
            if not items:
                return base
            made = [_like(items, random.choice(items), random) for _ in range(length)]
            if random.random() < 0.5:  # a change of one item
                made = sorted(base, key=repr) if isinstance(base, set) else list(base)
                if made:
                    made[random.randrange(len(made))] = _like(items, random.choice(items), random)
            return type(base)(made)
        case dict():
            values = [item for value in peers for item in value.values()]
            return {key: _like(values, item, random) for key, item in base.items()} if values else base
    return base


class _Relation(NamedTuple):
    """A relation that may hold for some arguments of an input."""

    function: Callable[..., bool]
    places: tuple[int, ...]  # indices of these arguments

    def holds(self, arguments: Input) -> bool:
        """Return whether it holds; False for arguments of other types, such as len(1)."""
        try:
            return self.function(*(arguments[place] for place in self.places))
        except TypeError:
            return False


def _relations(seen: list[Input]) -> list[_Relation]:
    """Return what holds for all inputs that are seen, and must hold for further ones."""
    places = range(len(seen[0]))
    candidates = [_Relation(function, (i,)) for function in _OF_ONE for i in places]
    candidates += [_Relation(function, pair) for function in _OF_TWO for pair in permutations(places, 2)]
    return [relation for relation in candidates if all(map(relation.holds, seen))]


def _is_sorted(value: Any) -> bool:
    return isinstance(value, list | tuple) and list(value) == sorted(value)


def _is_distinct(value: Any) -> bool:
    return isinstance(value, list | tuple | str) and len({*map(repr, value)}) == len(value)


def _is_grid(value: Any) -> bool:
    """Return whether a value is a list of rows of one length."""
    return (
        isinstance(value, list | tuple)
        and len({len(row) for row in value if isinstance(row, list | tuple | str)}) == 1
    )


def _is_of_items(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) and all(map(function, value))


_KINDS = (_is_sorted, _is_distinct, _is_grid)
_OF_ONE = (*_KINDS, *map(_is_of_items, _KINDS))
_OF_TWO: tuple[Callable[[Any, Any], bool], ...] = (
    lambda x, y: bool(x == len(y)),
    lambda x, y: bool(x < len(y)),
    lambda x, y: bool(x <= len(y)),
    lambda x, y: len(x) == len(y),
    lambda x, y: type(x) is type(y) and bool(x <= y),
    lambda x, y: x in y,
)
