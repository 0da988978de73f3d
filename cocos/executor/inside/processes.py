"""The end of a job: wait for its processes, kill what is left of them, and reap it.

Orphans of a program become children of the zygote, because it is PID 1 of a namespace or a subreaper.
"""

import _signal  # not `signal`, which converts masks to sets of enum members
import os
import select
import time
from _signal import SIGCHLD, SIGKILL

from wire_format import EXITED, TIMED_OUT

ABANDONED = b"A"  # the trusted process has ended; nobody waits for the answer


class Watch:
    """Waits for the end of children, the end of the trusted process, and requests for tests.

    SIGCHLD writes to a pipe. So a child that ends between a check and the wait is never missed.

    Args:
        jobs: The job pipe, which the trusted process closes at its end.
        ended: Reading end of a pipe.
        wakeup: Writing end of it.

    """

    def __init__(self, jobs: int, ended: int, wakeup: int) -> None:
        self._jobs, self._ended = jobs, ended
        for fd in (ended, wakeup):
            os.set_blocking(fd, False)
        _signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        _signal.signal(SIGCHLD, lambda *_: None)
        self._poll = select.poll()
        self._poll.register(ended, select.POLLIN)
        self._poll.register(jobs, 0)  # the end of the writer is always reported

    def wait(self, longest_s: float, feed, sink) -> bool:
        """Wait for an event, and answer a request for a test; return False if nobody wants the answer."""
        if can_ask := feed is not None and feed.is_open:
            self._poll.register(feed.asks, select.POLLIN)
        if can_come := sink is not None and sink.is_open:
            self._poll.register(sink.source, select.POLLIN)
        events = self._poll.poll(int(longest_s * 1000) + 1)
        if can_come:
            self._poll.unregister(sink.source)
        if can_ask:
            self._poll.unregister(feed.asks)
        for fd, _ in events:
            if fd == self._jobs:
                return False
            if fd == self._ended:
                os.read(fd, 512)
            elif can_come and fd == sink.source.fileno():
                sink.drain()
            else:
                feed.hand_over()
        return True


def await_end(
    child: int, driver: int | None, deadline: float, watch: Watch, feed, sink
) -> tuple[bytes, int, float, float, float]:
    """Wait until candidate and driver have ended or the deadline has passed. Then kill and reap every child.

    Args:
        child: Process id of the candidate.
        driver: Process id of the driver, or None.
        deadline: Time on the monotonic clock.
        watch: It tells when something has happened.
        feed: The tests that the candidate may ask for, or None.
        sink: The driver's evidence, or None.

    Returns:
        `wire_format.EXITED`, `TIMED_OUT` or ABANDONED; of the candidate's process the wait status, the CPU
        seconds and the largest resident size in MiB; and the seconds that both waited for a processor.

    """
    end, waited_s = EXITED, 0.0
    running = {child, driver} if driver else {child}
    while running:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            end, waited_s = TIMED_OUT, sum(map(run_delay_s, running))
            break
        if not watch.wait(left_s, feed, sink):
            end = ABANDONED
            break
        while running:
            pid, pid_status, pid_usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                break
            running.discard(pid)
            if pid == child:
                status, usage = pid_status, pid_usage
    # A killed process's own children become ours only after its death, so repeat until no child is left.
    options = os.WNOHANG
    while True:
        try:
            pid, pid_status, pid_usage = os.wait4(-1, options)
        except ChildProcessError:
            return end, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, waited_s
        if pid == child:
            status, usage = pid_status, pid_usage
        if pid:
            options = os.WNOHANG
        else:
            kill_children()
            options = 0  # every child has been killed, so waiting for the next one to end is safe


def run_delay_s(process: int) -> float:
    """Return how long the main thread of a process was ready to run without a processor."""
    try:
        with open(f"/proc/{process}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # the process has ended, or this kernel does not count
        return 0.0


def kill_children() -> None:
    """Kill all our children; as PID 1, every other process of the namespace."""
    if os.getpid() == 1:
        os.kill(-1, SIGKILL)  # every process of this PID namespace except ourselves
        return
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in file.read().split():
            os.kill(int(pid), SIGKILL)
