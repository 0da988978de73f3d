"""The zygote: answers jobs one at a time, each in a child that it forks and confines.

It reads a fixed header from the job pipe; each child reads its own part of the job, so that nothing of a job
stays here for the next child to find. Children leave their evidence in memory files, which the kernel sends
on, with the way the candidate ended: the zygote can neither be impersonated nor be thrown out of step by what
a candidate writes.
"""

import _signal  # the plain functions: those of `signal` build sets of enum members, in every child
import os
import socket
import struct
import time
from signal import SIG_BLOCK, SIG_SETMASK, SIGCHLD, SIGKILL

# Bytes for the judge and for the candidate; wall_s, cpu_s, memory_mb, output_kb, file_mb, processes,
# open_files.
HEADER = struct.Struct("!IIdIIIIII")
# How the candidate ended, whether the sandbox is spent, wait status, wall_s, cpu_s, peak_mb; bytes of the two
# evidences.
ANSWER = struct.Struct("!c?idddII")
EXITED, TIMED_OUT, FLOODED, NEVER_STARTED = b"E", b"T", b"F", b"N"
# Where a child expects its descriptors; 0 to 2 are /dev/null, and what comes after these is the zygote's own.
EVIDENCE_FD, PEER_FD, STARTED_FD, FIRST_OWN_FD = 3, 4, 5, 6


class Zygote:
    """Answers jobs until their pipe ends. Makes itself the owner of the process's descriptors."""

    def __init__(self, confinement) -> None:
        self.confinement = confinement
        self.scratch_is_ours = not confinement.uids and os.stat(confinement.scratch[0]).st_uid == os.geteuid()
        self.may_share_memory = os.getpid() == 1 and not confinement.seccomp  # in an IPC namespace of our own
        own = [os.dup(0), os.dup(1), os.memfd_create("evidence"), os.memfd_create("judgement"), *os.pipe()]
        own += [os.open(os.devnull, os.O_RDWR)]
        self.jobs, self.answers, evidence, self.judgement, self.started, started_w, devnull = map(
            _move_up, own
        )
        for fd, place in (
            (devnull, 0),
            (devnull, 1),
            (devnull, 2),
            (evidence, EVIDENCE_FD),
            (devnull, PEER_FD),
        ):
            os.dup2(fd, place)
        os.dup2(started_w, STARTED_FD)
        os.set_blocking(self.started, False)
        _signal.pthread_sigmask(SIG_BLOCK, [SIGCHLD])

    def serve(self, run_candidate, run_judge) -> None:
        """Announce readiness, then run jobs one at a time."""
        write_all(self.answers, b"ready\n")
        while len(header := read_exactly(self.jobs, HEADER.size)) == HEADER.size:
            judge_size, candidate_size, wall_s, *limits = HEADER.unpack(header)
            began = time.monotonic()
            judge = peer = None
            num_started = 1
            if judge_size:
                ends = socket.socketpair()
                peer = ends[1].fileno()
                judge = self.fork(run_judge, judge_size, limits, self.judgement, ends[0].fileno())
                while not (num_started := self.count_started()) and not exited(judge):
                    time.sleep(
                        0.0002
                    )  # it takes its part of the job off the pipe before there is a candidate
            child = self.fork(run_candidate, candidate_size, limits, EVIDENCE_FD, peer)
            if judge_size:
                for end in ends:
                    end.close()
            outcome, status, cpu_s, peak_mb = await_end(child, judge, began + wall_s)
            spent_s = time.monotonic() - began
            if num_started + self.count_started() < 2:
                outcome = NEVER_STARTED
            is_spent = not self.clean()
            sizes = [os.fstat(EVIDENCE_FD).st_size, os.fstat(self.judgement).st_size if judge_size else 0]
            if max(sizes) > limits[2] << 10:
                outcome, sizes = FLOODED, [0, 0]
            write_all(self.answers, ANSWER.pack(outcome, is_spent, status, spent_s, cpu_s, peak_mb, *sizes))
            self.send(EVIDENCE_FD, sizes[0])
            if judge_size:
                self.send(self.judgement, sizes[1])

    def fork(self, run, size: int, limits: list[int], evidence: int, peer: int | None) -> int:
        """Fork a child that takes its part of the job off the pipe, shuts itself in and runs it."""
        self.confinement.prepare(limits)
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            job = read_exactly(self.jobs, size)
            if evidence != EVIDENCE_FD:
                os.dup2(evidence, EVIDENCE_FD)
            if peer is not None:
                os.dup2(peer, PEER_FD)
            self.confinement.enter(evidence != EVIDENCE_FD)
            os.closerange(FIRST_OWN_FD, 1 << 16)
            _signal.pthread_sigmask(SIG_SETMASK, ())
            os.write(STARTED_FD, b".")
            os.close(STARTED_FD)
            run(job, limits[2] << 10)
        finally:
            os._exit(99)

    def count_started(self) -> int:
        """How many children shut themselves in since the last call; in no other did foreign code run."""
        try:
            return len(os.read(self.started, 2))
        except BlockingIOError:
            return 0

    def send(self, fd: int, size: int) -> None:
        """Have the kernel send a memory file on, and empty it: the next child could find the bytes here."""
        offset = 0
        while offset < size:
            offset += os.sendfile(self.answers, fd, offset, size - offset)
        os.lseek(fd, 0, os.SEEK_SET)
        os.ftruncate(fd, 0)

    def clean(self) -> bool:
        """Remove the files that a program left; False where that fails, and this sandbox is spent."""
        try:
            for folder in self.confinement.scratch:
                if self.scratch_is_ours:  # and the program's, who may have locked it
                    os.chmod(folder, 0o700)
                for entry in os.listdir(folder):
                    remove(os.path.join(folder, entry))
        except (OSError, RecursionError):
            return False
        return not (self.may_share_memory and any(map(has_segments, ("shm", "msg", "sem"))))


def has_segments(kind: str) -> bool:
    """Whether a program left a System V segment, queue or semaphore: they outlive their makers."""
    with open(f"/proc/sysvipc/{kind}") as listing:
        return len(listing.readlines()) > 1


def remove(path: str) -> None:
    """Remove a file, or a folder with all that is in it, whatever their modes."""
    if not os.path.isdir(path) or os.path.islink(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for entry in os.listdir(path):
        remove(os.path.join(path, entry))
    os.rmdir(path)


def await_end(child: int, judge: int | None, deadline: float) -> tuple[bytes, int, float, float]:
    """Wait for candidate and judge, or for the deadline; leave no process behind.

    Returns:
        EXITED or TIMED_OUT, the candidate's wait status, its CPU seconds and its largest resident size in
        MiB.

    """
    outcome = EXITED
    ended, status, usage = os.wait4(child, os.WNOHANG)
    while not (ended and (judge is None or exited(judge))):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            outcome = TIMED_OUT
            if judge:
                os.kill(judge, SIGKILL)
            if not ended:
                os.kill(child, SIGKILL)
                _, status, usage = os.wait4(child, 0)
            break
        _signal.sigtimedwait((SIGCHLD,), left_s)
        if not ended:
            ended, status, usage = os.wait4(child, os.WNOHANG)
    while True:  # orphans come to us: we are PID 1 of our namespace, or subreaper
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return outcome, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if not pid:
            kill_strays()


def exited(child: int) -> bool:
    """Whether a child has ended; it stays waitable."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_strays() -> None:
    """Kill every process that a program left running."""
    if os.getpid() == 1:
        os.kill(-1, SIGKILL)  # everybody in this PID namespace but ourselves
        return
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in file.read().split():
            os.kill(int(pid), SIGKILL)


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only where the stream ends."""
    data = os.read(fd, size)
    while len(data) < size and (part := os.read(fd, min(size - len(data), 1 << 20))):
        data += part
    return data


def write_all(fd: int, data: bytes) -> None:
    """Write every byte."""
    while data:
        data = data[os.write(fd, data) :]


def _move_up(fd: int) -> int:
    """Give a descriptor a number beyond those that children use."""
    import fcntl

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_FD + 16)
    os.close(fd)
    return moved
