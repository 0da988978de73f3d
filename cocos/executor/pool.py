"""Pool of worker processes that execute programs: one thread per worker, and one queue for all.

Knows how a program is attempted, retried and counted. Does not know the order of jobs (`job_queue.py`), how a
test is judged (`judging/`), or how code is confined (`sandboxes/`, `inside/`).
"""

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace

from cocos.executor.inside.wire_format import TIMED_OUT
from cocos.executor.job_queue import Job, JobQueue
from cocos.executor.judging.evidence import Answer, read_result
from cocos.executor.judging.plans import Plan, next_plan, plan_test
from cocos.executor.limits import Limits
from cocos.executor.sandboxes.interpreter import find_interpreter
from cocos.executor.sandboxes.levels import choose
from cocos.executor.self_test import RIGHT, self_test
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status, Verdict
from cocos.executor.worker import Worker, WorkerDied, WorkerSpent

# A worker may fail through no fault of its program, so the program runs again on a new worker. This many
# failures are an infrastructure failure. But if the worker died each time while the program ran, and a right
# program then passes, the program is the cause: its status is ERROR.
MAX_FAILURES = 2
# Runs of one program while its tests are undecided: split, then judged, then in its own process.
MAX_RUNS = 3
RECENT_PROGRAMS = 200  # infrastructure failures are counted over this many programs
# A program that timed out was starved if its processes waited for a processor for more than this share of the
# wall limit. Such a timeout may be the machine's fault, so the program gets a second attempt while no other
# program runs. A program that slept, or waited for itself, is not starved.
STARVED_SHARE = 0.1


@dataclass
class Stats:
    """Counters of one executor."""

    programs: int = 0
    passed: int = 0  # programs that passed every test
    timeouts: int = 0  # programs with a test that timed out
    retried_timeouts: int = 0  # starved programs that got a second attempt
    infra_failures: int = 0
    worker_restarts: int = 0
    reruns: int = 0  # programs that ran again because a test needed another plan
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
        packages: Names of third-party packages that programs may import, with all that these require.
        python: Path of an interpreter to run programs with, which also has the packages. None: the one in
            use. Level docker runs the interpreter of its image, which must have the same version.

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
        max_infra_failures: int = 20,
        max_wait_s: float | None = None,
        packages: tuple[str, ...] = (),
        python: str | None = None,
    ) -> None:
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.limits = limits.clamped()
        self._limits_by_tests: dict[Program, Limits] = {}  # programs without their code
        self.stats = Stats()
        self._interpreter = find_interpreter(packages, python)
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
    def packages(self) -> tuple[str, ...]:
        """Name and version of each third-party package that programs can import."""
        return self._interpreter.packages

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the running workers, for monitoring."""
        return [worker.sandbox.process.pid for worker in list(self._workers.values())]

    def set_limits(self, references: Sequence[Program], limits: Sequence[Limits]) -> None:
        """Set the limits of the programs that have the same tests as a reference; see `calibration.py`.

        If several references have the same tests, the longest limit counts.
        """
        for reference, limit in sorted(zip(references, limits, strict=True), key=lambda pair: pair[1].wall_s):
            self._limits_by_tests[replace(reference, code="")] = limit

    def _limits_for(self, program: Program) -> Limits:
        if not self._limits_by_tests:
            return self.limits
        return self._limits_by_tests.get(replace(program, code=""), self.limits)

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
        while job := self._queue.take():
            self._finish(job, *self._execute(number, job))
        self._drop_worker(number)

    def _execute(self, number: int, job: Job) -> tuple[ExecutionResult, bool]:
        """Execute a job, on a new worker if one fails; return its result and whether it was starved."""
        if job.is_overdue:
            reason = (
                f"not started within {self._max_wait_s:.0f} s; the programs are too many or too slow "
                f"for {self.num_workers} workers"
            )
            return self._infra_failure(reason), False
        errors: list[Exception] = []
        while len(errors) < MAX_FAILURES:
            match self._attempt(number, job.program):
                case Exception() as error:
                    errors.append(error)
                case result, is_starved:
                    # A program that has already cost a worker gets no second attempt for a timeout.
                    return result, is_starved and not errors
        reason = "; then ".join(dict.fromkeys(map(str, errors)))
        if all(isinstance(error, WorkerDied) for error in errors) and self._works(number):
            verdict = Verdict(Status.ERROR, "WorkerKilled", f"the program ended its sandbox: {reason}"[:300])
            return ExecutionResult((verdict,) * len(job.program.test_list), None, self.isolation), False
        return self._infra_failure(reason), False

    def _works(self, number: int) -> bool:
        """Return whether a right program passes on a new worker, so that the machine is not at fault."""
        match self._attempt(number, RIGHT):
            case ExecutionResult() as result, _:
                return result.all_passed
        return False

    def _attempt(self, number: int, program: Program) -> tuple[ExecutionResult, bool] | Exception:
        """Execute a program; return its result and whether it was starved, or the executor's own error.

        A test that the evidence does not decide gets its next plan, and the whole program runs again.
        """
        try:
            limits = program.limits.clamped() if program.limits else self._limits_for(program)
            setting = (program.setup, program.entry_point)
            plans = tuple(plan_test(test, *setting) for test in program.test_list)
            for runs_left in range(MAX_RUNS - 1, -1, -1):
                answer = self._run(number, program, plans, limits)
                result, undecided = read_result(plans, answer, limits, self.isolation)
                if not undecided or not runs_left:
                    break
                next_plans = tuple(
                    next_plan(plan, test, *setting, undecided[index]) if index in undecided else plan
                    for index, (plan, test) in enumerate(zip(plans, program.test_list, strict=True))
                )
                if next_plans == plans:
                    break
                plans = next_plans
                with self._stats_lock:
                    self.stats.reruns += 1
                    self.stats.busy_s += result.duration_s
            return result, answer.end == TIMED_OUT and answer.waited_s > STARVED_SHARE * limits.wall_s
        # Whatever goes wrong, the caller must get a result. Anything else than a death of the worker is an
        # error of ours or of the machine, such as a sandbox that cannot be started.
        except Exception as error:
            self._drop_worker(number)
            with self._stats_lock:
                self.stats.worker_restarts += 1
            return error if str(error) else RuntimeError(repr(error))

    def _run(self, number: int, program: Program, plans: tuple[Plan, ...], limits: Limits) -> Answer:
        while True:
            is_new = number not in self._workers
            if is_new:
                self._workers[number] = Worker(lambda: self._level.launch(self.limits, self._interpreter))
            try:
                return self._workers[number].run(program, plans, limits)
            except WorkerSpent:
                if is_new:
                    raise
                self._drop_worker(number)

    def _drop_worker(self, number: int) -> None:
        if worker := self._workers.pop(number, None):
            worker.kill()

    def _infra_failure(self, reason: str) -> ExecutionResult:
        return ExecutionResult((), reason, self.isolation)

    def _finish(self, job: Job, result: ExecutionResult, retry: bool) -> None:
        """Requeue the job or publish its result; close the queue after too many infrastructure failures."""
        with self._stats_lock:
            self.stats.busy_s += result.duration_s
            # Inside the lock: otherwise another thread could finish the second attempt, and publish its
            # result, before this thread has counted the first.
            if self._queue.finish(job, retry):
                self.stats.retried_timeouts += 1
                return
            self._count(result)
            if self._interpreter.packages:
                result = replace(result, packages=self._interpreter.packages)
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
