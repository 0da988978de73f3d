"""Queue of the executor's jobs, shared by its worker threads.

Knows in which order jobs start, which of them run alone, and when the queue is closed. Does not know how a
program is executed.
"""

import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass

from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program

# While a second attempt waits to run alone, other jobs may start for at most this long.
MAX_WAIT_FOR_QUIET_S = 60.0


@dataclass
class Job:
    """A submitted program and the future of its result; all times are on the monotonic clock."""

    program: Program
    future: Future[ExecutionResult]
    start_by_s: float  # a job that starts later than this is overdue
    waited_s: float = 0.0  # that its first attempt waited for a processor
    requeued_s: float | None = None  # when its second attempt was queued; None during the first attempt

    @property
    def is_overdue(self) -> bool:
        return time.monotonic() > self.start_by_s


class JobQueue:
    """Thread-safe first-in, first-out queue. A second attempt runs alone: no other job runs at the same time.

    Args:
        max_wait_s: Seconds that a job may wait before it is overdue. An overdue job is still handed out; the
            caller decides what to do with it. None: no job is ever overdue.

    """

    def __init__(self, max_wait_s: float | None = None) -> None:
        self._max_wait_s = math.inf if max_wait_s is None else max_wait_s
        self._first_attempts: deque[Job] = deque()
        self._second_attempts: deque[Job] = deque()
        self._num_running = 0
        self._second_attempt_is_running = False
        self._closed_because: str | None = None
        self._changed = threading.Condition()  # guards every field above

    def put(self, program: Program) -> Future[ExecutionResult]:
        """Queue a program and return the future of its result.

        Raises:
            ExecutorError: The queue is closed.

        """
        job = Job(program, Future(), time.monotonic() + self._max_wait_s)
        with self._changed:
            if self._closed_because:
                raise ExecutorError(self._closed_because)
            self._first_attempts.append(job)
            self._changed.notify()
        return job.future

    def take(self) -> Job | None:
        """Wait for a job that may start now and return it; return None once the queue is closed.

        The caller must pass each job that it takes to `finish`.
        """
        with self._changed:
            while True:
                # First attempts start first, so that a second attempt does not stop the other workers. Once
                # it has waited too long, nothing new starts until the running jobs have finished.
                if self._first_attempts and not self._second_attempt_is_running and not self._must_drain():
                    job = self._first_attempts.popleft()
                    if not job.future.set_running_or_notify_cancel():
                        continue  # its caller has cancelled it
                elif self._second_attempts and not self._num_running:
                    job = self._second_attempts.popleft()
                    self._second_attempt_is_running = True
                elif self._closed_because:
                    return None
                else:
                    self._changed.wait()
                    continue
                self._num_running += 1
                return job

    def finish(self, job: Job, retry: bool = False) -> bool:
        """End an attempt; with `retry`, queue a second attempt that will run alone.

        Returns:
            True where a second attempt was queued. False where the attempt was the last: no retry was
            requested, this was the second attempt already, or the queue is closed.

        """
        with self._changed:
            was_second_attempt = job.requeued_s is not None
            self._num_running -= 1
            if was_second_attempt:
                self._second_attempt_is_running = False
            is_requeued = retry and not was_second_attempt and self._closed_because is None
            if is_requeued:
                job.requeued_s = time.monotonic()
                self._second_attempts.append(job)
            # Usually no thread needs to wake up: the one that finished takes the next job itself. But others
            # may be waiting for the running jobs, or for a second attempt, to end.
            if self._second_attempts or was_second_attempt:
                self._changed.notify_all()
            return is_requeued

    def close(self, reason: str) -> None:
        """Refuse further programs and fail every queued job with an ExecutorError that gives the reason.

        Jobs that are running finish normally. Later calls keep the first reason.
        """
        with self._changed:
            self._closed_because = self._closed_because or reason
            for job in (*self._first_attempts, *self._second_attempts):
                if not job.future.done():  # the caller may have cancelled it
                    job.future.set_exception(ExecutorError(reason))
            self._first_attempts.clear()
            self._second_attempts.clear()
            self._changed.notify_all()

    def _must_drain(self) -> bool:
        """Return whether a second attempt has waited so long that no other job may start before it."""
        if not self._second_attempts:
            return False
        waited_since_s = self._second_attempts[0].requeued_s
        assert waited_since_s is not None
        return time.monotonic() > waited_since_s + MAX_WAIT_FOR_QUIET_S
