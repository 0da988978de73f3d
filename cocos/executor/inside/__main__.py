"""The program inside the sandbox: a zygote that forks one child per job. Spawned in a fresh interpreter, never imported.

The zygote reads a fixed header from stdin; each child reads its own part of the job, so that nothing of a job stays in the zygote
for the next child to find. Children leave their evidence in memory files, which the zygote sends on with the way the candidate
ended: it can neither be impersonated nor be thrown out of step by what a candidate writes.
"""

import gc
import json
import os
import signal
import socket
import struct
import sys
import time

# Bytes for the judge and for the candidate; wall_s, cpu_s, memory_mb, output_kb, file_mb, processes, open_files.
HEADER = struct.Struct("!IIdIIIIII")
# How the candidate ended, whether the sandbox is spent, wait status, wall_s, cpu_s, peak_mb; bytes of its evidence and of the judge's.
ANSWER = struct.Struct("!c?idddII")
EXITED, TIMED_OUT, FLOODED, NEVER_STARTED = b"E", b"T", b"F", b"N"
JOB_FD, ANSWER_FD, EVIDENCE_FD, PEER_FD = 0, 1, 3, 4


class Zygote:
    """Answers jobs until stdin ends."""

    def __init__(self, confinement) -> None:
        self.confinement = confinement
        self.scratch_is_ours = not confinement.uids and os.stat(confinement.scratch[0]).st_uid == os.geteuid()
        self.devnull = os.open(os.devnull, os.O_RDWR)
        self.candidate_evidence = os.memfd_create("evidence")
        self.judge_evidence = os.memfd_create("judgement")
        self.started_r, self.started_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])

    def serve(self, run_candidate, run_judge) -> None:
        """Announce readiness, then run jobs one at a time."""
        write_all(ANSWER_FD, b"ready\n")
        while len(header := read_exactly(JOB_FD, HEADER.size)) == HEADER.size:
            judge_size, candidate_size, wall_s, *limits = HEADER.unpack(header)
            began = time.monotonic()
            judge, judge_peer, candidate_peer, started = None, None, None, 1
            if judge_size:  # the judge takes its part of the job off stdin before there is a candidate
                judge_peer, candidate_peer = (end.detach() for end in socket.socketpair())
                judge = self.fork(run_judge, judge_size, limits, self.judge_evidence, judge_peer)
                while not (started := self.started()) and not exited(judge):
                    time.sleep(0.0002)
            child = self.fork(run_candidate, candidate_size, limits, self.candidate_evidence, candidate_peer)
            for fd in filter(None, (judge_peer, candidate_peer)):
                os.close(fd)
            end, status, cpu_s, peak_mb = await_end(child, judge, began + wall_s)
            spent_s = time.monotonic() - began
            if started + self.started() < 2:
                end = NEVER_STARTED
            is_spent = not self.clean()
            sizes = [os.fstat(fd).st_size for fd in (self.candidate_evidence, self.judge_evidence)]
            if max(sizes) > limits[2] << 10:
                end, sizes = FLOODED, [0, 0]
            write_all(ANSWER_FD, ANSWER.pack(end, is_spent, status, spent_s, cpu_s, peak_mb, *sizes))
            for fd, size in zip((self.candidate_evidence, self.judge_evidence), sizes, strict=True):
                self.send(fd, size)

    def fork(self, run, size: int, limits: list[int], evidence_fd: int, peer_fd: int | None) -> int:
        """Fork a child that takes its part of the job off stdin, shuts itself in and runs it."""
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            job = read_exactly(JOB_FD, size)
            for fd in (0, 1, 2):
                os.dup2(self.devnull, fd)
            fds = [os.dup(fd) for fd in (evidence_fd, self.devnull if peer_fd is None else peer_fd)]
            for fd, place in zip(fds, (EVIDENCE_FD, PEER_FD), strict=True):
                os.dup2(fd, place, inheritable=False)
            self.confinement.enter(run.__name__, limits, keep_fd=self.started_w)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.write(self.started_w, b".")
            os.close(self.started_w)
            run(job, limits[2] << 10)
        finally:
            os._exit(99)

    def started(self) -> int:
        """How many children shut themselves in since the last call; the candidate's code ran in none that did not."""
        try:
            return len(os.read(self.started_r, 2))
        except BlockingIOError:
            return 0

    def send(self, fd: int, size: int) -> None:
        """Send a memory file on and empty it. The kernel moves the bytes: in this process the next child could find them."""
        offset = 0
        while offset < size:
            offset += os.sendfile(ANSWER_FD, fd, offset, size - offset)
        os.lseek(fd, 0, os.SEEK_SET)
        os.ftruncate(fd, 0)

    def clean(self) -> bool:
        """Remove the files that a program left; False where that is not possible, and this sandbox is spent."""
        try:
            for folder in self.confinement.scratch:
                if self.scratch_is_ours:  # and the program's, who may have locked it
                    os.chmod(folder, 0o700)
                for entry in os.listdir(folder):
                    remove(os.path.join(folder, entry))
        except (OSError, RecursionError):
            return False
        return True


def remove(path: str) -> None:
    """Remove a file, or a folder with all that is in it, whatever their modes."""
    if not os.path.isdir(path) or os.path.islink(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for entry in os.listdir(path):
        remove(os.path.join(path, entry))
    os.rmdir(path)


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only where the stream ends."""
    parts = []
    while size and (part := os.read(fd, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def exited(child: int) -> bool:
    """Whether a child has ended; it stays waitable."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def await_end(child: int, judge: int | None, deadline: float) -> tuple[bytes, int, float, float]:
    """Wait for candidate and judge, or for the deadline; leave no process behind.

    Returns:
        EXITED or TIMED_OUT, the candidate's wait status, its CPU seconds and its largest resident size in MiB.

    """
    end = EXITED
    while not (exited(child) and (judge is None or exited(judge))):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            end = TIMED_OUT
            break
        signal.sigtimedwait([signal.SIGCHLD], left_s)
    if end == TIMED_OUT:
        for pid in filter(None, (child, judge)):
            os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    while True:  # orphans come to us: we are PID 1 of our namespace, or subreaper
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return end, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if not pid:
            kill_strays()


def kill_strays() -> None:
    """Kill every process that a program left running."""
    if os.getpid() == 1:
        os.kill(-1, signal.SIGKILL)  # everybody in this PID namespace but ourselves
        return
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in file.read().split():
            os.kill(int(pid), signal.SIGKILL)


if __name__ == "__main__":
    import candidate
    import confine
    import judge

    sys.path.pop(0)
    os.closerange(EVIDENCE_FD, 1 << 16)
    for _ in (EVIDENCE_FD, PEER_FD):  # nothing of the zygote's may lie where a child expects these
        os.open(os.devnull, os.O_RDWR)
    zygote = Zygote(confine.Confinement(**json.loads(sys.argv[1])))
    gc.collect()
    gc.freeze()
    gc.disable()
    zygote.serve(candidate.run_candidate, judge.run_judge)
