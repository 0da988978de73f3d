"""The zygote, which runs jobs one at a time. It forks the children of each job, and they confine themselves.

It reads only the header of a job. Each child reads its own part, so that the zygote's memory, which every
later child inherits, never contains a test or an expected value. A child writes its evidence to a memory
file, and the kernel copies the file to the answer pipe. The zygote parses nothing that a candidate wrote.
"""

import _signal  # not `signal`, which converts masks to sets of enum members
import _socket  # not `socket`, which imports much that each fork would have to copy
import fcntl
import os
import sys
import time
from contextlib import suppress

import fixed_world
import scratch
from feed import Feed, Sink
from processes import ABANDONED, Watch, await_end
from wire_format import (
    ANSWER_HEADER,
    ASK_FD,
    COMMIT,
    EVIDENCE_FD,
    FIRST_OWN_FD,
    FLOODED,
    JOB_HEADER,
    NEVER_STARTED,
    OUTPUT_KB,
    PEER_FD,
    READY,
    SIZE,
    SPENT,
    TESTS_FD,
    TIMED_OUT,
)

CHILD_FAILED = 99
DRIVER_POLL_S = 0.0002
ALL_FDS = 1 << 16


class Zygote:
    """The server of one sandbox. It replaces descriptors of its process, so a process can have only one."""

    def __init__(self, confinement) -> None:
        self.confinement = confinement
        self.jobs, self.answers, self.errors = (_move_up(os.dup(fd)) for fd in (0, 1, 2))
        self.started, self.started_w = map(_move_up, os.pipe())
        os.set_blocking(self.started, False)
        self.watch = Watch(self.jobs, *map(_move_up, os.pipe()))
        # Python has a handler for SIGINT, and a signal with a handler reaches even PID 1. Children unblock
        # it.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
        # nohup and shells start commands that ignore some signals. Programs find what Python starts with.
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        for number in (_signal.SIGHUP, _signal.SIGQUIT):
            _signal.signal(number, _signal.SIG_DFL)
        # Occupy every low number but that of the evidence, so that a new memory file gets it.
        devnull = _move_up(os.open(os.devnull, os.O_RDWR))
        for fd in (0, 1, 2, PEER_FD, ASK_FD, TESTS_FD):
            os.dup2(devnull, fd)

    def serve(self, run_candidate, run_driver) -> None:
        """Send READY, then run jobs until the job pipe is closed or the scratch folder cannot be emptied.

        Args:
            run_candidate: Function that runs the candidate's part of a job in a child. Its arguments are that
                part and the number of bytes of evidence that it may write. It must end the process.
            run_driver: The same for the driver's part.

        """
        folder = self.confinement.scratch
        try:
            write_all(self.answers, READY)
            while self.run_job(run_candidate, run_driver):
                if not scratch.empty(folder):
                    write_all(self.answers, ANSWER_HEADER.pack(SPENT, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0))
                    return
        except BrokenPipeError:  # the trusted process has ended while a program ran
            pass
        except BaseException:
            os.dup2(self.errors, 2)  # the interpreter now prints the traceback
            raise
        # The trusted process has ended, perhaps without the time to remove this folder.
        scratch.empty(folder, longest_s=float("inf"))
        with suppress(OSError):  # it is the root of a file system
            os.rmdir(folder)

    def run_job(self, run_candidate, run_driver) -> bool:
        """Run one job and send the answer. Return False if the job pipe is closed."""
        header = read_exactly(self.jobs, JOB_HEADER.size)
        if len(header) < JOB_HEADER.size:
            return False
        num_sizes, driver_job_size, candidate_job_size, wall_limit_s, *limits = JOB_HEADER.unpack(header)
        sizes = [size for (size,) in SIZE.iter_unpack(read_exactly(self.jobs, num_sizes * SIZE.size))]
        start = time.monotonic()
        # The driver and the candidate must read the same time, so their clock runs from now on.
        fixed_world.WORLD.restart_clock(at_once=driver_job_size > 0)
        driver = sink = None
        num_started = 1
        if driver_job_size:
            sockets = _socket.socketpair()
            sink = Sink()
            ends = sink.driver_end.fileno(), sockets[0].fileno()
            driver = self.fork(run_driver, driver_job_size, limits, *ends)
            sink.driver_end.close()
            # The driver's part contains expected values. The candidate's process will read from the same
            # pipe, so fork it only after the driver has read its part.
            while not (num_started := self.count_started()) and not has_exited(driver):
                time.sleep(DRIVER_POLL_S)
        # A new file per job: the next program must not find its flags, locks or attributes.
        evidence = os.memfd_create("evidence")
        feed = Feed(self.jobs, sizes, evidence, sink) if sizes else None
        child = self.fork(
            *(
                run_candidate,
                candidate_job_size,
                limits,
                evidence,
                sockets[1].fileno() if driver else None,
                feed,
            )
        )
        if driver:
            for end_of_pair in sockets:
                end_of_pair.close()
        deadline = start + wall_limit_s
        end, status, cpu_s, peak_mb, waited_s = await_end(child, driver, deadline, self.watch, feed, sink)
        if end == ABANDONED:
            return False
        wall_s = time.monotonic() - start
        # A child that was reading a large job at the deadline has met the limit.
        if num_started + self.count_started() < 2 and end != TIMED_OUT:
            end = NEVER_STARTED
        # Every process of the job is dead now, so no file can grow before it is sent.
        commits = []
        if feed:
            feed.finish()
            feed.close(devnull=1)
            evidence, commits = feed.final, feed.commits
        size = os.fstat(evidence).st_size
        driver_size = sink.drain() if sink else 0
        if max(size, driver_size) > limits[OUTPUT_KB] << 10:
            end, commits, size, driver_size = FLOODED, [], 0, 0
        sizes_sent = (len(commits), size, driver_size)
        answer = ANSWER_HEADER.pack(end, status, wall_s, cpu_s, waited_s, peak_mb, *sizes_sent)
        write_all(self.answers, answer + b"".join(COMMIT.pack(*commit) for commit in commits))
        self.send(evidence, size)
        if sink:
            sink.close()
            self.send(sink.file, driver_size)
        return True

    def fork(
        self, run, size: int, limits: list[int], evidence: int, peer: int | None, feed: Feed | None = None
    ) -> int:
        """Fork a child that reads its part of the job, confines itself and runs it.

        Args:
            run: The function that runs the job and ends the process.
            size: Bytes of the job to read.
            limits: The values of `wire_format.ChildLimits`.
            evidence: Descriptor of the memory file, or of the socket, for this child's evidence.
            peer: Descriptor of this child's end of the socket, or None without a driver.
            feed: The tests that it may ask for, or None.

        """
        self.confinement.prepare(limits)
        self.confinement.before_fork()
        child = os.fork()
        if child:
            self.confinement.after_fork()
            if feed:
                feed.candidate_end.close()
            return child
        try:
            os.setsid()  # a signal to the process group must not reach the zygote
            job = read_exactly(self.jobs, size)
            evidence = fcntl.fcntl(evidence, fcntl.F_DUPFD, FIRST_OWN_FD)  # no other call may overwrite it
            if peer is not None:
                os.dup2(peer, PEER_FD)
            if feed:
                os.dup2(feed.candidate_end.fileno(), ASK_FD)
                os.dup2(feed.tests, TESTS_FD)
            os.dup2(evidence, EVIDENCE_FD)
            devnull = os.open(os.devnull, os.O_RDWR)  # not the zygote's, whose flags a child could change
            unused = [*([PEER_FD] if peer is None else []), *([] if feed else [ASK_FD, TESTS_FD])]
            for fd in (0, 1, 2, *unused):
                os.dup2(devnull, fd)
            self.confinement.enter()
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            os.write(self.started_w, b".")
            # Among others the job pipe, the answer pipe and the other child's evidence. Not earlier, because
            # `enter` needs the descriptor of the Landlock ruleset.
            os.closerange(FIRST_OWN_FD, ALL_FDS)
        except BaseException:
            os.dup2(self.errors, 2)
            sys.excepthook(*sys.exc_info())
            os._exit(CHILD_FAILED)
        try:
            run(job, limits[OUTPUT_KB] << 10)
        finally:
            os._exit(CHILD_FAILED)  # whatever happened, a child never returns to the zygote's loop

    def count_started(self) -> int:
        """Return how many children have confined themselves since the last call."""
        try:
            return len(os.read(self.started, 2))
        except BlockingIOError:
            return 0

    def send(self, fd: int, size: int) -> None:
        """Send `size` bytes of a memory file as part of the answer, then remove the file.

        `sendfile` copies in the kernel. So the bytes never enter the zygote's memory, where the next child
        could find them.
        """
        offset = 0
        while offset < size:
            offset += os.sendfile(self.answers, fd, offset, size - offset)
        os.close(fd)


def has_exited(child: int) -> bool:
    """Return whether a child has ended. It is not reaped, so its process id cannot be reused."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only if the stream ends."""
    data = os.read(fd, size)
    if len(data) < size:  # a large job; parts that are added to bytes would take quadratic time
        parts = bytearray(data)
        while len(parts) < size and (part := os.read(fd, min(size - len(parts), 1 << 20))):
            parts += part
        data = bytes(parts)
    return data


def write_all(fd: int, data: bytes) -> None:
    """Write every byte."""
    while data:
        data = data[os.write(fd, data) :]


def _move_up(fd: int) -> int:
    """Move a descriptor above the numbers that children use, so that no `dup2` overwrites it."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_FD + 16)
    os.close(fd)
    return moved
