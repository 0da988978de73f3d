"""One worker process, seen from the trusted side: start it, hand it a job, read its answer, kill it."""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from cocos.executor.verdicts import ExecutionResult, Program, Status, Verdict

INSIDE = Path(__file__).parent / "inside"
HEADER = struct.Struct("!IdIIIIII")  # the same two as in inside/__main__.py
ANSWER = struct.Struct("!ciddI")
EXITED, TIMED_OUT, FLOODED = b"E", b"T", b"F"
START_S = 60.0  # a worker that is not ready by then counts as dead
GRACE_S = 15.0  # beyond a program's wall limit: the zygote itself is stuck


class WorkerDied(Exception):
    """The worker ended, hung or spoke nonsense: no fault of the program as far as anyone can tell."""


class Worker:
    """A spawned zygote and the two pipes to it. Belongs to one thread."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(INSIDE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            cwd="/",
            start_new_session=True,
        )
        self._deadline = time.monotonic() + START_S
        if self._read(6) != b"ready\n":
            raise WorkerDied("the worker did not start")

    def run(self, program: Program, isolation: str) -> ExecutionResult:
        """Run one program; raise WorkerDied where the worker, not the program, failed."""
        limits = program.limits
        assert limits is not None
        job = json.dumps({"code": program.code, "setup": program.setup, "tests": program.test_list}).encode()
        header = HEADER.pack(
            len(job), limits.wall_s, limits.cpu_s, limits.memory_mb, limits.output_kb, limits.file_mb, limits.processes,
            limits.open_files,
        )  # fmt: skip
        self._deadline = time.monotonic() + limits.wall_s + GRACE_S
        self._write(header + job)
        end, status, duration_s, cpu_used_s, size = ANSWER.unpack(self._read(ANSWER.size))
        evidence = self._read(size)
        return _result(program, evidence, _cause(end, status, cpu_used_s, limits.cpu_s), isolation, duration_s)

    def kill(self) -> None:
        """End the worker and everything below it, and reap it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            view = memoryview(data)
            while view:
                view = view[self.process.stdin.write(view) or 0 :]
        except BrokenPipeError:
            raise WorkerDied("the worker died before it took the job") from None

    def _read(self, size: int) -> bytes:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        parts = []
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while size:
            if not poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000):
                raise WorkerDied("the worker does not answer")
            part = os.read(fd, min(size, 1 << 20))
            if not part:
                raise WorkerDied(f"the worker died (exit status {self.process.poll()})")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _cause(end: bytes, status: int, cpu_used_s: float, cpu_s: int) -> Verdict:
    """Why the process ended, as the verdict on a test that left no evidence."""
    if end == TIMED_OUT:
        return Verdict(Status.TIMEOUT, "TimeoutError", "wall limit reached")
    if end == FLOODED:
        return Verdict(Status.ERROR, "OutputLimit", "more came back than output_kb allows")
    if os.WIFSIGNALED(status):
        if cpu_used_s >= cpu_s or os.WTERMSIG(status) == signal.SIGXCPU:
            return Verdict(Status.TIMEOUT, "TimeoutError", "CPU limit reached")
        return Verdict(Status.ERROR, "Killed", f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    return Verdict(Status.ERROR, "SystemExit", "the process ended before the test did")


def _result(program: Program, evidence: bytes, cause: Verdict, isolation: str, duration_s: float) -> ExecutionResult:
    """Turn lines of evidence into verdicts; whatever is malformed or missing is no evidence."""
    count = len(program.test_list)
    verdicts: list[Verdict] = []
    loaded = False
    for line in evidence.split(b"\n")[:-1]:
        try:
            head, *rest = json.loads(line)
        except (ValueError, TypeError):
            break
        if head == "program" and not loaded:
            if rest:
                status = Status.MEMORY if rest[0] == "MemoryError" else Status.ERROR
                verdict = Verdict(status, str(rest[0]), str(rest[1]))
                return ExecutionResult((verdict,) * count, None, isolation, duration_s, verdict.error_type, verdict.message)
            loaded = True
        elif loaded and head == len(verdicts) < count:
            verdicts.append(_verdict(*rest))
        else:
            break
    if not loaded:
        return ExecutionResult((cause,) * count, None, isolation, duration_s, cause.error_type, cause.message)
    if len(verdicts) < count:
        verdicts += [cause] + [Verdict(Status.NOT_RUN)] * (count - len(verdicts) - 1)
    return ExecutionResult(tuple(verdicts), None, isolation, duration_s)


def _verdict(duration_s: float, error_type: str | None = None, message: str | None = None) -> Verdict:
    statuses = {None: Status.PASSED, "AssertionError": Status.FAILED, "MemoryError": Status.MEMORY}
    return Verdict(statuses.get(error_type, Status.ERROR), error_type, message, duration_s=duration_s)
