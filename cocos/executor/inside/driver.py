"""Process that runs the tests. No program can reach it.

A test runs here as plain Python. Its names that only the program defines are asked of the program's process
(`program.py`): calls go there with their arguments, and data or references to objects come back
(`exchange.py`). So the program never sees a test or an expected value, and this process decides. Where an
object of the program decides instead, as `==` between two of its objects does, the test is marked.

The process serves many jobs, until a test could leave something behind in it.
"""

import _signal
import _socket
import builtins
import collections
import gc
import json
import marshal
import operator
import os
import resource
import sys
import time
import types
from contextlib import suppress
from functools import lru_cache
from typing import Any

import data_types
import fixed_world
import objects
from driver_end import MALFORMED, MODULE, CannotCross, DriverEnd, ProgramGone, ProgramStopIteration
from exchange import text_of
from objects import ARITHMETIC, COMPARISONS, CONVERSIONS, FUNCTIONS, NAMED, NO_DATA, Facts, facts, is_object
from wire_format import CONTROL_FD, DRIVER_HEADER, EVIDENCE_HEADER, MESSAGE_CHARS, PEER_FD, read_exactly

MAX_GROWTH = 64 << 10  # KiB that jobs may leave in this process
RECURSION_LIMIT = 10_000  # values that are nested deeply take several frames for each level
_OPERATORS: dict[str, Any] = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b},
    "within": lambda a, b, tolerance, absolute: absolute(a - b) < tolerance,
}
# Methods of data. A test that calls one, as in `f(3).isdigit()`, expects that its object is data.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, float, list, dict, set)))
_LENGTH = "__len__", "()"  # asked for, among the answers of an object
# Special attributes that a test may ask for. With others an object tells C code what to do.
_SPECIAL_WORDS = """
__name__ __qualname__ __module__ __dict__ __wrapped__ __annotations__ __defaults__ __kwdefaults__ __array__
__mro__ __bases__ __self__ __func__ __members__ __origin__ __args__ __cause__ __notes__ __slots__
__version__ __match_args__ __dataclass_fields__ """
_SPECIAL = frozenset(_SPECIAL_WORDS.split())


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


def run_driver(max_bytes: int) -> None:
    """Serve jobs. The zygote starts another driver after a job that may have left something behind.

    A job arrives with a socket to its program. It is marshalled: the setup's source, the names of the setup
    that the program has too, and for each test its source, kind, names that only the program has, and
    whether it is plain. Kind is "driven", "in child" or "value".

    Evidence is a JSON list. It begins with ["loaded"], or ["program", error type, message] if the program
    raised. Then follows a list for each test: seconds, outcome, why the program could have forged a pass or
    "", whether that was its choice. An outcome is one of

        ["passed"]
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the program's process can run the test
        ["value", encoded]                                     the value of an expression
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.enable()
    control = _socket.socket(fileno=CONTROL_FD)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    size_at_start = _size()
    while True:
        header, rights, *_ = control.recvmsg(DRIVER_HEADER.size, _socket.CMSG_SPACE(4))
        if len(header) < DRIVER_HEADER.size:
            os._exit(0)
        size, clock_ns = DRIVER_HEADER.unpack(header)
        peer = int.from_bytes(rights[0][2][:4], sys.byteorder)
        if peer != PEER_FD:
            os.dup2(peer, PEER_FD)
            os.close(peer)
        job = read_exactly(CONTROL_FD, size)
        fixed_world.restart()
        fixed_world.WORLD.restart_clock(clock_ns or None)
        rows, may_go_on = _run(marshal.loads(job), max_bytes)
        has_ended = objects.driver.is_gone
        objects.driver.clear()
        may_go_on = may_go_on and _size() < size_at_start + MAX_GROWTH
        evidence = json.dumps(rows).encode()
        control.sendall(EVIDENCE_HEADER.pack(len(evidence), may_go_on, has_ended) + evidence)


def _run(job: tuple[str, list, list], max_bytes: int) -> tuple[list, bool]:
    """Run the tests of a job; return the evidence, and whether this process may run another job."""
    setup, shared, tests = job
    rows: list[list] = []
    driver = objects.driver = Driver(max_bytes)
    is_clean = all(is_plain for *_, is_plain in tests)
    try:
        match driver.receive():
            case ["loaded", list(own), dict(functions)]:
                rows.append(["loaded"])
            case ["program", str(name), str(text)]:
                return [["program", name[:MESSAGE_CHARS], text[:MESSAGE_CHARS]]], is_clean
            case _:
                driver.leave(MALFORMED)
        driver.begin(setup, shared, tests, own, functions)
        for source, kind, *_ in tests:
            fixed_world.random.seed(hash(source))  # the program knows the seed of its own `random`
            start = time.perf_counter()
            outcome = driver.outcome(source, kind)
            reasons = ", ".join(driver.reasons)[:MESSAGE_CHARS]
            rows.append([time.perf_counter() - start, outcome, reasons, any(driver.reasons.values())])
    except BaseException:  # also what decoding and the program's answers raise outside of a test
        if not driver.is_gone:
            driver.error_at_end = MALFORMED
        if driver.error_at_end:
            rows = rows or [["loaded"]]
            rows.append([0.0, ["e", *driver.error_at_end], "", False])
    return rows, is_clean


class Names(dict):
    """The builtins of the tests. A name that only the program has is looked up in its process.

    Functions and classes are looked up once, other values each time: the program may assign new ones.
    """

    def __init__(self, driver: "Driver", remote: set[str], own: set[str]) -> None:
        super().__init__(vars(builtins))
        self._driver = driver
        self.own = {name for name in own if name in self and name[:1] != "_"} - remote
        self._remote = self.own | remote
        self["callable"], self["hasattr"] = driver.is_callable, driver.has_attribute
        for name in self._remote & self.keys():
            del self[name]

    def forget(self, names: list) -> None:
        """Look these names up again."""
        for name in self._remote.intersection(map(str, names)):
            self.pop(name, None)

    def __missing__(self, name: str) -> Any:
        if name not in self._remote:
            raise KeyError(name)
        if name in self.own:
            self._driver.mark(f"decided by {name} of the program")
        value = self._driver.request("name", name)
        self._driver.note_name(value, name)
        if callable(value) and name not in self.own:
            self[name] = value
        return value


class Driver(DriverEnd):
    """The tests of a job, and what they may do with objects of the program."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes  # of the value of an expression
        self.reasons: dict[str, bool] = {}  # why the test is marked, and whether the program is the cause
        self.lasting: dict[str, bool] = {}  # those that hold for all later tests: the program knows a value
        self._has_computed = False  # the program has got data of the test by arithmetic
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last

    def clear(self) -> None:
        """Drop everything. The parts refer to each other, so that only a late collection would find them."""
        self.is_gone = True  # for what a generator does at its end
        for table in (self.namespace, self.names, self.objects, self.numbers, self.contents, self.sources):
            table.clear()

    # Tests.

    def begin(self, setup: str, shared: list, tests: list, own: list, functions: dict) -> None:
        """Prepare the names of the tests, and run the setup.

        Args:
            setup: The setup.
            shared: Names that it defines for the program too.
            tests: The tests of the job.
            own: Names of builtins that the program has given to something else.
            functions: Encoded functions of the program by name.

        """
        remote = {name for *_, names, _ in tests for name in names}
        self.names = Names(self, remote, set(map(str, own)))
        try:
            found = {name: self.decode(node) for name, node in functions.items()}
            for name in remote.intersection(found):
                self.names[name] = found[name]
                self.note_name(found[name], name)
        except Exception:
            self.leave(MALFORMED)
        self.namespace = {"__name__": MODULE, "__builtins__": self.names}
        self.namespace.update(
            __compare__=self.compare,
            __true__=self.is_true,
            __is__=self.is_same,
            __type__=self.type_of,
            __source__=self.note_source,
        )
        self._setup_error: BaseException | None = None
        try:
            exec(_compiled(setup), self.namespace)
        except BaseException as error:
            self._setup_error = error
        if self.is_gone:
            raise ProgramGone
        for name in shared:
            cls: Any = self.namespace.get(name)
            if issubclass(type(cls), type) and cls.__module__ == MODULE and cls.__name__ == name:
                self.classes[name] = cls
        if self.classes:
            self.request("classes", *self.classes)
        self.lasting |= self.reasons

    def outcome(self, source: str, kind: str) -> list:
        """Run a test and return its outcome."""
        self.reasons, self._false = {**self.lasting}, []
        self.final: list | None = None
        self.expects_stop_iteration = "StopIteration" in source
        error: BaseException | None = None
        try:
            if self._setup_error and kind != "in child":
                raise self._setup_error
            if kind == "in child":
                self.mark("an earlier test ran in the program's process", False, source)
                self.request("run", source)
            elif kind == "value":
                value = self.request("evaluate", source)
                return ["value", data_types.encode_plain(value, [self._max_bytes])]
            else:
                exec(_compiled(source), self.namespace)
        except data_types.NotPlainValue as raised:
            [value] = raised.args
            name = facts(value).name if is_object(value) else type(value).__name__
            error = NotPlainValue(f"returned {name}, which is not a plain value")
        except BaseException as raised:
            error = raised
        if self.is_gone:
            raise ProgramGone
        if isinstance(error, CannotCross) and not self.final:  # of the setup
            return ["undecided", str(error)[:MESSAGE_CHARS]]
        if self.final:
            return self.final
        if error is None:
            return ["passed"]
        name = "StopIteration" if isinstance(error, ProgramStopIteration) else type(error).__name__
        if type(error) is AssertionError and not error.args and self._false:
            return ["e", name, "", *self._false]
        return ["e", str(name), text_of(error)]

    def mark(self, reason: str, is_programs: bool = True, *told: Any) -> None:
        """Note that the program's process has decided something, and what it has got to know by that."""
        self.reasons[reason] = is_programs or self.reasons.get(reason, False)
        if any(not is_object(value) and data_types.may_be_expected(value) for value in told):
            self.lasting[reason] = self.reasons[reason]

    # What the test's source calls: the plan has put these calls in.

    def compare(self, symbol: str, *sides: Any) -> bool:
        """Return whether a comparison holds; note what it compared if it does not."""
        relation = symbol.removeprefix("~")
        if relation[:2] == "is":
            holds = self.is_same(*sides) == (relation == "is")
        else:
            holds = _OPERATORS[relation](*sides)
        if holds:
            return True
        self._false = [symbol, *[_shown(side) for side in sides[:3]]]
        return False

    def is_true(self, text: str, value: Any) -> bool:
        """Return the truth of a condition; note its text if it is false."""
        self._false = [] if value else [text]
        return not self._false

    def is_same(self, left: Any, right: Any) -> bool:
        """Return `left is right`. Which objects of the program are the same one, it says itself."""
        if is_object(left) and is_object(right):
            self.mark(f"decided by the identity of {facts(left).name} of the program", False)
        if left is not right and _is_same(left, right):
            self.mark("decided by the identity of data of the program")
            return True
        return left is right

    def type_of(self, value: Any) -> Any:
        """Return what `type(value)` is in the program's process."""
        if not is_object(value):
            return type(value)
        found = self.request("type", value)
        if not is_object(found) and found in data_types.CROSSING:
            self.mark(f"decided by the class of {facts(value).name} of the program")
        return found

    def is_callable(self, value: Any, /) -> bool:
        """Return what `callable(value)` is in the program's process."""
        return bool(self.request("callable", value)) if is_object(value) else callable(value)

    def note_name(self, value: Any, name: str) -> None:
        """Note that the test names a class of the program. A function has another name of its class."""
        is_class = is_object(value) and name[:1].isupper() and facts(value).name == name
        if is_class and facts(value).created == self.moment:  # not what the test has got by other means
            facts(value).origin = "class"

    def forget_names(self, names: list) -> None:
        self.names.forget(names)

    def has_attribute(self, value: Any, name: str, /) -> bool:
        """Return what `hasattr(value, name)` is in the program's process."""
        return bool(self.request("hasattr", value, name)) if is_object(value) else hasattr(value, name)

    # What a test does with an object of the program.

    def operate(self, operation: str, value: Any, args: tuple, kwargs: dict) -> Any:
        """Do what a special method of an object would do."""
        found = facts(value)
        if operation == "__exit__":
            return self._exit(value, found, args)
        if found.has_data and operation != "__call__" and operation not in found.own:
            return self._with_data(operation, value, args)
        is_equality = operation in ("__eq__", "__ne__") and not is_object(args[0])
        if is_equality and (args[0] is None or found.own.isdisjoint(("__eq__", "__ne__"))):
            return NotImplemented
        if operation == "__contains__" and found.is_known:  # a generator, for example
            return any(item is args[0] or item == args[0] for item in value)
        if operation in COMPARISONS:
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ARITHMETIC:
            return self._compute(operation, value, found, args)
        elif operation == "__index__" and found.is_known:
            raise TypeError(f"{found.name!r} object cannot be interpreted as an integer")
        elif operation in CONVERSIONS or (self._has_computed and operation in ("__bool__", "__len__")):
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ("__instancecheck__", "__subclasscheck__"):
            self.mark(f"decided by {operation} of {found.name} of the program", False)
        elif operation in ("__getitem__", "__iter__", "__len__", "__next__") and found.origin not in NAMED:
            return self._unnamed(operation, value, found, args)
        elif operation == "__call__":
            return self._call(value, found, args, kwargs)
        return self.request(operation, value, *args, **kwargs)

    def _compute(self, operation: str, value: Any, found: Facts, args: tuple) -> Any:
        """Do arithmetic. With data, such as `f(3) - 2.5`, the program gets what the test may expect."""
        with_data = not any(map(is_object, args))
        if with_data and found.origin != "named":
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        result = self.request(operation, value, *args)
        if found.origin == "named" and is_object(result) and facts(result).name == found.name:
            facts(result).origin = "named"
        if with_data:
            self._has_computed = True
        if not is_object(result) and (with_data or found.origin != "named"):
            self.mark(f"decided by {operation} of {found.name} of the program")
        return result

    def _unnamed(self, operation: str, value: Any, found: Facts, args: tuple) -> Any:
        """Do an operation of an object that a function returned, which may tell each time something else."""
        key = operation, str(args)
        if operation == "__getitem__" and found.has_data:
            data = self.data(value)
            if not isinstance(data, (dict, collections.UserDict)) or args[0] in data:
                with suppress(LookupError, TypeError):
                    found.answers.setdefault(key, data[args[0]])
        is_keyed = operation == "__getitem__" and not _is_index(*args) and key not in found.answers
        differs = found.has_data and operation != "__getitem__"
        if differs or is_keyed or (operation in ("__iter__", "__getitem__") and _LENGTH in found.answers):
            # A key may be what the test expects, and a loop over nothing asserts nothing.
            self.mark(f"decided by {operation} of {found.name} of the program", True, *args)
        try:
            result = self.request(operation, value, *args)
        except StopIteration:
            found.answers["end"] = None
            raise
        if operation == "__next__":
            is_same = "end" not in found.answers
        else:
            is_same = _is_same(found.answers.setdefault(key, result), result)
        if not is_same:
            self.mark(f"decided by {operation} of {found.name} of the program")
        return result

    def _exit(self, value: Any, found: Facts, args: tuple) -> bool:
        if not self.request("__exit__", value, *args[:2], None) or args[0] is None:
            return False
        self.mark("decided by __exit__ of the program", found.origin not in NAMED)
        return not issubclass(args[0], AssertionError)  # a failed assert stays one

    def _call(self, value: Any, found: Facts, args: tuple, kwargs: dict) -> Any:
        method = found.origin.partition(".")[2]
        result = self.request("call", value, *args, **kwargs)
        decides = result is not None and (args or kwargs or type(result) is bool)
        says_no = type(result) is bool or (type(result) in (int, str, list, tuple, dict, set) and not result)
        is_plain = method in _PLAIN_METHODS or (method and says_no)
        if found.origin == ".exception" or (is_plain and decides):
            what = f"decided by the method {found.name} of a value of the program"
            self.mark(what, not found.is_member, *args, *kwargs.values())
        # An instance of a class that the test names; another function with a capital gives any object.
        # So does a class that the program has given as a value too: the test may have it from there.
        is_named = found.origin == "class" and self.numbers.get(id(value)) not in self.repeated
        if is_object(result) and is_named and facts(result).name == found.name:
            facts(result).origin = "named"
        return result

    def _refuse_or_mark(self, what: str, found: Facts, args: tuple) -> None:
        """Mark the test, unless an object that a function returned is compared with data."""
        sides = [found, *map(facts, filter(is_object, args))]
        is_named = any(side.origin in NAMED or (side.is_member and len(sides) > 1) for side in sides)
        if len(sides) == 1 and not is_named:
            text = f"returned {found.name}, which is not a plain value"
            self.final = self.final or ["e", "NotPlainValue", text]
            raise NotPlainValue(text)
        self.mark(f"decided by {what} of the program", not is_named, *args)

    def _with_data(self, operation: str, value: Any, args: tuple) -> Any:
        """Do an operation of an object whose class derives from one of data, with the data."""
        data = self.data(value)
        others = [self.data(other) if is_object(other) and facts(other).has_data else other for other in args]
        if operation in ("__str__", "__repr__", "__format__", "__enter__", "__next__"):
            return self.request(operation, value, *args)
        is_in_place = operation in ARITHMETIC and operation[2] == "i"
        changes = is_in_place or operation in ("__setitem__", "__delitem__")
        if is_in_place and hasattr(type(data), operation):
            self.mark(f"decided by {operation} of {facts(value).name} of the program")
        if operation[-6:] == "copy__" or (changes and hasattr(type(data), operation)):
            return self.request(operation, value, *args)
        if operation == "__getitem__" and isinstance(data, collections.defaultdict) and args[0] not in data:
            return self.request(operation, value, *args)
        return FUNCTIONS[operation](data, *others)

    def data(self, value: Any) -> Any:
        """Return the data of an object whose class derives from one of data, as they are now."""
        found = facts(value)
        if found.data is NO_DATA or (found.moment >= 0 and found.moment != self.moment):
            found.data = self.request("data", value)
            found.moment = self.moment
            if type(found.data) not in data_types.CHANGEABLE:
                self.leave(MALFORMED)
        return found.data

    def get_attribute(self, value: Any, name: str) -> Any:
        """Return an attribute of an object, of a stand-in for an exception, or of its class."""
        if name[:2] == "__" and name not in _SPECIAL:
            raise AttributeError(name)
        if not is_object(value):
            if id(value) not in self.numbers:
                raise AttributeError(name)
            result = self.request("getattr", value, name)
            cls = value if isinstance(value, type) else type(value)
            is_named = self.names.get(cls.__name__) is cls
            if is_object(result):
                facts(result).origin, facts(result).is_member = ".exception", is_named
            elif callable(result):
                self.mark("decided by a method of an exception of the program", not is_named)
            return result
        found = facts(value)
        is_constant = found.has_data and found.moment < 0 and found.data is not NO_DATA
        if is_constant and found.origin not in NAMED and name not in found.own and hasattr(found.data, name):
            return getattr(found.data, name)
        result = self.request("getattr", value, name)
        is_new = is_object(result) and facts(result).created == self.moment
        if is_object(result) and found.origin in NAMED:
            facts(result).is_member = True
            if is_new and name[:1].isupper():
                facts(result).origin = "class"
        elif is_new or (
            is_object(result) and facts(result).origin in ("", f".{name}") and not found.has_data
        ):
            facts(result).origin = f".{name}"
        elif callable(result) and found.origin not in NAMED:
            self.mark("decided by a method of a value of the program")  # `ascii`, say, in place of a method
        return result

    def class_of(self, value: Any) -> Any:
        """Return what `isinstance` finds as the class of an object."""
        found = facts(value)
        if found.has_data:
            return type(self.data(value))
        cls = data_types.TYPES.get(found.name) if found.is_known else objects.Object
        # No data are iterators.
        is_programs = not (found.is_known and hasattr(cls, "__next__"))
        self.mark(f"decided by the class of {found.name} of the program", is_programs)
        return cls


def _size() -> int:
    """Return the most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@lru_cache(maxsize=4096)
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<test>", "exec", 0, True)


def _shown(value: Any) -> str:
    """Return `repr(value)`, truncated, with sets sorted: their order says nothing."""
    text = text_of(value, repr)
    return text_of(value, _sorted_text) if "{" in text else text


def _sorted_text(value: object) -> str:
    if isinstance(value, (set, frozenset)) and value:
        elements = ", ".join(sorted(map(_sorted_text, value)))
        return f"{{{elements}}}" if isinstance(value, set) else f"frozenset({{{elements}}})"
    if type(value) is dict:
        return "{" + ", ".join(f"{_sorted_text(k)}: {_sorted_text(v)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_sorted_text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(_sorted_text, value)) + (",)" if len(value) == 1 else ")")
    return repr(value)


def _is_same(left: Any, right: Any) -> bool:
    """Return whether two answers are the same, as far as a test can see."""
    is_immutable = type(left) is type(right) and type(left) in (tuple, frozenset, str, bytes, int, float)
    return left is right or (is_immutable and left == right)


def _is_index(key: Any) -> bool:
    """Return whether a key is a number or a class, as in `x[1:2]` and `List[int]`."""
    return all(type(part) in (int, slice, type) for part in (key if type(key) is tuple else (key,)))
