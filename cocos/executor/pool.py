"""The pool: programs in, results out, a worker process per thread.

Knows how work is queued, repeated and given up. Does not know what a test is (`plans.py`, `evidence.py`) or
how code is confined (`isolation.py`, `inside/`).
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed, wait
from dataclasses import dataclass, replace

from cocos.executor.judging.evidence import TIMED_OUT, read_result
from cocos.executor.judging.plans import plan_test
from cocos.executor.limits import Limits
from cocos.executor.sandboxes.levels import choose
from cocos.executor.self_test import self_test
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status
from cocos.executor.worker import Worker, WorkerDied

ATTEMPTS = 2  # a program whose worker died this often is an infrastructure failure
PATIENCE_S = 60.0  # what is set aside waits no longer than this for the others to pause
RECENT = 200  # results over which infrastructure failures are counted
STARVED = (
    0.9  # a program that timed out with less than this share of its time on a processor gets a second chance
)


@dataclass
class Stats:
    """What the executor did since it was made."""

    programs: int = 0
    passed: int = 0
    timeouts: int = 0
    retried_timeouts: int = 0
    infra_failures: int = 0
    worker_restarts: int = 0
    in_child_tests: int = 0
    tests: int = 0
    busy_s: float = 0.0


@dataclass
class _Job:
    program: Program
    future: "Future[ExecutionResult]"
    submitted_s: float  # on the monotonic clock
    set_aside_s: float = 0.0  # when it was put aside for a lone second attempt, on the monotonic clock


class Executor:
    """A pool of fresh-interpreter workers; each forks one child per program. A context manager, usable from
    any thread.

    Args:
        num_workers: Programs that run at the same time; None: one per processor that this process may use.
        limits: For programs that bring none of their own; clamped to what the container has.
        sandbox: Name of an isolation level, or "auto" for the best that this machine offers.
        min_isolation: Refuse to run below this level; None: "seccomp" for "auto", anything for a level chosen
            by name.
        max_infra_failures: The run stops when more than this many of the last 200 programs met a failing
            executor.
        max_wait_s: A program that has not had its turn after this many seconds is not run: an infrastructure
            failure. With a program's own limit it bounds how long a rank can keep the others waiting. None:
            every program gets its turn.

    Raises:
        ExecutorError: No demanded level works here, or the self-test fails.

    """

    def __init__(
        self,
        num_workers: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        sandbox: str = "auto",
        min_isolation: str | None = None,
        max_infra_failures: int = 20,
        max_wait_s: float | None = None,
    ) -> None:
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.limits = limits.clamped()
        self.stats = Stats()
        self._level = choose(sandbox, min_isolation)
        self._max_infra_failures = max_infra_failures
        self._max_wait_s = float("inf") if max_wait_s is None else max_wait_s
        self._recent_faults: deque[str | None] = deque(maxlen=RECENT)
        self._jobs: deque[_Job] = deque()
        self._lone_jobs: deque[_Job] = deque()
        self._workers: dict[str, Worker] = {}  # by thread
        self._running = 0
        self._is_alone = False
        self._refusal: str | None = None  # why no more programs are taken
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, name=f"executor-{number}", daemon=True)
            for number in range(self.num_workers)
        ]
        for thread in self._threads:
            thread.start()
        try:
            self_test(lambda program: self.submit(program).result(), self.limits, self.isolation)
        except ExecutorError:
            self.close()
            raise
        self.stats = Stats()

    @property
    def isolation(self) -> str:
        """Name of the isolation level in force."""
        return self._level.name

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers that are up, for monitoring."""
        return [worker.sandbox.process.pid for worker in list(self._workers.values())]

    def submit(self, program: Program) -> "Future[ExecutionResult]":
        """Queue one program; `asyncio.wrap_future` makes the future awaitable.

        A candidate's failure is never an exception of the future: it is in the result. The future raises
        ExecutorError where the executor stops before the program had its turn.

        Raises:
            ExecutorError: The executor is closed, or has met too many infrastructure failures.

        """
        job = _Job(program, Future(), time.monotonic())
        with self._changed:
            if self._refusal:
                raise ExecutorError(self._refusal)
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def run(self, programs: Sequence[Program], batch_s: float | None = None) -> list[ExecutionResult]:
        """Run programs and return their results in the same order; identical programs run once.

        Args:
            programs: Any number of them.
            batch_s: Seconds for all together; what is not done by then is an infrastructure failure. Keep it
                below the timeout of the process group that waits for the rewards. None: as long as it takes.

        Raises:
            ExecutorError: More infrastructure failures than `max_infra_failures`.

        """
        futures = {program: self.submit(program) for program in dict.fromkeys(programs)}
        _, late = wait(futures.values(), timeout=batch_s)
        for future in late:
            future.cancel()
        overdue = ExecutionResult((), f"not done within the batch's {batch_s} s", self.isolation)
        results = {
            program: overdue if future in late else future.result() for program, future in futures.items()
        }
        return [results[program] for program in programs]

    def stream(self, programs: Sequence[Program]) -> Iterator[tuple[int, ExecutionResult]]:
        """Yield (index, result) as programs finish; identical programs run once."""
        places: dict[Program, list[int]] = {}
        for index, program in enumerate(programs):
            places.setdefault(program, []).append(index)
        futures = {self.submit(program): indices for program, indices in places.items()}
        for future in as_completed(futures):
            yield from ((index, future.result()) for index in futures[future])

    async def run_async(self, programs: Sequence[Program]) -> list[ExecutionResult]:
        """`run` for asyncio."""
        futures = {program: asyncio.wrap_future(self.submit(program)) for program in dict.fromkeys(programs)}
        await asyncio.gather(*futures.values())
        return [futures[program].result() for program in programs]

    def calibrate(self, reference: Program, factor: float = 10.0) -> Limits:
        """Limits for candidates, from how long the reference takes here (see `Limits.calibrated`)."""
        [result] = self.run([reference])
        if not result.all_passed:
            raise ExecutorError(
                f"the reference solution does not pass: {result.infra_error or result.verdicts}"
            )
        return (reference.limits or self.limits).calibrated(result.duration_s, factor)

    def close(self) -> None:
        """End the workers; what is still queued gets an ExecutorError. Safe to call twice."""
        self._refuse("the executor is closed; make a new one")
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _refuse(self, reason: str) -> None:
        with self._changed:
            self._refusal = self._refusal or reason
            for job in (*self._jobs, *self._lone_jobs):
                if not job.future.done():
                    job.future.set_exception(ExecutorError(reason))
            self._jobs.clear()
            self._lone_jobs.clear()
            self._changed.notify_all()

    def _serve(self) -> None:
        """One thread: take jobs and run them on a worker of its own."""
        try:
            while job := self._next_job():
                faults: list[str] = []
                result, is_starved = self._overdue(job), False
                while result is None and len(faults) < ATTEMPTS:
                    try:
                        result, is_starved = self._attempt(job.program)
                    except (WorkerDied, OSError) as error:
                        faults.append(str(error))
                        self._drop_worker()
                result = result or ExecutionResult((), "; then ".join(faults), self.isolation)
                self._finish(job, result, len(faults), set_aside=not faults and is_starved)
        finally:
            self._drop_worker()

    def _overdue(self, job: _Job) -> ExecutionResult | None:
        """The result of a program whose turn came too late; None where it is in time."""
        if time.monotonic() <= job.submitted_s + self._max_wait_s:
            return None
        reason = f"not begun within {self._max_wait_s:.0f} s: too many programs, or too slow ones"
        return ExecutionResult((), f"{reason}, for {self.num_workers} workers", self.isolation)

    def _drop_worker(self) -> None:
        if worker := self._workers.pop(threading.current_thread().name, None):
            worker.kill()

    def _next_job(self) -> _Job | None:
        """Wait for a job; one that was set aside is given out only while nothing else runs."""
        with self._changed:
            while True:
                is_overdue = (
                    bool(self._lone_jobs) and time.monotonic() > self._lone_jobs[0].set_aside_s + PATIENCE_S
                )
                if self._jobs and not self._is_alone and not is_overdue:
                    job = self._jobs.popleft()
                    if not job.future.set_running_or_notify_cancel():
                        continue
                elif self._lone_jobs and not self._running:
                    job = self._lone_jobs.popleft()
                    self._is_alone = True
                elif self._refusal:
                    return None
                else:
                    self._changed.wait()
                    continue
                self._running += 1
                return job

    def _attempt(self, program: Program) -> tuple[ExecutionResult, bool]:
        """Run a program once on this thread's worker; also whether it timed out for want of a processor."""
        limits = program.limits.clamped() if program.limits else self.limits
        plans = tuple(plan_test(test, program.setup) for test in program.test_list)
        thread = threading.current_thread().name
        if thread not in self._workers:
            self._workers[thread] = Worker(lambda: self._level.launch(self.limits))
        answer = self._workers[thread].run(program.code, program.setup, plans, limits)
        if answer.is_spent:
            self._drop_worker()
        result = read_result(plans, answer, limits, self.isolation)
        return result, answer.end == TIMED_OUT and answer.cpu_s < STARVED * min(limits.wall_s, limits.cpu_s)

    def _finish(self, job: _Job, result: ExecutionResult, faults: int, set_aside: bool) -> None:
        with self._changed:
            self._running -= 1
            was_alone, self._is_alone = self._is_alone, False
            self.stats.worker_restarts += faults
            self.stats.busy_s += result.duration_s
            set_aside = set_aside and not job.set_aside_s and self._refusal is None
            if set_aside:
                self.stats.retried_timeouts += 1
                self._lone_jobs.append(replace(job, set_aside_s=time.monotonic()))
            else:
                self._count(result)
            if self._lone_jobs or was_alone:  # others wait for this thread to finish, or to have been alone
                self._changed.notify_all()
        if not set_aside:
            job.future.set_result(result)
        if self._recent_faults.count(None) < len(self._recent_faults) - self._max_infra_failures:
            self._refuse(
                f"stopped: more than {self._max_infra_failures} of the last {RECENT} programs "
                f"met a failing executor, most recently: {result.infra_error}; "
                "try `python -m cocos.executor doctor`"
            )

    def _count(self, result: ExecutionResult) -> None:
        stats = self.stats
        stats.programs += 1
        stats.passed += result.all_passed
        stats.infra_failures += result.is_infra_failure
        stats.timeouts += any(verdict.status is Status.TIMEOUT for verdict in result.verdicts)
        stats.tests += len(result.verdicts)
        stats.in_child_tests += sum(verdict.in_child for verdict in result.verdicts)
        self._recent_faults.append(result.infra_error)
