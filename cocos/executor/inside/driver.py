"""Process that runs the tests. No program can reach it.

A test runs here as plain Python. Its names that only the program defines are asked of the program's process
(`program.py`): calls go there with their arguments, and data or references to objects come back
(`exchange.py`). So the program never sees a test or an expected value, and this process decides. Where an
object of the program decides instead, as `==` between two of its objects does, the test is marked
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
from functools import lru_cache
from typing import Any

from . import data_types, fixed_world, objects, trusted_code
from .driver_end import MALFORMED, CannotCross, ProgramGone, ProgramStopIteration
from .exchange import text_of
from .marks import Mark, Reason
from .objects import facts, is_object
from .operations import Names, Operations
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

    A job arrives with a socket to its program. It is marshalled: the setup's source, the names of the setup
    that the program has too, and for each test its source, kind, names that only the program has, and
    whether it is plain. Kind is "driven", "in child" or "value".

    Evidence is a JSON list. It begins with ["loaded"], or ["program", error type, message, place] if the
    program raised. Then follows a list for each test: seconds, outcome, and the two parts of its mark. An
    outcome is one of

        ["passed"]
        ["e", error type, message]                             the test raised
        ["e", "AssertionError", "", text]                      this condition is false
        ["e", "AssertionError", "", operator, left, right]     this comparison is false; perhaps a tolerance
        ["undecided", reason]                                  only the program's process can run the test
        ["value", encoded]                                     the value of an expression
    """
    sys.setrecursionlimit(RECURSION_LIMIT)
    for name in list(sys.modules):  # no text of a program finds this package by its name
        if name.partition(".")[0] == __package__:
            del sys.modules[name]
    trusted_code.restrict(lambda reason: objects.driver.leave_undecided(Mark(reason)))
    for name in ("asdict", "astuple", "fields", "is_dataclass", "replace"):
        setattr(dataclasses, name, objects.local(vars(dataclasses)[name]))
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


def _run(job: tuple[str, list, list, list], max_bytes: int) -> tuple[list, bool]:
    """Run the tests of a job; return the evidence, and whether this process may run another job."""
    setup, shared, tests, helpers = job
    rows: list[list] = []
    driver = objects.driver = Driver(max_bytes)
    is_clean = all(is_plain for *_, is_plain in tests)
    try:
        match driver.receive():
            case ["loaded", list(own), dict(functions)]:
                rows.append(["loaded"])
            case ["program", *texts] if [type(text) for text in texts] == [str, str, str]:
                return [["program", *(text[:MESSAGE_CHARS] for text in texts)]], is_clean
            case _:
                driver.leave(MALFORMED)
        driver.begin(setup, shared, tests, helpers, own, functions)
        for number, (source, kind, *_) in enumerate(tests, 1):
            if "seed" not in setup:
                fixed_world.random.seed(hash(source))  # the program knows the seed of its own `random`
            start = time.perf_counter()
            outcome = driver.outcome(source, kind, number)
            rows.append([time.perf_counter() - start, outcome, *driver.marks.mark()])
    except BaseException:  # also what decoding and the program's answers raise outside of a test
        if not driver.is_gone:
            driver.error_at_end = MALFORMED
        if driver.error_at_end:
            rows = rows or [["loaded"]]
            rows.append([0.0, ["e", *driver.error_at_end], "", False])
    return rows, is_clean


class Driver(Operations):
    """The tests of a job."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes  # of the value of an expression
        self._setup_error: BaseException | None = None
        self._false: list[str] = []  # operator and sides, or the text, of the assert that failed last

    def clear(self) -> None:
        """Drop everything. The parts refer to each other, so that only a late collection would find them."""
        self.is_gone = True  # for what a generator does at its end
        for table in (self.namespace, self.names, self.objects, self.numbers, self.contents, self.sources):
            table.clear()

    def begin(self, setup: str, shared: list, tests: list, helpers: list, own: list, functions: dict) -> None:
        """Prepare the names of the tests, and run the setup.

        Args:
            setup: The setup.
            shared: Names that it defines for the program too.
            tests: The tests of the job.
            helpers: Standard names that the program defines, and of which no test is a test.
            own: Names of builtins that the program has given to something else.
            functions: Encoded functions of the program by name.

        """
        self.remote = {name for *_, names, _ in tests for name in names}
        self.names = Names(self, set(map(str, own)), set(helpers))
        try:
            found = {name: self.decode(node) for name, node in functions.items()}
            for name in self.remote.intersection(found) - self.names.own - self.names.helpers:
                self.names[name] = found[name]
                self.note_name(found[name])
        except Exception:
            self.leave(MALFORMED)
        sys.modules[MODULE] = types.ModuleType(MODULE)  # where dataclasses looks names up
        self.namespace = vars(sys.modules[MODULE])
        self.namespace.update(
            __builtins__=self.names,
            __compare__=self.compare,
            __true__=self.is_true,
            __is__=self.is_same,
            __type__=objects.local(type),
            __source__=self.note_source,
        )
        self.setup = setup
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
        self.marks.keep()

    def outcome(self, source: str, kind: str, number: int) -> list:
        """Run a test, which has a number among those of its job, and return its outcome."""
        self.marks.begin_test()
        self._false = []
        self.final = None
        self.source = source
        error: BaseException | None = None
        try:
            if self._setup_error and kind != "in child":
                raise self._setup_error
            if kind == "in child":
                # What a name of the setup stands for may be expected, too.
                told = [source] if self.setup or _tells_expected(source) else []
                self.marks.add(Reason.RAN_THERE.format(number), False, *told)
                self.request("run", source)
            elif kind == "value":
                value = self.request("evaluate", source)
                return ["value", data_types.encode_plain(value, [self._max_bytes])]
            else:
                exec(_compiled(source), self.namespace)
        except data_types.NotPlainValue as raised:
            [value] = raised.args
            name = facts(value).name if is_object(value) else type(value).__name__
            return ["e", "NotPlainValue", f"returned {name}, which is not a plain value"]
        except BaseException as raised:
            error = raised
        if self.is_gone:
            raise ProgramGone
        if self.final:
            return self.final
        if isinstance(error, CannotCross):  # of the setup
            return ["undecided", error.mark.reason]
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


def _size() -> int:
    """Return the most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@lru_cache(maxsize=4096)
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<test>", "exec", 0, True)


def _tells_expected(source: str) -> bool:
    try:
        return data_types.tells_expected(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


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
