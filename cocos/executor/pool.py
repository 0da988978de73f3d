"""Pool of worker processes that execute programs: one thread per worker, and one queue for all.

Knows how a program is attempted, retried and counted. Does not know the order of jobs (`job_queue.py`), how a
test is judged (`judging/`), or how code is confined (`sandboxes/`, `inside/`).
"""

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass

from cocos.executor.inside.wire_format import TIMED_OUT
from cocos.executor.job_queue import Job, JobQueue
from cocos.executor.judging.evidence import read_result
from cocos.executor.judging.plans import plan_test
from cocos.executor.limits import Limits
from cocos.executor.sandboxes.levels import choose
from cocos.executor.self_test import self_test
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status
from cocos.executor.worker import Worker, WorkerDied

# A worker may die through no fault of its program, so the program runs again on a new worker. After this many
# deaths the result is an infrastructure failure.
MAX_WORKER_DEATHS = 2
RECENT_PROGRAMS = 200  # infrastructure failures are counted over this many programs
# A program that timed out was starved if it had a processor for less than this share of its limit. Such a
# timeout may be the machine's fault, so the program gets a second attempt while no other program runs.
STARVED_SHARE = 0.9


@dataclass
class Stats:
    """Counters of one executor."""

    programs: int = 0
    passed: int = 0  # programs that passed every test
    timeouts: int = 0  # programs with a test that timed out
    retried_timeouts: int = 0  # starved programs that got a second attempt
    infra_failures: int = 0
    worker_restarts: int = 0
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
        max_infra_failures: Stop with an ExecutorError once more than this many of the last 200 programs were
            infrastructure failures.
        max_wait_s: Seconds that a program may wait for a worker. A program that would start later is not
            executed: its result is an infrastructure failure. In distributed training this limit and the
            limit of a program bound how long one rank can make the others wait. None: no limit.

    Raises:
        ExecutorError: No acceptable isolation level works on this machine, or the self-test failed.

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
        self._max_wait_s = max_wait_s
        self._queue = JobQueue(max_wait_s)
        self._workers: dict[int, Worker] = {}  # thread number -> worker; a thread uses only its own
        self._recent_errors: deque[str | None] = deque(maxlen=RECENT_PROGRAMS)  # None: no failure
        self._stats_lock = threading.Lock()  # guards the stats and the recent errors
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), name=f"executor-{number}", daemon=True)
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
    def worker_pids(self) -> list[int]:
        """Process ids of the running workers, for monitoring."""
        return [worker.sandbox.process.pid for worker in list(self._workers.values())]

    def submit(self, program: Program) -> "Future[ExecutionResult]":
        """Queue one program and return the future of its result.

        A program that fails raises nothing: its failure is in the result. The future raises ExecutorError if
        the executor stops before the program has started. `asyncio.wrap_future` makes the future awaitable.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        return self._queue.put(program)

    def run(self, programs: Sequence[Program]) -> list[ExecutionResult]:
        """Execute programs and return their results in the same order; identical programs run once.

        Raises:
            ExecutorError: The executor is closed, or had too many infrastructure failures.

        """
        futures = {program: self.submit(program) for program in dict.fromkeys(programs)}
        return [futures[program].result() for program in programs]

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

    def _serve(self, number: int) -> None:
        """Execute jobs on this thread's worker until the queue is closed."""
        try:
            while job := self._queue.take():
                result, is_starved = None, False
                errors: list[str] = []
                if job.is_overdue:
                    result = self._infra_failure(
                        f"not started within {self._max_wait_s:.0f} s; the programs are too many or too slow "
                        f"for {self.num_workers} workers"
                    )
                while result is None and len(errors) < MAX_WORKER_DEATHS:
                    try:
                        result, is_starved = self._attempt(number, job.program)
                    except (WorkerDied, OSError) as error:  # OSError: no worker could be started
                        errors.append(str(error))
                        self._drop_worker(number)
                result = result or self._infra_failure("; then ".join(errors))
                # A program that has already cost a worker gets no second attempt for a timeout.
                self._finish(job, result, len(errors), retry=is_starved and not errors)
        finally:
            self._drop_worker(number)

    def _attempt(self, number: int, program: Program) -> tuple[ExecutionResult, bool]:
        """Execute a program once; return its result and whether it timed out because it was starved."""
        limits = program.limits.clamped() if program.limits else self.limits
        plans = tuple(plan_test(test, program.setup) for test in program.test_list)
        if number not in self._workers:
            self._workers[number] = Worker(lambda: self._level.launch(self.limits))
        answer = self._workers[number].run(program.code, program.setup, plans, limits)
        if answer.is_spent:
            self._drop_worker(number)
        result = read_result(plans, answer, limits, self.isolation)
        most_cpu_s = min(limits.wall_s, limits.cpu_s)  # the most that one thread can use
        return result, answer.end == TIMED_OUT and answer.cpu_s < STARVED_SHARE * most_cpu_s

    def _drop_worker(self, number: int) -> None:
        if worker := self._workers.pop(number, None):
            worker.kill()

    def _infra_failure(self, reason: str) -> ExecutionResult:
        return ExecutionResult((), reason, self.isolation)

    def _finish(self, job: Job, result: ExecutionResult, num_worker_deaths: int, retry: bool) -> None:
        """Requeue the job or publish its result; close the queue after too many infrastructure failures."""
        with self._stats_lock:
            self.stats.worker_restarts += num_worker_deaths
            self.stats.busy_s += result.duration_s
            # Inside the lock: otherwise another thread could finish the second attempt, and publish its
            # result, before this thread has counted the first.
            if self._queue.finish(job, retry):
                self.stats.retried_timeouts += 1
                return
            self._count(result)
            num_failures = len(self._recent_errors) - self._recent_errors.count(None)
        job.future.set_result(result)
        if num_failures > self._max_infra_failures:
            self._queue.close(
                f"stopped: more than {self._max_infra_failures} of the last {RECENT_PROGRAMS} programs "
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
