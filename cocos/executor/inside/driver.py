"""Process that runs the tests. No program can reach it.

A test runs here as plain Python. Its names that only the program defines are asked of the program's process
(`program.py`): calls go there with their arguments, and data or references to objects come back
(`exchange.py`). So the program never sees a test or an expected value, and this process decides. Where an
object of the program decides instead, as `==` between two of its objects does, the test is marked.

The process serves many jobs, until a test could leave something behind in it.
"""

import _socket
import ast
import builtins
import gc
import json
import operator
import os

import sys
import time
import types
from contextlib import suppress
from functools import lru_cache
from typing import Any

import data_types
import exchange
import fixed_world
import objects
from exchange import CodecError, text_of
from objects import ARITHMETIC, COMPARISONS, NO_DATA, Facts, facts, is_object
from wire_format import CONTROL_FD, EVIDENCE_HEADER, MESSAGE_CHARS, PEER_FD, SIZE

MODULE = "test"  # of the classes that test and setup define
RECURSION_LIMIT = 10_000  # values that are nested deeply take several frames for each level
_OPERATORS: dict[str, Any] = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b},
    "within": lambda a, b, tolerance, absolute: absolute(a - b) < tolerance,
}
# Methods of data. A test that calls one, as in `f(3).isdigit()`, expects that its object is data.
_PLAIN_METHODS = frozenset().union(*map(dir, (str, bytes, float, list, dict, set)))
# Special attributes that a test may ask for. With others an object tells C code what to do.
_SPECIAL = frozenset(
    """__name__ __qualname__ __module__ __dict__ __wrapped__ __annotations__ __defaults__ __array__ __mro__
    __bases__ __self__ __func__ __members__ __origin__ __args__ __cause__ __notes__ __slots__ __version__
    __match_args__ __dataclass_fields__""".split()
)
_GLOBAL_TYPES = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


MALFORMED = ("MalformedEvidence", "the program sent no well-formed message")


class CannotCross(BaseException):
    """The program would get something of the test that cannot leave this process."""


class ProgramGone(BaseException):
    """The program's process has ended, or sent what is no message."""


class NotPlainValue(BaseException):
    """A value that the test compares with data is none."""


class ProgramStopIteration(Exception):
    """StopIteration from a call. As itself it would end a loop of the test: `zip(map(f, xs), wants)`."""


def run_driver(_: bytes, max_bytes: int) -> None:
    """Serve jobs. The zygote starts another driver after a job that may have left something behind.

    A job arrives with a socket to its program. It is JSON: {"setup": source, "tests": [[source, kind, names
    that only the program has, whether it is plain], ...]}. Kind is "driven", "in child" or "value".

    Evidence is JSON lines. The first is ["loaded"], or ["program", error type, message] if the program
    raised. Then follows one line per test: [number, seconds, outcome]. An outcome is one of

        ["passed"]
        ["passed", reason, is_programs]                        passed, but code of the program has decided
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the program's process can run the test
        ["value", encoded]                                     the value of an expression
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.enable()
    control = _socket.socket(fileno=CONTROL_FD)
    while True:
        header, ancillary, *_ = control.recvmsg(SIZE.size, _socket.CMSG_SPACE(4))
        if len(header) < SIZE.size:
            os._exit(0)
        [peer] = (int.from_bytes(data[:4], sys.byteorder) for *_, data in ancillary)
        if peer != PEER_FD:
            os.dup2(peer, PEER_FD)
            os.close(peer)
        job = bytearray()
        while len(job) < SIZE.unpack(header)[0]:
            job += control.recv(SIZE.unpack(header)[0] - len(job))
        fixed_world.WORLD.restart_clock()
        rows, may_go_on = _run(json.loads(job))
        evidence = "".join(json.dumps(row) + "\n" for row in rows).encode()
        control.sendall(EVIDENCE_HEADER.pack(len(evidence), may_go_on) + evidence)


def _run(job: dict) -> tuple[list, bool]:
    """Run the tests of a job; return the evidence, and whether this process may run another job."""
    rows: list[list] = []
    driver = objects.driver = Driver()
    is_clean = all(is_plain for *_, is_plain in job["tests"])
    try:
        match driver.receive():
            case ["loaded", list(own), dict(functions)]:
                rows.append(["loaded"])
            case ["program", str(name), str(text)]:
                return [["program", name[:MESSAGE_CHARS], text[:MESSAGE_CHARS]]], is_clean
            case _:
                driver._leave(MALFORMED)
        driver.begin(job["setup"], job["tests"], own, functions)
        for number, (source, kind, remote, _) in enumerate(job["tests"]):
            fixed_world.random.seed(source)  # the program knows the seed of its own `random`
            start = time.perf_counter()
            outcome = driver.outcome(source, kind, remote)
            rows.append([number, time.perf_counter() - start, outcome])
        exchange.send(["end"])
    except (ProgramGone, OSError):
        if driver.error_at_end:
            rows = rows or [["loaded"]]
            rows.append([len(rows) - 1, 0.0, ["e", *driver.error_at_end]])
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
        for name in self._remote & self.keys():
            del self[name]

    def __missing__(self, name: str) -> Any:
        if name not in self._remote:
            raise KeyError(name)
        if name in self.own:
            self._driver.mark(f"decided by {name} of the program")
        value = self._driver.request("name", name)
        if is_object(value):
            facts(value).origin = "class" if name[:1].isupper() else "named"
        if callable(value):
            self[name] = value
        return value


class Driver(exchange.End):
    """The driver's end of the conversation, and the tests of a job."""

    def __init__(self) -> None:
        super().__init__(first_number=1)
        self.reasons: dict[str, bool] = {}  # why the test is marked, and whether the program is the cause
        self._final: list | None = None  # an outcome that the test cannot change any more
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last
        self._error_classes: dict[str, Any] = {}
        self._moment = 0
        self._expects_stop_iteration = False
        self.is_gone = False
        self.error_at_end: tuple[str, str] | None = None

    # Tests.

    def begin(self, setup: str, tests: list, own: list, functions: dict) -> None:
        """Prepare the names of the tests, and run the setup.

        Args:
            setup: The setup.
            tests: The tests of the job.
            own: Names of builtins that the program has given to something else.
            functions: Encoded functions of the program by name.

        """
        remote = {name for *_, names, _ in tests for name in names}
        self._names_class = any(name[:1].isupper() for name in remote)
        self.names = Names(self, remote, set(map(str, own)))
        try:
            found = {name: self.decode(node) for name, node in functions.items()}
            for name in remote.intersection(found):
                self.names[name] = found[name]
                facts(found[name]).origin = "class" if name[:1].isupper() else "named"
        except Exception:
            self._leave(MALFORMED)
        self.namespace: dict[str, Any] = {"__name__": MODULE, "__builtins__": self.names}
        self.namespace.update(
            __compare__=self.compare, __true__=self.is_true, __is__=self.is_same, __type__=self.type_of
        )
        self._source = ""
        self._setup_error: BaseException | None = None
        try:
            exec(_compiled(setup, "<setup>", "exec"), self.namespace)
        except BaseException as error:
            self._setup_error = error
        if self.is_gone:
            raise ProgramGone
        self._setup = setup
        self.classes = {
            name: value
            for name, value in self.namespace.items()
            if issubclass(type(value), type) and value.__module__ == MODULE and value.__name__ == name
        }
        if self.classes:
            self.request("classes", *self.classes)

    def outcome(self, source: str, kind: str, remote: list[str]) -> list:
        """Run a test and return its outcome."""
        self.reasons, self._final, self._false = {}, None, []
        self._source = source
        self._expects_stop_iteration = "StopIteration" in source
        error: BaseException | None = None
        try:
            if self._setup_error and kind != "in child":
                raise self._setup_error
            if kind == "in child":
                self.request("run", source)
            elif kind == "value":
                return ["value", data_types.encode_plain(eval(_compiled(source, "<test>", "eval"), self.namespace))]
            else:
                exec(_compiled(source, "<test>", "exec"), self.namespace)
        except BaseException as raised:
            error = raised
        if self.is_gone:
            raise ProgramGone
        if isinstance(error, CannotCross) and not self._final:  # of the setup
            return ["undecided", str(error)[:MESSAGE_CHARS]]
        if self._final:
            return self._final
        if error is None:
            is_programs = all(self.reasons.values())
            reasons = ", ".join(self.reasons)[:MESSAGE_CHARS]
            return ["passed", reasons, is_programs] if reasons else ["passed"]
        name = "StopIteration" if isinstance(error, ProgramStopIteration) else type(error).__name__
        if isinstance(error, AssertionError) and not error.args and self._false:
            return ["e", name, "", *self._false]
        return ["e", str(name), text_of(error)]

    def mark(self, reason: str, is_programs: bool = True) -> None:
        """Note that the program's process has decided something."""
        self.reasons[reason] = is_programs and not self._names_class

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
            self.mark(f"decided by the identity of {facts(left).name} of the program")
        is_immutable = type(left) is type(right) and type(left) in (tuple, frozenset, str, bytes, int, float)
        return left is right or (is_immutable and left == right)

    def type_of(self, value: Any) -> Any:
        """Return what `type(value)` is in the program's process."""
        return self.request("type", value) if is_object(value) else type(value)

    # What a test does with an object of the program.

    def operate(self, operation: str, value: Any, args: tuple, kwargs: dict) -> Any:
        """Do what a special method of an object would do."""
        found = facts(value)
        if found.has_data and operation not in found.own and operation != "__call__":
            return self._with_data(operation, value, args)
        if operation in COMPARISONS:
            [other] = args
            if operation in ("__eq__", "__ne__") and other is None:
                return NotImplemented
            self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ARITHMETIC:
            if found.origin == "" and not any(map(is_object, args)):
                self._refuse_or_mark(f"{operation} of {found.name}", found, args)
        elif operation in ("__instancecheck__", "__subclasscheck__"):
            self.mark(f"decided by {operation} of {found.name} of the program", False)
        elif operation == "__getitem__" and found.origin == "" and not _is_index(*args):
            self.mark(f"decided by {operation} of {found.name} of the program")
        elif operation == "__call__":
            return self._call(value, found, args, kwargs)
        elif operation == "__exit__":
            swallows = self.request(operation, value, *args[:2], None) and args[0] is not None
            return bool(swallows) and not issubclass(args[0], AssertionError)
        return self.request(operation, value, *args, **kwargs)

    def _call(self, value: Any, found: Facts, args: tuple, kwargs: dict) -> Any:
        method = found.origin.partition(".")[2]
        result = self.request("call", value, *args, **kwargs)
        if method in _PLAIN_METHODS and (args or kwargs) and result is not None:
            self.mark(f"decided by the method {method} of a value of the program")
        if is_object(result) and found.origin == "class" and result is not value:
            facts(result).origin = "named"
        return result

    def _refuse_or_mark(self, what: str, found: Facts, args: tuple) -> None:
        """Mark the test, unless an object that a function returned is compared with data."""
        if found.origin == "" and not any(map(is_object, args)) and not self._names_class:
            text = f"returned {found.name}, which is not a plain value"
            self._final = self._final or ["e", "NotPlainValue", text]
            raise NotPlainValue(text)
        self.mark(f"decided by {what} of the program")

    def _with_data(self, operation: str, value: Any, args: tuple) -> Any:
        """Do an operation of an object whose class derives from one of data, with the data."""
        data = self.data(value)
        others = [self.data(other) if is_object(other) and facts(other).has_data else other for other in args]
        if operation in ("__str__", "__repr__", "__format__", "__enter__", "__exit__", "__next__"):
            return self.request(operation, value, *args)
        if operation in ("__bool__", "__dir__"):
            return bool(data) if operation == "__bool__" else dir(data)
        if operation in ("__setitem__", "__delitem__", "__copy__", "__deepcopy__") or operation[2:3] == "i":
            if hasattr(type(data), operation) or operation[-6:] == "copy__":
                return self.request(operation, value, *args)
        if operation == "__getitem__" and type(data).__name__ == "defaultdict":
            return self.request(operation, value, *args)
        method = getattr(type(data), operation, None)
        if method is None:
            if operation in COMPARISONS - {"__contains__"} or operation in ARITHMETIC:
                return NotImplemented
            raise TypeError(f"{facts(value).name!r} object has no {operation}")
        return method(data, *others)

    def data(self, value: Any) -> Any:
        """Return the data of an object whose class derives from one of data, as they are now."""
        found = facts(value)
        if found.data is NO_DATA or (found.moment >= 0 and found.moment != self._moment):
            found.data = self.request("data", value)
            found.moment = self._moment
            if not data_types.is_data(found.data):
                self._leave(MALFORMED)
        return found.data

    def get_attribute(self, value: Any, name: str) -> Any:
        """Return an attribute of an object, of a stand-in for an exception, or of its class."""
        if name[:2] == "__" and name not in _SPECIAL:
            raise AttributeError(name)
        if not is_object(value):
            if self.numbers.get(id(value)) is None:
                raise AttributeError(name)
            return self.request("getattr", value, name)
        found = facts(value)
        if found.has_data and found.origin == "" and name not in found.own and found.data is not NO_DATA:
            if found.moment < 0 and hasattr(found.data, name):  # its class cannot change its instances
                return getattr(found.data, name)
        result = self.request("getattr", value, name)
        if is_object(result) and facts(result).origin == "":
            if found.origin == "":
                facts(result).origin = f".{name}"
            elif found.origin == "named" and name[:1].isupper():
                facts(result).origin = "class"
        elif callable(result) and found.origin == "":
            self.mark("decided by a method of a value of the program")  # `ascii`, say, in place of a method
        return result

    def class_of(self, value: Any) -> Any:
        """Return what `isinstance` finds as the class of an object."""
        found = facts(value)
        if found.has_data:
            return type(self.data(value))
        self.mark(f"decided by the class of {found.name} of the program")
        return data_types.TYPES[found.name] if found.is_known else objects.Object

    # Conversation.

    def request(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        """Have the program do something and return the result, or raise its exception."""
        self._moment += 1
        first = self.next_number
        try:
            values = [self.encode(value) for value in (*args, *kwargs.values())]
            message = [operation, values, list(kwargs), self.changes(), self.sweep()]
            exchange.send(message)
        except OSError:
            self._leave()
        except (CannotCross, OverflowError, RecursionError, CodecError) as error:
            self.forget([number for number in range(first, self.next_number, 2) if number in self.objects])
            text = "more data than one message takes" if isinstance(error, OverflowError) else str(error)
            self._final = self._final or ["undecided", text[:MESSAGE_CHARS]]
            raise CannotCross(text) from None
        answer = self.receive()
        try:
            kind, node, changes = answer
            value = self.decode(node)
            self.apply(changes)
        except MemoryError:
            raise
        except Exception:
            self._leave(MALFORMED)
        if kind == "v":
            return value
        if kind != "e" or not isinstance(value, BaseException):
            self._leave(MALFORMED)
        if isinstance(value, StopIteration) and operation != "__next__" and not self._expects_stop_iteration:
            raise ProgramStopIteration(f"StopIteration: {value}")
        raise value

    def receive(self) -> list:
        """Read one message of the program."""
        try:
            data = exchange.receive()
        except (EOFError, OSError):
            self._leave()
        try:
            message = exchange.parsed(data)
        except (ValueError, RecursionError, StopIteration):
            self._leave(MALFORMED)
        if type(message) is not list:
            self._leave(MALFORMED)
        return message

    def _leave(self, error: tuple[str, str] | None = None) -> Any:
        """End the job: the program's process has ended, or sends malformed messages."""
        self.is_gone, self.error_at_end = True, error
        raise ProgramGone

    # What crosses beside data.

    def encode_object(self, value: Any) -> Any:
        if issubclass(type(value), BaseException):
            cls = type(value)
            if isinstance(cls, objects.ErrorClass) or (cls.__module__ == MODULE and cls not in self.classes.values()):
                raise CannotCross("the program gets an exception of the test")
            if isinstance(value, AssertionError):  # its message may contain an expected value
                return ["error", self.register(value), ["builtins", "AssertionError"], None, "", [], None, []]
        return super().encode_object(value)

    def encode_foreign(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return ["global", value.__name__, ""]
        if isinstance(value, type) or isinstance(value, _GLOBAL_TYPES):
            owner = value if isinstance(value, type) else getattr(value, "__objclass__", value)
            module, name = str(owner.__module__), str(value.__qualname__)
            found: Any = sys.modules.get(module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value and module != MODULE:
                return ["global", module, name]
        if isinstance(value, types.BuiltinMethodType) and data_types.tag_of(value.__self__):
            return ["method", self.encode(value.__self__), value.__name__]
        if isinstance(value, types.MethodType) and is_object(value.__self__):
            return self.encode(value.__self__)
        if isinstance(value, types.FunctionType):
            return self._encode_function(value)
        raise CannotCross(f"the program gets {type(value).__name__} of the test")

    def _encode_function(self, function: types.FunctionType) -> list:
        node = _definition(function.__code__, self._source) or _definition(function.__code__, self._setup)
        used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} if node else set()
        if node is None or used & {"__compare__", "__true__"} or any(
            isinstance(inner, (ast.Assert, ast.Global, ast.Nonlocal)) for inner in ast.walk(node)
        ):
            raise CannotCross("the program gets a function of the test that asserts or assigns")
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        known = {name: self.namespace[name] for name in used & self.namespace.keys()}
        known |= {name: cell.cell_contents for name, cell in cells.items() if name != function.__name__}
        for name in ("__is__", "__type__", function.__name__):
            known.pop(name, None)
        for number, default in enumerate(function.__defaults__ or ()):
            node.args.defaults[number] = ast.Name(f"default_{number}", ast.Load())
            known[f"default_{number}"] = default
        for name, default in (function.__kwdefaults__ or {}).items():
            place = [argument.arg for argument in node.args.kwonlyargs].index(name)
            node.args.kw_defaults[place] = ast.Name(f"default_{name}", ast.Load())
            known[f"default_{name}"] = default
        number = self.register(function)
        body = ast.Return(node) if isinstance(node, ast.Lambda) else node
        names = sorted(known)
        return ["function", number, function.__name__, ast.unparse(body), names, *[self.encode(known[n]) for n in names]]

    def decode_foreign(self, node: list) -> Any:
        match node:
            case ["object", number, str(name), bool(known), int() | None as hash_value, list(own), bool(has_data), data]:
                own_names = frozenset(name for name in own if type(name) is str)
                data = NO_DATA if data is None else self.decode(data)
                value: Any = objects.new(Facts(name[:80], known, hash_value, own_names, has_data, data))
                self.add(number, value)
                return value
            case ["error class", number, list(described)]:
                value = self._error_class(described)
                self.add(number, value)
                return value
            case ["error", number, list(described), args, str(text), list(attributes), cause, list(members)]:
                found = {name: self.decode(value) for name, value in attributes if type(name) is str}
                arguments = self.decode(args) if args is not None else (text,) if text else ()
                error = self._error(self._error_class(described), tuple(arguments), text, found, members)
                self.add(number, error)
                if cause is not None:
                    error.__cause__ = self.decode(cause)
                return error
        return data_types.decode_leaf(node)

    def _error(self, cls: Any, args: tuple, text: str, attributes: dict, members: list) -> BaseException:
        builtin = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        if issubclass(cls, BaseExceptionGroup):
            return builtin.__new__(cls, str(attributes.get("message")), [*map(self.decode, members)])
        try:
            error = builtin.__new__(cls, *args)
            if not issubclass(cls, UnicodeError):  # which reads at the places that its arguments give
                builtin.__init__(error, *args)
        except (TypeError, ValueError):
            error = builtin.__new__(cls)
        BaseException.__dict__["args"].__set__(error, args)
        start, end = attributes.get("start"), attributes.get("end")
        is_text = isinstance(attributes.get("object"), (str, bytes)) and type(start) is type(end) is int
        for name, value in attributes.items():
            member = getattr(builtin, name, None)
            if isinstance(member, exchange.MEMBERS):
                if not issubclass(cls, UnicodeError) or (
                    is_text and 0 <= start <= end <= len(attributes["object"])
                ):
                    with suppress(AttributeError, TypeError):
                        member.__set__(error, value)
            elif (name[:1] != "_" or name == "__notes__") and not hasattr(BaseException, name):
                vars(error)[name] = value
        if isinstance(cls, objects.ErrorClass):
            vars(error)["text of the program"] = text
        return error

    def _error_class(self, described: list) -> Any:
        """Return the class of exceptions with this name and bases: this process's own, or a stand-in."""
        module, name, *bases = described
        if module == "setup":
            return self.classes[name]
        if module.split(".")[0] in exchange.SHARED_MODULES and module in sys.modules:
            found = vars(sys.modules[module]).get(name)
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
        key = json.dumps(described)
        if key not in self._error_classes:
            known = tuple(map(self._error_class, bases)) or (Exception,)
            self._error_classes[key] = objects.stand_in(str(name)[:80], known)
        return self._error_classes[key]

    def factory(self, value: Any) -> Any:
        if value is not None and not is_object(value) and value not in data_types.DATA_CLASSES:
            raise CodecError("no factory")
        return value


@lru_cache(maxsize=4096)
def _compiled(source: str, name: str, mode: str) -> types.CodeType:
    return compile(source, name, mode, 0, True)


def _definition(code: types.CodeType, source: str) -> Any:
    """Return the definition of a function in a source, without decorators, or None."""
    places = [(line, column) for line, _, column, end in code.co_positions() if line and end]
    found = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            name = getattr(node, "name", "<lambda>")
            start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            if name == code.co_name and places and start <= min(places) and max(places) <= end:
                if found is None or start >= (found.lineno, found.col_offset):
                    found = node
    if isinstance(found, ast.FunctionDef):
        found.decorator_list = []
    return found


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


def _is_index(key: Any) -> bool:
    """Return whether a key is a number or a class, as in `x[1:2]` and `List[int]`."""
    return all(type(part) in (int, slice, type) for part in (key if type(key) is tuple else (key,)))

