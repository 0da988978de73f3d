"""The end of a job: wait for its processes, kill what is left of them, and reap it.

Orphans of a program become children of the zygote, because it is PID 1 of a namespace or a subreaper.
"""

import _signal  # not `signal`, which converts masks to sets of enum members
import os
import time
from _signal import SIGCHLD, SIGKILL

from wire_format import EXITED, TIMED_OUT

ABANDONED = b"A"  # the trusted process has ended; nobody waits for the answer
ABANDONED_CHECK_S = 0.5


def await_end(
    child: int, judge: int | None, deadline: float, hangup
) -> tuple[bytes, int, float, float, float]:
    """Wait until candidate and judge have ended or the deadline has passed. Then kill and reap every child.

    The caller has blocked SIGCHLD, so it stays pending until `sigtimedwait` takes it. A child that ends
    between a check and the wait is therefore never missed.

    Args:
        child: Process id of the candidate.
        judge: Process id of the judge, or None.
        deadline: Time on the monotonic clock.
        hangup: Poll object that reports an event once the job pipe is closed.

    Returns:
        `wire_format.EXITED`, `TIMED_OUT` or ABANDONED; of the candidate's process the wait status, the CPU
        seconds and the largest resident size in MiB; and the seconds that both waited for a processor.

    """
    end, waited_s = EXITED, 0.0
    running = {child, judge} if judge else {child}
    while running:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            end, waited_s = TIMED_OUT, sum(map(run_delay_s, running))
            break
        signalled = _signal.sigtimedwait((SIGCHLD,), min(left_s, ABANDONED_CHECK_S))
        if signalled is None and hangup.poll(0):
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
