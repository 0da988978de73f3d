"""Worker process as the trusted process uses it: send jobs, read answers, kill the worker.

Knows how a job is encoded (`inside/wire_format.py`). Does not know how the process is confined: a level of
`sandboxes/levels.py` starts it.
"""

import logging
import marshal
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache

from cocos.executor.evidence import Answer
from cocos.executor.inside import wire_format
from cocos.executor.limits import Limits
from cocos.executor.parser import quiet
from cocos.executor.plans.plans import Plan, helpers_of
from cocos.executor.plans.setups import Setups
from cocos.executor.sandboxes.sandbox import Sandbox
from cocos.executor.verdicts import Program

_log = logging.getLogger(__name__)
START_S = 60.0  # a worker that is not ready after this time counts as dead
# The zygote ends every program at its wall limit. If no answer has come this long after the limit, the zygote
# itself is stuck.
GRACE_S = 15.0


class WorkerDied(Exception):
    """The worker ended or hung while it ran a program, which may be the cause."""


class WorkerUnusable(Exception):
    """The worker did not start the program."""


class WorkerSpent(WorkerUnusable):
    """The worker ended after its last program, which left something that cannot be removed."""


class Worker:
    """A running zygote and the two pipes to it. Not thread-safe: each thread of the pool has its own."""

    def __init__(self, launch: Callable[[], Sandbox]) -> None:
        self.sandbox = launch()
        assert self.sandbox.process.stdin and self.sandbox.process.stdout
        self._jobs, self._answers = self.sandbox.process.stdin.fileno(), self.sandbox.process.stdout.fileno()
        self._received = bytearray()
        os.set_blocking(self._jobs, False)  # a worker that hangs must not block this thread
        self._can_write, self._can_read = select.poll(), select.poll()
        self._can_write.register(self._jobs, select.POLLOUT)
        self._can_read.register(self._answers, select.POLLIN)
        self._deadline = time.monotonic() + START_S
        try:
            if self._read(len(wire_format.READY)) != wire_format.READY:
                raise self._death("it sent another message than expected")
            [version] = wire_format.VERSION.unpack(self._read(wire_format.VERSION.size))
            self._compiled = compiled if version == sys.hexversion else str  # code is of one version
        except WorkerDied as error:
            self.kill()
            raise WorkerUnusable(f"the worker did not start: {error}") from None

    def run(self, program: Program, plans: tuple[Plan, ...], setups: Setups, limits: Limits) -> Answer:
        """Execute one program and return what the zygote reports.

        Args:
            program: The program.
            plans: The plan of each test.
            setups: The problem's setup, as driver and program get it.
            limits: Limits of the program.

        Raises:
            WorkerDied: The worker failed while the program ran.
            WorkerUnusable: The program was not started.

        """
        codes = [self._compiled(plan.source) if plan.kind == "driven" else "" for plan in plans]
        tests = [
            (plan.source, code, plan.kind, plan.remote, plan.is_plain)
            for plan, code in zip(plans, codes, strict=True)
        ]
        setup = setups.driver, self._compiled(setups.driver)
        jobs = (
            (*setup, sorted(setups.shared), tests, sorted(helpers_of(plans))),
            (program.code, setups.program, program.stdin, program.files),
        )
        driver, candidate = (marshal.dumps(job, wire_format.MARSHAL_VERSION) for job in jobs)
        fields = wire_format.ChildLimits._fields
        child_limits = wire_format.ChildLimits(*(getattr(limits, name) for name in fields))
        is_script = plans[0].kind == "script"
        clock = any(plan.reads_clock for plan in plans)
        header = wire_format.JobHeader(
            len(driver), len(candidate), limits.wall_s, clock, is_script, child_limits
        )
        longest_s = limits.wall_s * (len(plans) if is_script else 1)
        self._deadline = time.monotonic() + longest_s + GRACE_S
        was_taken = self._write(b"".join((header.pack(), driver, candidate)))
        try:
            answer = wire_format.AnswerHeader.unpack(self._read(wire_format.ANSWER_HEADER.size))
        except WorkerDied as error:
            raise error if was_taken else WorkerUnusable(str(error)) from None
        if answer.end == wire_format.SPENT:
            raise WorkerSpent("the sandbox could not be cleaned")
        if answer.end == wire_format.NEVER_STARTED:
            raise WorkerUnusable("a child could not be confined")
        return Answer(answer, self._read(answer.evidence_size))

    def kill(self) -> None:
        """Kill the worker and everything below it, and reap it."""
        try:
            self.sandbox.kill()
        # The engine of containers hangs, for example. The results are not affected.
        except (OSError, subprocess.SubprocessError) as error:
            # Not a warning: `python -W error` would make an exception of it.
            _log.warning("a worker of the executor left something behind: %s", error)

    def _write(self, data: bytes) -> bool:
        """Send a job; return False if the worker ended before it had read everything."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._jobs, view) :]
            except BlockingIOError:
                if not self._wait(self._can_write):
                    raise self._death("the worker did not read the job in time") from None
            except BrokenPipeError:
                return False
        return True

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            if not self._wait(self._can_read):
                raise self._death("the worker did not answer in time")
            part = os.read(self._answers, 1 << 18)
            if not part:
                raise self._death("the worker died")
            self._received += part
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def _wait(self, event: select.poll) -> bool:
        """Wait until the event or the deadline; return whether the event occurred."""
        return bool(event.poll(max(0.0, self._deadline - time.monotonic()) * 1000))

    def _death(self, event: str) -> WorkerDied:
        return WorkerDied(f"{event}: {self.sandbox.stderr_tail() or 'it wrote no message'}")


@lru_cache(maxsize=1 << 14)
def compiled(source: str) -> bytes | str:
    """Return the code of a driver's source, once for all samples of a problem; the source if it has none."""
    try:
        with quiet():
            code = compile(source, "<test>", "exec", 0, True, 0)  # with asserts, whatever this process has
        return marshal.dumps(code, wire_format.MARSHAL_VERSION)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source  # the driver finds that out; or this format has no slice, which Python 3.14 may make
