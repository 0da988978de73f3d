"""The end of a job: wait for the program and its driver, kill what is left of the program, and reap it.

Orphans of a program become children of the zygote, because it is PID 1 of a namespace or a subreaper.
"""

import _signal  # not `signal`, which converts masks to sets of enum members
import os
import select
import time
from _signal import SIGCHLD, SIGCONT, SIGKILL, SIGSTOP

ABANDONED = "the trusted process has ended"  # so nobody waits for the answer
CPUCLOCK_SCHED = 2  # the clock of a process's processor time; see clock_getcpuclockid(3)
MAX_ROUNDS = 1000  # of killing what a program's processes have started meanwhile
FREE_ROUNDS = 5  # before they are stopped, so that they start no more


class Watch:
    """Waits for the end of children, the end of the trusted process, and the driver.

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
        self.poll = select.poll()
        self.poll.register(ended, select.POLLIN)
        self.poll.register(jobs, 0)  # the end of the writer is always reported

    def wait(self, longest_s: float, control: int) -> str:
        """Wait for an event; return ABANDONED, "driver", or "" for the end of a child or of the time."""
        found = ""
        for fd, _ in self.poll.poll(int(longest_s * 1000) + 1):
            if fd == self._jobs:
                return ABANDONED
            if fd == control:
                found = "driver"
            else:
                os.read(fd, 512)
        return found


class Program:
    """The process of a program.

    Attributes:
        is_reaped: It has ended, and `status` is its wait status.
        cpu_s: Processor seconds that it took.
        peak_mb: Its largest resident size in MiB, if it is known.
        waited_s: Seconds that it was ready to run without a processor, if it was killed at the deadline.

    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_reaped, self.status = False, int(SIGKILL)
        self.cpu_s = self.peak_mb = self.waited_s = 0.0

    def reap(self, options: int = os.WNOHANG) -> None:
        """Note its end, if it has ended."""
        pid, status, usage = os.wait4(self.pid, options)
        if pid:
            self.is_reaped, self.status, self.peak_mb = True, status, usage.ru_maxrss / 1024
            self.cpu_s = usage.ru_utime + usage.ru_stime

    def stop(self, may_have_ended: bool) -> None:
        """Kill it. Wait for its status only if it may have ended before: the kernel takes its time."""
        if not self.is_reaped:
            os.kill(self.pid, SIGKILL)
            self.cpu_s = time.clock_gettime(~self.pid << 3 | CPUCLOCK_SCHED)
            if may_have_ended:
                self.reap(0)

    def kill(self, driver: int) -> None:
        """Kill and reap it and what it has left; the driver too if there is no other way."""
        if not self.is_reaped:
            os.kill(self.pid, SIGKILL)
            self.reap(0)
        kill_all_but(driver)


def kill_all_but(*kept: int) -> None:
    """Kill and reap what a program has left; everything if there is no other way."""
    is_first = os.getpid() == 1
    for rounds in range(MAX_ROUNDS):
        ours = children()
        others = [pid for pid in ours if pid not in kept]
        if not others:
            for pid in ours if is_first and rounds > FREE_ROUNDS else ():
                os.kill(pid, SIGCONT)
            return
        if is_first and rounds >= FREE_ROUNDS:
            os.kill(-1, SIGSTOP)
        for pid in others:
            os.kill(pid, SIGKILL)
        # A killed process's own children become ours only after its death.
        for pid in others:
            os.waitpid(pid, 0)
    if is_first:
        os.kill(-1, SIGKILL)  # every process of this PID namespace except ourselves


def await_end(program: Program, driver: int, control: int, deadline: float, watch: Watch) -> tuple[str, bool]:
    """Wait until the driver has the evidence of a job, or for its program at most until the deadline.

    Returns:
        ABANDONED, "driver" if the driver has evidence, or "" if it has none; and whether the deadline passed.

    """
    is_late = False
    event = ""
    while not event:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            if is_late:
                return "", True
            program.waited_s = run_delay_s(program.pid)
            program.kill(driver)  # the driver finds that out, and sends what it has
            deadline, is_late = time.monotonic() + 2.0, True
            continue
        event = watch.wait(left_s, control)
        if not event and not program.is_reaped:
            program.reap()
            if program.is_reaped:
                program.kill(driver)  # its orphans, which could answer the driver
    return event, is_late


def run_delay_s(process: int) -> float:
    """Return how long a process, or its first child, was ready to run without a processor."""
    try:
        for pid in (process, *children(process)[:1]):
            with open(f"/proc/{pid}/schedstat") as file:
                delay_ns = int(file.read().split()[1])
        return delay_ns / 1e9
    except (OSError, ValueError, IndexError):  # the process has ended, or this kernel does not count
        return 0.0


def children(process: int = 0) -> list[int]:
    """Return the ids of our children, or of a process's; ended ones too, until they are reaped."""
    fd = os.open(f"/proc/{process or 'self'}/task/{process or os.getpid()}/children", os.O_RDONLY)
    try:
        return [int(pid) for pid in os.read(fd, 1 << 16).split()]
    finally:
        os.close(fd)
