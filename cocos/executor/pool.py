"""Pool of worker processes that execute programs: one thread per worker, and one queue for all.

Knows how results are published and counted. Does not know the order of jobs (`job_queue.py`), how a program
runs on a worker (`runner.py`), or how code is confined (`sandboxes/`, `inside/`).
"""

import ast
import json
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace

from cocos.executor.inside import data_types
from cocos.executor.job_queue import Job, JobQueue
from cocos.executor.limits import Limits
from cocos.executor.runner import Attempt, Runner
from cocos.executor.sandboxes.installed_packages import find_packages
from cocos.executor.sandboxes.levels import choose
from cocos.executor.sandboxes.sandbox import Sandbox, make_room
from cocos.executor.self_test import self_test
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status, Value

# An executor stops once more of its recent programs than this were infrastructure failures.
MAX_INFRA_FAILURES, RECENT_PROGRAMS = 20, 200


@dataclass
class Stats:
    """Counters of one executor."""

    programs: int = 0
    passed: int = 0  # programs that passed every test
    timeouts: int = 0  # programs with a test that timed out
    retried_timeouts: int = 0  # starved programs that got a second attempt
    infra_failures: int = 0
    worker_restarts: int = 0
    reruns: int = 0  # further runs of programs, because a test was undecided
    in_child_tests: int = 0
    tests: int = 0
    busy_s: float = 0.0  # wall time inside the workers, summed over them


class Executor:
    """Pool of sandboxed worker processes that turn programs into verdicts.

    Each worker is a fresh interpreter that forks one child per program, and one that runs the tests of many.
    The executor is a context manager and may be used from any thread.

    Args:
        num_workers: Programs that run at the same time. None: one per CPU core that this process may use.
        limits: Limits of programs without `Program.limits`. Both are lowered to what the container has.
        sandbox: Name of an isolation level, or "auto" for the best that this machine offers.
        min_isolation: Lowest isolation level to accept. None: "seccomp" if `sandbox` is "auto", otherwise any
            level.
        max_wait_s: Seconds that a program may wait for a worker. A program that would start later is not
            executed: its result is an infrastructure failure. In distributed training this limit and the
            limit of a program bound how long one rank can make the others wait. None: no limit.
        packages: Names of third-party packages that programs may import, with all that these require. Level
            docker imports them with the interpreter of its image, which must have the same version.

    Attributes:
        num_workers: Programs that run at the same time.
        limits: Limits of programs without limits of their own.
        isolation: Name of the isolation level in force.
        packages: Name and version of each third-party package that programs can import.
        stats: Counters.

    Raises:
        ExecutorError: No acceptable isolation level works on this machine, or the self-test failed.
        ValueError: A package is not installed.

    """

    def __init__(
        self,
        num_workers: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        sandbox: str = "auto",
        min_isolation: str | None = None,
        max_wait_s: float | None = None,
        packages: tuple[str, ...] = (),
    ) -> None:
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.limits = limits.clamped()
        self.stats = Stats()
        self._limits_by_tests: dict[Program, Limits] = {}  # programs without their code
        self._pid = os.getpid()  # a forked process has no threads of ours
        self._interpreter = find_packages(packages)
        make_room(self.num_workers)  # first: a level that is tried needs some, too
        self._level = choose(sandbox, min_isolation)
        self._max_wait_s = max_wait_s
        self._starting = threading.Lock()  # the start of one worker at a time: it needs more open files
        self._queue = JobQueue(max_wait_s)
        self._recent_errors: deque[str | None] = deque(maxlen=RECENT_PROGRAMS)  # None: no failure
        self._stats_lock = threading.Lock()  # guards the stats and the recent errors
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
        self.stats = Stats()  # the programs of the self-test do not count

    @property
    def isolation(self) -> str:
        """Name of the isolation level in force."""
        return self._level.name

    @property
    def packages(self) -> tuple[str, ...]:
        """Name and version of each third-party package that programs can import."""
        return self._interpreter.packages

    def set_limits(self, references: Sequence[Program], limits: Sequence[Limits]) -> None:
        """Set the limits of the programs that have the same tests as a reference; see `calibration.py`.

        If several references have the same tests, the longest limit counts.
        """
        for reference, limit in sorted(zip(references, limits, strict=True), key=lambda pair: pair[1].wall_s):
            self._limits_by_tests[replace(reference, code="")] = limit

    def _limits_for(self, program: Program) -> Limits:
        if program.limits:
            return program.limits.clamped()
        if not self._limits_by_tests:
            return self.limits
        return self._limits_by_tests.get(replace(program, code=""), self.limits)

    def submit(self, program: Program) -> Future[ExecutionResult]:
        """Queue one program and return the future of its result.

        A program that fails raises nothing: its failure is in the result. The future raises ExecutorError if
        the executor stops before the program has started. A callback of the future runs on a thread of the
        pool, so it must not wait for another program.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        if os.getpid() != self._pid:
            raise ExecutorError("this executor belongs to the parent process; make one in this process")
        return self._queue.put(program)

    def run(self, programs: Sequence[Program]) -> list[ExecutionResult]:
        """Execute programs and return their results in the same order; identical programs run once.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        futures = {program: self.submit(program) for program in dict.fromkeys(programs)}
        return [futures[program].result() for program in programs]

    def values(self, program: Program, expressions: Sequence[str]) -> list[Value]:
        """Return the value of each expression after a program and its setup have run; its tests do not run.

        The expressions are evaluated one after another in the program's process, which can choose any value.
        Values are plain: numbers, strings, bytes, dates, and lists, tuples, sets and dicts of them.

        Raises:
            ExecutorError: The executor is closed, or failed.
            SyntaxError: An expression is none.

        """
        sources = tuple(ast.unparse(ast.parse(expression, mode="eval")) for expression in expressions)
        if not sources:
            return []
        [result] = self.run([replace(program, test_list=sources, has_expressions=True)])
        if result.is_infra_failure:
            raise ExecutorError(f"the executor failed, so there are no values: {result.infra_error}")
        return [
            Value(verdict.encoded and data_types.decode_plain(json.loads(verdict.encoded)), verdict)
            for verdict in result.verdicts
        ]

    async def arun(self, program: Program) -> ExecutionResult:
        """Execute one program without blocking the event loop, and return its result.

        A cancelled task gives up its program if no worker has started it.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        import asyncio  # the caller has imported it; the others need not wait for it

        return await asyncio.wrap_future(self.submit(program))

    def stream(self, programs: Sequence[Program]) -> Iterator[tuple[int, ExecutionResult]]:
        """Yield (index, result) as programs finish; identical programs run once.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        indices: dict[Program, list[int]] = {}
        for index, program in enumerate(programs):
            indices.setdefault(program, []).append(index)
        futures = {self.submit(program): places for program, places in indices.items()}
        for future in as_completed(futures):
            yield from ((index, future.result()) for index in futures[future])

    def close(self) -> None:
        """End the workers and fail every queued program with an ExecutorError. Safe to call twice."""
        self._queue.close("the executor is closed; make a new one")
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _launch(self) -> Sandbox:
        with self._starting:
            return self._level.launch(self.limits, self._interpreter)

    def _serve(self) -> None:
        """Execute jobs on a worker of this thread until the queue is closed."""
        runner = Runner(self._launch, self._limits_for, self.isolation)
        while job := self._queue.take():
            if job.is_overdue:
                reason = (
                    f"not started within {self._max_wait_s:.0f} s; the programs are too many or too slow "
                    f"for {self.num_workers} workers"
                )
                attempt = Attempt(ExecutionResult((), reason, self.isolation))
            else:
                attempt = runner.run(job.program, job.waited_s)
            try:
                self._finish(job, attempt)
            except BaseException as error:  # whoever waits for the result must not wait for ever
                if not job.future.done():
                    job.future.set_exception(ExecutorError(f"the executor failed: {error!r}"))
        runner.close()

    def _finish(self, job: Job, attempt: Attempt) -> None:
        """Requeue the job or publish its result; close the queue after too many infrastructure failures."""
        result = attempt.result
        with self._stats_lock:
            self.stats.busy_s += attempt.busy_s
            self.stats.reruns += attempt.reruns
            self.stats.worker_restarts += attempt.failures
            # Inside the lock: otherwise another thread could finish the second attempt, and publish its
            # result, before this thread has counted the first.
            job.waited_s = attempt.waited_s
            if self._queue.finish(job, retry=attempt.is_starved):
                self.stats.retried_timeouts += 1
                return
            self._count(result)
            num_failures = len(self._recent_errors) - self._recent_errors.count(None)
        job.future.set_result(replace(result, packages=self.packages))
        if num_failures > MAX_INFRA_FAILURES:
            self._queue.close(
                f"stopped: more than {MAX_INFRA_FAILURES} of the last {RECENT_PROGRAMS} programs "
                f"were infrastructure failures, most recently: {result.infra_error}; "
                "`python -m cocos.executor doctor` checks this machine"
            )

    def _count(self, result: ExecutionResult) -> None:
        stats = self.stats
        stats.programs += 1
        stats.passed += result.all_passed
        stats.infra_failures += result.is_infra_failure
        stats.timeouts += any(verdict.status is Status.TIMEOUT for verdict in result.verdicts)
        stats.tests += len(result.verdicts)
        stats.in_child_tests += sum(verdict.in_child for verdict in result.verdicts)
        self._recent_errors.append(result.infra_error)
