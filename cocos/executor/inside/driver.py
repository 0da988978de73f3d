"""Process that runs the tests. No program can reach it.

A test runs here as plain Python. Its names that only the program defines are asked of the program's process
(`program.py`): calls go there with their arguments, and data or references to objects come back
(`exchange.py`). So the program never sees a test or an expected value, and this process decides. Where an
object of the program decides instead, as `==` between two of its objects does, the test runs there, marked
(`operations.py`).

The process serves many jobs, until a test could leave something behind in it.
"""

import _signal
import _socket
import dataclasses
import gc
import json
import marshal
import operator
import os
import resource
import sys
import time
import types
from typing import Any

from . import data_types, fixed_world, scripts, stand_ins, trusted_code
from .exchange import text_of
from .marks import Mark, Reason, tells_expected
from .operations import Names, Operations
from .requests import MALFORMED, CannotCross, ProgramGone, ProgramStopIteration, Requests
from .stand_ins import facts, is_object
from .trusted_code import MODULE
from .wire_format import CONTROL_FD, DRIVER_HEADER, EVIDENCE_HEADER, MESSAGE_CHARS, PEER_FD, read_exactly

MAX_GROWTH = 64 << 10  # KiB that jobs may leave in this process
RECURSION_LIMIT = 10_000  # values that are nested deeply take several frames for each level
_OPERATORS: dict[str, Any] = {
    **{"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt},
    **{">=": operator.ge, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b},
    "within": lambda a, b, tolerance, absolute: absolute(a - b) < tolerance,
}


def run_driver(max_bytes: int) -> None:
    """Serve jobs. The zygote starts another driver after a job that may have left something behind.

    A job arrives with a socket to its program. It is marshalled: the setup's source and code, the names of
    the setup that the program has too, and for each test its source, code, kind, names that only the program
    has, and whether it is plain. The code is marshalled; it is the source again if the trusted process has
    another version of Python. Kind is "driven", "in child", "value", or of all tests "script" (`scripts.py`).

    Evidence is a JSON list. It begins with ["loaded"], or ["program", error type, message, place] if the
    program raised. Then follows a list for each test: seconds, outcome, and the two parts of its mark. An
    outcome is one of

        ["passed"]
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the program's process can run the test
        ["value", encoded]                                     a value, or what a run of a script printed
        ["ended", wait status, processor seconds, MiB]         the run was killed
        ["not run"]
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    for name in list(sys.modules):  # no text of a program finds this package by its name
        if name.partition(".")[0] == __package__:
            del sys.modules[name]
    trusted_code.restrict(lambda reason: stand_ins.operations.requests.leave_undecided(Mark(reason)))
    for name in ("asdict", "astuple", "fields", "is_dataclass", "replace"):
        setattr(dataclasses, name, stand_ins.local(vars(dataclasses)[name]))
    sys.getsizeof = stand_ins.local(sys.getsizeof, of_data=True)
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
        fixed_world.restart()  # a setup draws the same numbers here and in the program's process
        fixed_world.WORLD.restart_clock(clock_ns or None)
        driver, tests = Driver(max_bytes, control), marshal.loads(job)
        evidence = json.dumps(driver.run(*tests)).encode()
        may_go_on = driver.is_clean and _size() < size_at_start + MAX_GROWTH
        control.sendall(EVIDENCE_HEADER.pack(len(evidence), may_go_on, driver.close(), False) + evidence)


class Driver:
    """The tests of a job.

    Attributes:
        requests: The conversation with the program.
        operations: What the tests do with objects of the program.
        is_clean: The tests can leave nothing behind in this process.

    """

    def __init__(self, max_bytes: int, control: _socket.socket) -> None:
        self.requests = Requests()
        self.operations = stand_ins.operations = Operations(self.requests)
        self.is_clean = True
        self._max_bytes = max_bytes  # of the value of an expression
        self._control = control
        self._setup_error: BaseException | None = None
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last

    def run(self, setup: str, code: bytes | str, shared: list, tests: list, helpers: list) -> list:
        """Run the tests and return the evidence.

        Args:
            setup: The source of the setup.
            code: The setup's code.
            shared: Names that it defines for the program too.
            tests: For each test its source, code, kind, names that only the program has, and whether it is
                plain.
            helpers: Standard names that the program defines, and of which no test is a test.

        """
        rows: list[list] = []
        self.is_clean = all(is_plain for *_, is_plain in tests)
        try:
            match self.requests.receive():
                case ["loaded", list(own), dict(functions)]:
                    rows.append(["loaded"])
                case ["program", *texts] if [type(text) for text in texts] == [str, str, str]:
                    return [["program", *(text[:MESSAGE_CHARS] for text in texts)]]
                case _:
                    self.requests.leave(MALFORMED)
            if tests[0][2] == "script":
                self.requests.is_gone = True  # it ends with the runs, and what all of them took is counted
                for row in scripts.runs([source for source, *_ in tests], self._control, self._max_bytes):
                    rows.append(row)
                return rows
            self.requests.remote = {name for *_, names, _ in tests for name in names}
            self._begin(code, shared, set(helpers), set(map(str, own)), functions)
            for number, (source, test, kind, *_) in enumerate(tests, 1):
                if "seed" not in setup and ("random" in source or "random" in setup):
                    fixed_world.random.seed(hash(source))  # the program knows the seed of its own `random`
                start = time.perf_counter()
                outcome = self._outcome(source, test, kind, number, bool(setup))
                rows.append([time.perf_counter() - start, outcome, *self.requests.marks.mark()])
        except BaseException:  # also what decoding and the program's answers raise outside of a test
            if not self.requests.is_gone:
                self.requests.error_at_end = MALFORMED
            if self.requests.error_at_end:
                rows = rows or [["loaded"]]
                rows.append([0.0, ["e", *self.requests.error_at_end], "", False])
        return rows

    def close(self) -> bool:
        """Drop everything, which only a late collection would find; return whether the program has ended."""
        end, has_ended = self.requests, self.requests.is_gone
        end.is_gone = True  # for what a generator does at its end
        for table in (end.namespace, end.names, end.objects, end.numbers, end.contents, end.sources):
            table.clear()
        return has_ended

    def _begin(self, code: bytes | str, shared: list, helpers: set, own: set, functions: dict) -> None:
        """Prepare the names of the tests, and run the setup.

        Args:
            code: The setup.
            shared: Names that it defines for the program too.
            helpers: Standard names that the program defines, and of which no test is a test.
            own: Names of builtins that the program has given to something else.
            functions: Encoded functions of the program by name.

        """
        requests = self.requests
        requests.names = names = Names(self.operations, own, helpers)
        try:
            found = {name: requests.decode(node) for name, node in functions.items()}
            for name in requests.remote.intersection(found) - names.own - helpers:
                names[name] = found[name]
                self.operations.note_name(found[name])
        except Exception:
            requests.leave(MALFORMED)
        sys.modules[MODULE] = types.ModuleType(MODULE)  # where dataclasses looks names up
        requests.namespace = vars(sys.modules[MODULE])
        requests.namespace.update(
            __builtins__=names,
            __compare__=self.compare,
            __true__=self.is_true,
            __caught__=self.caught,
            __is__=self.operations.is_same,
            __type__=stand_ins.type_of,
            __source__=requests.note_source,
        )
        try:
            exec(_loaded(code), requests.namespace)
        except BaseException as error:
            self._setup_error = error
        if requests.is_gone:
            raise ProgramGone
        for name in shared:
            cls: Any = requests.namespace.get(name)
            if issubclass(type(cls), type) and cls.__module__ == MODULE and cls.__name__ == name:
                requests.classes[name] = cls
        if requests.classes:
            requests.request("classes", *requests.classes)
        requests.marks.keep()

    def _outcome(self, source: str, code: bytes | str, kind: str, number: int, has_setup: bool) -> list:
        """Run a test, which has a number among those of its job, and return its outcome."""
        requests = self.requests
        requests.marks.begin_test()
        self._false = []
        requests.final, requests.source = None, source
        error: BaseException | None = None
        try:
            if self._setup_error and kind != "in child":
                raise self._setup_error
            if kind == "in child":
                # What a name of the setup stands for may be expected, too.
                told = [source] if has_setup or tells_expected(source) else []
                requests.marks.add(Reason.RAN_THERE.format(number), False, *told)
                requests.request("run", source)
            elif kind == "value":
                value = requests.request("evaluate", source)
                return ["value", data_types.encode_plain(value, [self._max_bytes])]
            else:
                exec(_loaded(code), requests.namespace)
        except data_types.NotPlainValue as raised:
            [value] = raised.args
            name = facts(value).name if is_object(value) else type(value).__name__
            return ["e", "NotPlainValue", f"returned {name}, which is not a plain value"]
        except BaseException as raised:
            error = raised
        if requests.is_gone:
            raise ProgramGone
        if requests.final:
            return requests.final
        if isinstance(error, CannotCross):  # of the setup
            return ["undecided", str(error)]
        if error is None:
            return ["passed"]
        name = "StopIteration" if isinstance(error, ProgramStopIteration) else type(error).__name__
        if type(error) is AssertionError and not error.args and self._false:
            return ["e", name, "", *self._false]
        return ["e", str(name), text_of(error)]

    # What the test's source calls: the plan has put these calls in.

    def compare(self, symbol: str, *sides: Any) -> bool:
        """Return whether a comparison holds; note what it compared if it does not."""
        relation = symbol.removeprefix("~")
        if relation[:2] == "is":
            holds = self.operations.is_same(*sides) == (relation == "is")
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

    def caught(self, name: str, classes: Any) -> Any:
        """Return the classes of an `except`; mark the test if they may catch a failed assert of it."""
        error = sys.exception()
        if type(error) is AssertionError and not self.requests.is_foreign(error):
            self.requests.marks.add(Reason.DECIDED.format(name))
        return classes


def _loaded(code: bytes | str) -> types.CodeType:
    return compile(code, "<test>", "exec", 0, True) if isinstance(code, str) else marshal.loads(code)


def _size() -> int:
    """Return the most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


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
