"""The pool: programs in, results out, a worker process per thread.

Knows how work is queued, repeated and given up. Does not know what a test is (`plans.py`, `evidence.py`) or how code is confined
(`isolation.py`, `inside/`).
"""

import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from cocos.executor.evidence import read_result
from cocos.executor.isolation import choose
from cocos.executor.limits import Limits
from cocos.executor.plans import plan_test
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program
from cocos.executor.worker import Worker, WorkerDied


class Executor:
    """A pool of fresh-interpreter workers; each forks one child per program. A context manager, usable from any thread.

    Args:
        num_workers: Programs that run at the same time; None: one per processor that this process may use.
        limits: For programs that bring none of their own.
        sandbox: Name of an isolation level, or "auto" for the best that this machine offers.
        min_isolation: Refuse to run below this level; None: "seccomp" for "auto", anything for a level chosen by name.
    """

    def __init__(
        self,
        num_workers: int | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        sandbox: str = "auto",
        min_isolation: str | None = None,
    ) -> None:
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.limits = limits
        self._level = choose(sandbox, min_isolation)
        self._jobs: queue.SimpleQueue[tuple[Program, Future] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"executor-{number}", daemon=True)
            for number in range(self.num_workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def isolation(self) -> str:
        """Name of the isolation level in force."""
        return self._level.name

    def submit(self, program: Program) -> "Future[ExecutionResult]":
        """Queue one program. The future never carries a candidate's failure as an exception: that is in the result."""
        future: Future[ExecutionResult] = Future()
        with self._lock:
            if self._closed:
                raise ExecutorError("the executor is closed; make a new one")
            self._jobs.put((program, future))
        return future

    def run(self, programs: Sequence[Program]) -> list[ExecutionResult]:
        """Run programs and return their results in the same order; identical programs run once."""
        futures = {program: self.submit(program) for program in dict.fromkeys(programs)}
        return [futures[program].result() for program in programs]

    def close(self) -> None:
        """End the workers; programs still queued are cancelled. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            while True:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if job:
                    job[1].cancel()
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> "Executor":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _serve(self) -> None:
        worker: Worker | None = None
        while (job := self._jobs.get()) is not None:
            program, future = job
            if not future.set_running_or_notify_cancel():
                continue
            faults: list[str] = []
            result = None
            limits = program.limits or self.limits
            while result is None and len(faults) < 2:
                try:
                    worker = worker or Worker(lambda: self._level.launch(self.limits))
                    plans = tuple(plan_test(test, program.setup) for test in program.test_list)
                    answer = worker.run(program.code, program.setup, plans, limits)
                    result = read_result(plans, answer, limits, self.isolation)
                except (WorkerDied, OSError) as error:
                    faults.append(str(error))
                    if worker:
                        worker.kill()
                    worker = None
            future.set_result(result or ExecutionResult((), "; then ".join(faults), self.isolation))
        if worker:
            worker.kill()
