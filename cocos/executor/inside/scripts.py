"""Runs of a script: the whole program anew for each test, which is an input.

The program's process compiles the program and runs nothing of it. For each test it forks a process, to which
the driver hands three files: the input, what the process prints, and why it ended. So no process has had the
input of another test in its memory. The zygote removes what a run leaves before the next one begins.
"""

import atexit
import os
import sys
import types
from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET, socket
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from time import perf_counter
from typing import Any

from . import exchange
from .confinement import use_spare_memory
from .requests import ProgramGone
from .wire_format import EVIDENCE_HEADER, FIRST_OWN_FD, GO_ON, MESSAGE_CHARS, PEER_FD, write_all

_FILES = Struct("3i")  # descriptors of the input, the output and the reason of the end
_REASON_FD = PEER_FD  # in the process of a run
_REASON_BYTES = 1 << 13
_exit = os._exit  # a program may replace it


def serve(source: str, seal: Callable[[int], None], provide: Callable[[], None]) -> None:
    """Run a script for each input that the driver sends, in the program's process; never return.

    Args:
        source: The script.
        seal: Function that confines the process of a run, which has the id of this process.
        provide: Function that writes the files of the program.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: The source is no program.

    """
    code = compile(source, "<code>", "exec", 0, True)
    output: Any = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = output  # type: ignore[misc]
    begin, driver = partial(seal, os.getpid()), socket(fileno=PEER_FD)
    exchange.send(["loaded", [], {}])
    try:
        while True:
            _, rights, *_ = driver.recvmsg(1, CMSG_SPACE(_FILES.size))
            files = _FILES.unpack(rights[0][2])
            if not (child := os.fork()):
                _run(code, files, begin, provide)
            for fd in files:
                os.close(fd)
            _, status, usage = os.wait4(child, 0)
            exchange.send([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024])
    finally:  # the driver has ended, or a run has sent a signal
        _exit(1)


def _run(code: types.CodeType, files: tuple[int, ...], *begin: Callable[[], None]) -> None:
    """Run the script with these files, and end this process as the interpreter would."""
    status = 1
    try:
        for number, fd in zip((0, 1, _REASON_FD), files, strict=True):
            os.dup2(fd, number)
        os.closerange(FIRST_OWN_FD, max(files) + 1)
        for step in begin:
            step()
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        status = 0
        try:
            exec(code, vars(main))
        except SystemExit as end:
            if end.code is not None:
                status = end.code & 255 if isinstance(end.code, int) else 1
        if threading := sys.modules.get("threading"):
            threading._shutdown()
        atexit._run_exitfuncs()
        vars(main).clear()  # which closes its files
        for file in (sys.stdout, sys.__stdout__):
            if file and not file.closed:
                file.flush()
    except BaseException as error:
        status = 1
        use_spare_memory()
        os.write(_REASON_FD, exchange.packed([str(type(error).__name__), exchange.text_of(error)]))
    finally:
        _exit(status)


def runs(inputs: list[str], control: socket, max_bytes: int) -> Iterator[list]:
    """Yield the evidence of the run for each input, in the driver.

    After a run that was killed, or if the outputs are large, the other tests are not run.

    Args:
        inputs: The inputs.
        control: The socket to the zygote.
        max_bytes: Size of an output, and of what outputs of a job may exceed once.

    Raises:
        ProgramGone: The program's process has ended.

    """
    peer, size, outcome = socket(fileno=os.dup(PEER_FD)), 0, [""]
    for number, text in enumerate(inputs):
        if number:
            control.sendall(EVIDENCE_HEADER.pack(0, True, False, True))
            if control.recv(1) != GO_ON or outcome[0] == "ended" or size > max_bytes:
                yield from ([0.0, ["not run"], "", False] for _ in inputs[number:])
                return
        start = perf_counter()
        outcome = _outcome(text, peer, max_bytes)
        size += len(outcome[1]) if outcome[0] == "value" else 0
        yield [perf_counter() - start, outcome, "", False]


def _outcome(text: str, peer: socket, max_bytes: int) -> list[Any]:
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "reason")]
    given, printed, reason = files
    try:
        write_all(given, text.encode(errors="surrogatepass"))
        os.lseek(given, 0, os.SEEK_SET)
        peer.sendmsg([b"+"], [(SOL_SOCKET, SCM_RIGHTS, _FILES.pack(*files))])
        status, cpu_s, peak_mb = exchange.parsed(exchange.receive())
        if os.WIFSIGNALED(status):
            return ["ended", status, cpu_s, peak_mb]
        if status:
            end = ["e", "ProcessExit", f"exit status {os.WEXITSTATUS(status)}"]
            return _reason(os.pread(reason, _REASON_BYTES, 0)) or end
        if (size := os.fstat(printed).st_size) > max_bytes:
            return ["e", "OutputLimit", "more than output_kb"]
        return ["value", os.pread(printed, size, 0).decode(errors="replace")]
    except (EOFError, OSError):
        raise ProgramGone from None
    finally:
        for fd in files:
            os.close(fd)


def _reason(message: bytes) -> list[str]:
    """Return the outcome that a process has written for its end; [] if it is malformed."""
    try:
        match exchange.parsed(message[exchange.SIZE_BYTES :]):
            case [str(name), str(text)]:
                return ["e", name, text[:MESSAGE_CHARS]]
    except (ValueError, RecursionError, StopIteration):
        pass
    return []
