"""Process of one program. It runs the code, then does what the driver of its tests asks for.

The program controls this process, so nothing that this module sends is trusted. It receives no test and no
expected value, except of a test that can only run here. Everything that does not depend on the job is built
at import, in the zygote; children share these memory pages until they write to them. A value larger than a
message may be ends the test with OutputLimit, here or in the driver.
"""

import builtins
import gc
import importlib
import marshal
import os
import sys
import types
from _socket import SHUT_WR, socketpair
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from . import data_types, exchange, scripts
from .confinement import use_spare_memory
from .exchange import text_of
from .stand_ins import VERBS, kind_of
from .wire_format import PEER_FD

# The modules that candidates import most. The zygote imports them once, and every child inherits them.
COMMON_MODULES = (
    "array bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator "
    "re statistics string textwrap typing"
)
FRAMES = 60  # that a request adds to the stack of the program
FRAMES_OF_VALUES = 5000  # for values that are nested deeply
MAX_FUNCTIONS = 16  # that the driver is told of before it asks

for _name in COMMON_MODULES.split():
    importlib.import_module(_name)

_BUILTINS = {name: value for name, value in vars(builtins).items() if name[:1] != "_"}
_execute, _evaluate, _compile = exec, eval, compile
_exit, _set_blocking = os._exit, os.set_blocking
# Some modules, such as dataclasses and pickle, look up the module of a class in `sys.modules`.
_MODULE = sys.modules["candidate_program"] = types.ModuleType("candidate_program")
_NAMESPACE = _MODULE.__dict__


class SemLock:
    """Semaphore of multiprocessing's pools, queues and locks. No level has a place for a real one."""

    SEM_VALUE_MAX = 1

    def __init__(self, *_: object) -> None:
        raise PermissionError(
            "a program gets no process pool (multiprocessing, ProcessPoolExecutor); use ThreadPoolExecutor"
        )


sys.modules["_multiprocessing"] = types.ModuleType("_multiprocessing")
vars(sys.modules["_multiprocessing"]).update(SemLock=SemLock, sem_unlink=os.unlink)


def run_program(job: bytes, max_bytes: int, seal: Callable[[int], None] | None = None) -> None:
    """Run one job, answer its driver in messages of at most `max_bytes`, and end the process.

    The job is marshalled (code, setup, stdin, files). The first message is ["loaded", names of builtins that
    the program has given to something else], or ["program", error type, message, place] if code or setup
    raised. With `seal` the code is a script, of which each test is a run (`scripts.py`).
    """
    code, setup, stdin, files = marshal.loads(job)
    gc.enable()
    sys.setrecursionlimit(sys.getrecursionlimit() + FRAMES)
    try:
        if seal:
            scripts.serve(code, seal, partial(_provide, "", files))
        if stdin or files:
            _provide(stdin, files)
        _execute(_compile(code, "<code>", "exec", 0, True), _NAMESPACE)
        if setup:
            _execute(_compile(setup, "<setup>", "exec", 0, True), _NAMESPACE)
    except BaseException as error:
        use_spare_memory()
        exchange.send(["program", str(type(error).__name__), text_of(error), _place_of(error, code)])
        _exit(0)
    end = ProgramEnd(max_bytes)
    _set_blocking(PEER_FD, True)
    exchange.send(["loaded", own_builtins(_NAMESPACE), end.functions()])
    try:
        end.serve()
    finally:
        _exit(0)  # without the candidate's atexit handlers


def _place_of(error: BaseException, code: str) -> str:
    """Return the line of the program's code that raised an error, with its source; "" if none did."""
    trace: Any = vars(BaseException)["__traceback__"].__get__(error)  # whatever its class makes of it
    while trace and trace.tb_frame.f_code.co_filename != "<code>":
        trace = trace.tb_next
    number = trace.tb_lineno if trace else 0
    if isinstance(error, SyntaxError) and error.filename == "<code>":
        number = error.lineno or 0
    lines = code.split("\n")
    return f"line {number} (`{lines[number - 1].strip()}`)" if 0 < number <= len(lines) else ""


def _provide(stdin: str, files: tuple[tuple[str, str], ...]) -> None:
    """Let `stdin` be what descriptor 0 reads, and write files (path, text) below the working folder."""
    if stdin:
        # A memory file, not a pipe: a pipe takes 64 KiB and blocks its writer, which is this process.
        with open(os.memfd_create("stdin"), "wb") as file:
            file.write(stdin.encode())
            file.seek(0)
            os.dup2(file.fileno(), 0)
    for path, text in files:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "xb") as file:
            file.write(text.encode())


def own_builtins(namespace: dict) -> list[str]:
    """Return the names of builtins that the program has given to something else."""
    # Not the builtins one by one: touching each of them costs a copy of its page.
    return [name for name in _BUILTINS.keys() & namespace if namespace[name] is not _BUILTINS[name]]


class ProgramEnd(exchange.End):
    """The program's end of the conversation about its tests."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(first_number=2)
        self._max_bytes = max_bytes
        self._more_frames = MoreFrames()
        self._cells: dict[int, dict[str, Any]] = {}  # of the names that functions of the test take from there
        self._told: dict[str, Any] = {}  # the names that the driver knows

    def functions(self) -> dict[str, list]:
        """Return the encoded functions of the program by name, which its tests may want."""
        found = [name for name, value in _NAMESPACE.items() if type(value) is types.FunctionType]
        self._told = {name: _NAMESPACE[name] for name in found[-MAX_FUNCTIONS:]}
        return {name: self.encode_foreign(value) for name, value in self._told.items()}

    def serve(self) -> None:
        """Do what the driver asks for until the tests have ended."""
        while True:
            try:
                request = exchange.receive()
            except (EOFError, OSError):
                return  # also after the last test
            kind = "v"
            try:
                with self._more_frames:
                    values, names, operation = self._read(*exchange.parsed(request))
                split = len(values) - len(names)
                keywords = dict(zip(names, values[split:], strict=True))
                value = self._perform(operation, values[:split], keywords)
                del values, keywords  # so that nothing but the program refers to them
            except BaseException as error:
                if isinstance(error, MemoryError):
                    use_spare_memory()
                kind, value = "e", error
            _set_blocking(PEER_FD, True)  # in case the program has changed that
            self._answer(kind, value)
            del value

    def _read(
        self, operation: str, nodes: list, names: list, changes: list, dropped: list, captured: list
    ) -> tuple[list, list, str]:
        """Return values, names of keyword arguments and operation of a request."""
        for number, name, node in captured:
            self._cells[number][name].cell_contents = self.decode(node)
        values = self.decode_all(nodes)
        self.apply(changes)
        self.forget(dropped)
        return values, names, operation

    def _answer(self, kind: str, value: Any) -> None:
        first = self.next_number
        try:
            with self._more_frames:
                node = self.encode(value) if kind == "v" else self.encode_error(value)
                rebound = [name for name, told in self._told.items() if _NAMESPACE.get(name) is not told]
                changes = self.changes()
                dropped = self.sweep() if len(self.objects) > exchange.SMALL_TABLE else []
                self.send([kind, node, changes, rebound, dropped], self._max_bytes)
        except (MemoryError, RecursionError, OverflowError) as error:
            use_spare_memory()
            self.forget_from(first)
            name = "OutputLimit" if isinstance(error, OverflowError) else type(error).__name__
            known = ["", name, ["builtins", "Exception"]] if name == "OutputLimit" else ["builtins", name]
            text = "more than output_kb" if name == "OutputLimit" else "while a value was sent"
            node = ["error", self.register(error), known, None, text, [], [], []]
            self._changed.clear()
            self.send(["e", node, [], [], self.dropped])

    def _perform(self, operation: str, values: list, keywords: dict) -> Any:
        match operation:
            case "name":
                [name] = values
                if name in _NAMESPACE:
                    self._told[name] = _NAMESPACE[name]
                    return _NAMESPACE[name]
                if hasattr(builtins, name):
                    return getattr(builtins, name)
                raise NameError(f"name {name!r} is not defined")
            case "run":
                _NAMESPACE["__name__"], sys.modules["__main__"] = "__main__", _MODULE
                _execute(_compile(values[0], "<test>", "exec", 0, True), _NAMESPACE)
                return None
            case "evaluate":
                return _evaluate(_compile(values[0], "<test>", "eval", 0, True), _NAMESPACE)
            case "classes":
                self.classes = {name: _NAMESPACE[name] for name in values}
                return None
        return VERBS[operation](*values, **keywords)

    def _may_go(self, number: int) -> bool:
        # The driver may get all of the program back; and a weak reference may lead to another object.
        return number % 2 == 1 and type(self.objects[number]) in (list, dict)

    def encode_foreign(self, value: Any) -> Any:
        cls = type(value)
        number = self.register(value)
        if issubclass(cls, type) and issubclass(value, BaseException):
            return ["error class", number, self.encode_error_class(value)]
        name = str(value.__name__ if issubclass(cls, type) else cls.__name__)[:80]
        return ["object", number, name, kind_of(cls)]

    def decode_foreign(self, node: list) -> Any:
        match node:
            case ["global", str(module), str(name)]:
                value: Any = importlib.import_module(module)
                for part in name.split(".") if name else ():
                    value = getattr(value, part)
                return value
            case ["method", owner, str(name)]:
                return getattr(self.decode(owner), name)
            case ["function", int(number), str(name), str(source), list(names), defaults, keywords, *nodes]:
                body = "\n ".join([*source.split("\n"), f"return {name}"])
                if name == "<lambda>":
                    body = f"return {source}"
                maker = f"def make({', '.join(names)}):\n {body}"
                found: dict[str, Any] = {}
                _execute(_compile(maker, "<test>", "exec", 0, True), _NAMESPACE, found)
                function = found["make"](*[None] * len(names))
                self.add(number, function)  # before its values, which may refer to it
                function.__defaults__, function.__kwdefaults__ = self.decode(defaults), self.decode(keywords)
                cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
                self._cells[number] = cells
                for used, node in zip(names, nodes, strict=True):
                    if used in cells:
                        cells[used].cell_contents = self.decode(node)
                return function
            case ["error", int(number), [module, name, *_], args, _, attributes, causes, members]:
                cls = self.classes[name] if module == "setup" else vars(sys.modules[module])[name]
                told = {attribute: self.decode(value) for attribute, value in attributes}
                parts = (told["message"], [*map(self.decode, members)]) if members else self.decode(args)
                # Not `cls(*args)`: the arguments of JSONDecodeError are others.
                error = cls.__new__(cls, *(parts or ()))
                self.add(number, error)
                for attribute, value in told.items():
                    with suppress(AttributeError, TypeError):
                        setattr(error, attribute, value)
                self._add_causes(error, causes)
                return error
        return data_types.decode_leaf(node)


def warm_up() -> None:
    """Run often what all children run.

    The interpreter rewrites code that it has run a few times. A child that does so copies each such page.
    """
    devnull = os.dup(PEER_FD)
    for _ in range(64):
        end = ProgramEnd(1 << 20)
        own_builtins({"f": end})
        end.functions()
        for request in (
            ["name", ["sorted"], [], [], [], []],
            ["__call__", [["@", 2], ["l", 1, None, 3, 2]], [], [], [], []],
            ["__call__", [["@", 2], ["@", 1], 1.5, ["t", 1, 2.5]], ["key", "x"], [[1, 3, 2, 1]], [], []],
        ):
            ours, theirs = socketpair()
            os.dup2(theirs.fileno(), PEER_FD)
            ours.send(exchange.packed(request))
            ours.shutdown(SHUT_WR)
            end.serve()
    os.dup2(devnull, PEER_FD)
    os.close(devnull)


class MoreFrames:
    """Lets values that are nested deeply be encoded and decoded."""

    def __enter__(self) -> None:
        self._limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(self._limit, FRAMES_OF_VALUES))

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._limit)
