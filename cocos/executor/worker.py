"""One worker process, seen from the trusted side: hand it a job, read its answer, kill it.

Knows the wire format. Does not know how the process is confined: a `Launcher` starts it.
"""

import json
import marshal
import os
import select
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.evidence import Answer
from cocos.executor.judging.plans import InChild, Judged, Plan
from cocos.executor.limits import Limits

HEADER = struct.Struct("!IIdIIIIII")  # the same two as in inside/zygote.py
ANSWER = struct.Struct("!c?idddII")
NEVER_STARTED = b"N"
MARSHAL_VERSION = 2  # the plain types that a job is made of read the same in every Python
START_S = 60.0  # a worker that is not ready by then counts as dead
GRACE_S = 15.0  # beyond a program's wall limit: the zygote itself is stuck


class WorkerDied(Exception):
    """The worker ended, hung or spoke nonsense: no fault of the program as far as anyone can tell."""


class Worker:
    """A running zygote and the two pipes to it. Belongs to one thread."""

    def __init__(self, launch: Callable[[], "Sandbox"]) -> None:
        self.sandbox = launch()
        assert self.sandbox.process.stdin and self.sandbox.process.stdout
        self._jobs, self._answers = self.sandbox.process.stdin.fileno(), self.sandbox.process.stdout.fileno()
        self._received = b""
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._deadline = time.monotonic() + START_S
        try:
            if self._read(6) != b"ready\n":
                raise WorkerDied("the worker did not start")
        except WorkerDied:
            self.kill()
            raise

    def run(self, code: str, setup: str, plans: tuple[Plan, ...], limits: Limits) -> Answer:
        """Run one program.

        Raises:
            WorkerDied: The worker, not the program, failed.

        """
        candidate, judge = _job(code, setup, plans)
        header = HEADER.pack(
            len(judge),
            len(candidate),
            limits.wall_s,
            limits.cpu_s,
            limits.memory_mb,
            limits.output_kb,
            limits.file_mb,
            limits.processes,
            limits.open_files,
        )
        self._deadline = time.monotonic() + limits.wall_s + GRACE_S
        self._write(header + judge + candidate)
        end, is_spent, status, wall_s, cpu_s, peak_mb, *sizes = ANSWER.unpack(self._read(ANSWER.size))
        if end == NEVER_STARTED:
            raise WorkerDied("a child could not be confined")
        candidate, judge = (self._read(size) for size in sizes)
        return Answer(end, is_spent, status, wall_s, cpu_s, peak_mb, candidate, judge)

    def kill(self) -> None:
        """End the worker and everything below it, and reap it."""
        self.sandbox.kill()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._jobs, view) :]
        except BrokenPipeError:
            raise WorkerDied("the worker died before it took the job") from None

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            if not self._poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000):
                raise WorkerDied("the worker does not answer")
            part = os.read(self._answers, 1 << 18)
            if not part:
                raise WorkerDied(f"the worker died {self.sandbox.last_words()}".strip())
            self._received += part
        data, self._received = self._received[:size], self._received[size:]
        return data


class Sandbox:
    """The process of a worker, in a session of its own, and what must go when it goes.

    Args:
        command: What to start.
        environment: Its environment, whole.
        pass_fds: Descriptors that it inherits.
        clean_up: Called once it is dead.

    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        pass_fds: tuple[int, ...] = (),
        clean_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._clean_up = clean_up
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,
            pass_fds=pass_fds,
        )

    def last_words(self) -> str:
        """The last line that the process wrote to stderr before it was ready, or ""."""
        with suppress(ValueError):  # closed
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""

    def kill(self) -> None:
        """Kill the process group, reap the process, close the pipes. Safe to call twice."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for file in (self.process.stdin, self.process.stdout, self._errors):
                with suppress(BrokenPipeError):
                    file.close()  # type: ignore[union-attr]
            self._clean_up()


def _job(code: str, setup: str, plans: tuple[Plan, ...]) -> tuple[bytes, bytes]:
    """The candidate's part of a job, which holds nothing of what is expected, and the judge's, or b""."""
    atoms: list[str] = []
    tests: list[int | str | None] = []
    judged: list[dict] = []
    for number, plan in enumerate(plans):
        match plan:
            case Split():
                tests.append(len(atoms))
                atoms.append("".join(f"(lambda: {atom})," for atom in plan.atoms))
            case InChild(source=source):
                tests.append(source)
            case Judged(source=source, imports=imports, remote=remote):
                tests.append(None)
                judged.append({"number": number, "source": source, "imports": imports, "remote": remote})
    functions = "".join(f"({each})," for each in atoms)
    candidate = marshal.dumps((code, setup, f"({functions})", tuple(tests)), MARSHAL_VERSION)
    return candidate, json.dumps(judged).encode() if judged else b""
