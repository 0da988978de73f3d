"""Pool of worker processes that execute programs: one thread per worker, and one queue for all.

Knows how results are published and counted. Does not know the order of jobs (`job_queue.py`), how a program
runs on a worker (`runner.py`), or how code is confined (`sandboxes/`, `inside/`).
"""

import ast
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from typing import Any

from cocos.executor.job_queue import Job, JobQueue
from cocos.executor.judging import plain_values
from cocos.executor.limits import Limits
from cocos.executor.runner import Attempt, Runner
from cocos.executor.sandboxes.interpreter import find_interpreter
from cocos.executor.sandboxes.levels import choose
from cocos.executor.sandboxes.sandbox import Sandbox
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

    Each worker is a fresh interpreter that forks one child per program, and a second one if tests need a
    judge. The executor is a context manager and may be used from any thread.

    Args:
        num_workers: Programs that run at the same time. None: one per processor that this process may use.
        limits: Limits of programs without `Program.limits`. Both are lowered to what the container has.
        sandbox: Name of an isolation level, or "auto" for the best that this machine offers.
        min_isolation: Lowest isolation level to accept. None: "seccomp" if `sandbox` is "auto", otherwise any
            level.
        max_wait_s: Seconds that a program may wait for a worker. A program that would start later is not
            executed: its result is an infrastructure failure. In distributed training this limit and the
            limit of a program bound how long one rank can make the others wait. None: no limit.
        packages: Names of third-party packages that programs may import, with all that these require.
        python: Path of an interpreter to run programs with, which also has the packages. None: the one in
            use. Level docker runs the interpreter of its image, which must have the same version.
        runtime: Runtime of the containers of level docker, such as "runsc". None: the engine's own.

    Attributes:
        num_workers: Programs that run at the same time.
        limits: Limits of programs without limits of their own.
        isolation: Name of the isolation level in force.
        packages: Name and version of each third-party package that programs can import.
        python_version: Major and minor version of the interpreter that runs the programs.
        stats: Counters.

    Raises:
        ExecutorError: No acceptable isolation level works on this machine, or the self-test failed.
        ValueError: A package is not installed, or `python` is not a usable interpreter.

    """

    def __init__(
        self,
        num_workers: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        sandbox: str = "auto",
        min_isolation: str | None = None,
        max_wait_s: float | None = None,
        packages: tuple[str, ...] = (),
        python: str | None = None,
        runtime: str | None = None,
    ) -> None:
        self._interpreter = find_interpreter(packages, python)
        self._level = choose(sandbox, min_isolation, runtime)
        self._set_up(
            num_workers or len(os.sched_getaffinity(0)),
            limits.clamped(),
            self._level.name,
            self._interpreter.packages,
            ".".join(map(str, self._interpreter.version)),
            max_wait_s,
        )
        self._runners = [
            Runner(self._launch, self._limits_for, self.isolation) for _ in range(self.num_workers)
        ]
        self._start_threads((self._serve, runner) for runner in self._runners)
        try:
            self_test(lambda program: self.submit(program).result(), self.limits, self.isolation)
        except ExecutorError:
            self.close()
            raise
        self.stats = Stats()  # the programs of the self-test do not count

    def _set_up(
        self,
        num_workers: int,
        limits: Limits,
        isolation: str,
        packages: tuple[str, ...],
        python_version: str,
        max_wait_s: float | None,
    ) -> None:
        """Set the state that executors on this machine and on servers have."""
        self.num_workers, self.limits = num_workers, limits
        self.isolation, self.packages, self.python_version = isolation, packages, python_version
        self.stats = Stats()
        self._limits_by_tests: dict[Program, Limits] = {}  # programs without their code
        self._pid = os.getpid()  # a forked process has no threads of ours
        self._queue = JobQueue(max_wait_s)
        self._recent_errors: deque[str | None] = deque(maxlen=RECENT_PROGRAMS)  # None: no failure
        self._stats_lock = threading.Lock()  # guards the stats and the recent errors
        self._threads: list[threading.Thread] = []

    def _start_threads(self, calls: Iterable[tuple[Callable[[Any], None], Any]]) -> None:
        """Start a thread for each function and argument; `close` waits for them."""
        for number, (function, argument) in enumerate(calls):
            name = f"executor-{number}"
            self._threads.append(threading.Thread(target=function, args=(argument,), name=name, daemon=True))
            self._threads[-1].start()

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the running workers, for monitoring."""
        workers = [runner.worker for runner in self._runners]
        return [worker.sandbox.process.pid for worker in workers if worker]

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

    def submit(self, program: Program, max_wait_s: float | None = None) -> "Future[ExecutionResult]":
        """Queue one program and return the future of its result.

        A program that fails raises nothing: its failure is in the result. The future raises ExecutorError if
        the executor stops before the program has started. A callback of the future runs on a thread of the
        pool, so it must not wait for another program.

        Args:
            max_wait_s: Seconds that this program may wait for a worker, if fewer than those of the executor.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        if os.getpid() != self._pid:
            raise ExecutorError("this executor belongs to the parent process; make one in this process")
        return self._queue.put(program, max_wait_s)

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
        [result] = self.run([replace(program, test_list=sources, has_expressions=True, num_visible=0)])
        if result.is_infra_failure:
            raise ExecutorError(f"the executor failed, so there are no values: {result.infra_error}")
        return [
            Value(verdict.encoded and plain_values.decode(json.loads(verdict.encoded)), verdict)
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
        return self._level.launch(self.limits, self._interpreter)

    def _serve(self, runner: Runner) -> None:
        """Execute jobs on this thread's worker until the queue is closed."""
        while job := self._queue.take():
            late = self._overdue(job) if job.is_overdue else None
            attempt = Attempt(late) if late else runner.run(job.program, job.waited_s)
            try:
                self._finish(job, attempt)
            except BaseException as error:  # whoever waits for the result must not wait for ever
                if not job.future.done():
                    job.future.set_exception(ExecutorError(f"the executor failed: {error!r}"))
        runner.close()

    def _finish(self, job: Job, attempt: Attempt) -> None:
        """Requeue the job, or count and publish its result."""
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
        if self.packages:
            result = replace(result, packages=self.packages)
        self._publish(job, result)

    def _overdue(self, job: Job) -> ExecutionResult:
        reason = (
            f"not started within {job.max_wait_s:.0f} s; the programs are too many or too slow "
            f"for {self.num_workers} workers"
        )
        return ExecutionResult((), reason, self.isolation)

    def _publish(self, job: Job, result: ExecutionResult) -> None:
        """Set the result of a counted job; close the queue after too many infrastructure failures."""
        job.future.set_result(result)
        with self._stats_lock:
            num_failures = len(self._recent_errors) - self._recent_errors.count(None)
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
