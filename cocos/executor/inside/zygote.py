"""The zygote, which runs jobs one at a time. It forks the children of each job, and they confine themselves.

It reads only the header of a job. Each child reads its own part, so that the zygote's memory, which every
later child inherits, never contains a test or an expected value. A child writes its evidence to a memory
file, and the kernel copies the file to the answer pipe. The zygote parses nothing that a candidate wrote.
"""

import _signal  # not `signal`: in every child it would convert signal masks to sets of enum members
import fcntl
import os
import socket
import time
from signal import SIG_BLOCK, SIG_SETMASK, SIGCHLD, SIGKILL

from wire_format import (
    ANSWER_HEADER,
    EVIDENCE_FD,
    EXITED,
    FIRST_OWN_FD,
    FLOODED,
    JOB_HEADER,
    NEVER_STARTED,
    OUTPUT_KB,
    PEER_FD,
    READY,
    STARTED_FD,
    TIMED_OUT,
)

CHILD_FAILED = 99
JUDGE_POLL_S = 0.0002


class Zygote:
    """The server of one sandbox. It replaces descriptors of its process, so a process can have only one."""

    def __init__(self, confinement) -> None:
        self.confinement = confinement
        self.scratch_is_ours = not confinement.uids and os.stat(confinement.scratch[0]).st_uid == os.geteuid()
        # PID 1 also has an IPC namespace. Without the filter, programs can create System V objects there.
        self.may_share_memory = os.getpid() == 1 and not confinement.seccomp
        self.jobs, self.answers = _move_up(os.dup(0)), _move_up(os.dup(1))
        # Evidence goes to memory files, not pipes. A pipe blocks its writer when it is full, must be drained
        # while the candidate runs, and may be kept open by a process that the candidate started.
        evidence, self.judge_evidence = map(_move_up, map(os.memfd_create, ("evidence", "judgement")))
        self.started, started_w = map(_move_up, os.pipe())
        devnull = _move_up(os.open(os.devnull, os.O_RDWR))
        for fd in (0, 1, 2, PEER_FD):
            os.dup2(devnull, fd)
        os.dup2(evidence, EVIDENCE_FD)
        os.dup2(started_w, STARTED_FD)
        os.set_blocking(self.started, False)
        # A blocked SIGCHLD stays pending until `sigtimedwait` takes it. A child that ends between a check and
        # the wait is therefore never missed, and nothing needs to poll.
        _signal.pthread_sigmask(SIG_BLOCK, [SIGCHLD])

    def serve(self, run_candidate, run_judge) -> None:
        """Send READY, then run jobs until the job pipe is closed.

        Args:
            run_candidate: Function that runs the candidate's part of a job in a child. Its arguments are that
                part and the number of bytes of evidence that it may write. It must end the process.
            run_judge: The same for the judge's part.

        """
        write_all(self.answers, READY)
        while len(header := read_exactly(self.jobs, JOB_HEADER.size)) == JOB_HEADER.size:
            judge_job_size, candidate_job_size, wall_limit_s, *limits = JOB_HEADER.unpack(header)
            start = time.monotonic()
            judge = peer = None
            num_started = 1
            if judge_job_size:
                sockets = socket.socketpair()
                peer = sockets[1].fileno()
                judge = self.fork(run_judge, judge_job_size, limits, self.judge_evidence, sockets[0].fileno())
                # The judge's part contains expected values. The candidate's process will read from the same
                # pipe, so fork it only after the judge has read its part.
                while not (num_started := self.count_started()) and not has_exited(judge):
                    time.sleep(JUDGE_POLL_S)
            child = self.fork(run_candidate, candidate_job_size, limits, EVIDENCE_FD, peer)
            if judge_job_size:
                for end_of_pair in sockets:
                    end_of_pair.close()
            end, status, cpu_s, peak_mb = await_end(child, judge, start + wall_limit_s)
            wall_s = time.monotonic() - start
            if num_started + self.count_started() < 2:
                end = NEVER_STARTED
            is_spent = not self.clean()
            # Every process of the job is dead now, so neither file can grow before it is sent.
            candidate_size = os.fstat(EVIDENCE_FD).st_size
            judge_size = os.fstat(self.judge_evidence).st_size if judge_job_size else 0
            if max(candidate_size, judge_size) > limits[OUTPUT_KB] << 10:
                end, candidate_size, judge_size = FLOODED, 0, 0
            answer = ANSWER_HEADER.pack(
                end, is_spent, status, wall_s, cpu_s, peak_mb, candidate_size, judge_size
            )
            write_all(self.answers, answer)
            self.send(EVIDENCE_FD, candidate_size)
            if judge_job_size:
                self.send(self.judge_evidence, judge_size)

    def fork(self, run, size: int, limits: list[int], evidence: int, peer: int | None) -> int:
        """Fork a child that reads its part of the job, confines itself and runs it.

        Args:
            run: The function that runs the job and ends the process.
            size: Bytes of the job to read.
            limits: The values of `wire_format.ChildLimits`.
            evidence: Descriptor of the memory file for this child.
            peer: Descriptor of this child's end of the socket, or None without a judge.

        """
        self.confinement.prepare(limits)
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()  # a signal to the process group must not reach the zygote
            job = read_exactly(self.jobs, size)
            if evidence != EVIDENCE_FD:
                os.dup2(evidence, EVIDENCE_FD)
            if peer is not None:
                os.dup2(peer, PEER_FD)
            self.confinement.enter(evidence != EVIDENCE_FD)
            # Close the job pipe, the answer pipe and the other child's evidence. Not earlier, because
            # `enter` needs the descriptor of the Landlock ruleset.
            os.closerange(FIRST_OWN_FD, 1 << 16)
            _signal.pthread_sigmask(SIG_SETMASK, ())
            os.write(STARTED_FD, b".")
            os.close(STARTED_FD)
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
        """Send `size` bytes of a memory file as part of the answer, then empty the file.

        `sendfile` copies in the kernel. So the bytes never enter the zygote's memory, where the next child
        could find them.
        """
        offset = 0
        while offset < size:
            offset += os.sendfile(self.answers, fd, offset, size - offset)
        os.lseek(fd, 0, os.SEEK_SET)
        os.ftruncate(fd, 0)

    def clean(self) -> bool:
        """Remove all files that a program left. Return False if the sandbox must not be used again."""
        try:
            for folder in self.confinement.scratch:
                if self.scratch_is_ours:  # the program has the same user id and may have changed the mode
                    os.chmod(folder, 0o700)
                for entry in os.listdir(folder):
                    remove(os.path.join(folder, entry))
        except (OSError, RecursionError):
            return False
        return not (self.may_share_memory and any(map(has_segments, ("shm", "msg", "sem"))))


def has_segments(kind: str) -> bool:
    """Return whether a System V object of this kind exists; such objects outlive the program."""
    with open(f"/proc/sysvipc/{kind}") as listing:
        return len(listing.readlines()) > 1  # the first line is the heading


def remove(path: str) -> None:
    """Remove a file, or a folder and its content, whatever their permissions are."""
    if not os.path.isdir(path) or os.path.islink(path):
        os.unlink(path)
        return
    os.chmod(path, 0o700)
    for entry in os.listdir(path):
        remove(os.path.join(path, entry))
    os.rmdir(path)


def await_end(child: int, judge: int | None, deadline: float) -> tuple[bytes, int, float, float]:
    """Wait until candidate and judge have ended or the deadline has passed. Then kill and reap every child.

    Args:
        child: Process id of the candidate.
        judge: Process id of the judge, or None.
        deadline: Time on the monotonic clock.

    Returns:
        `wire_format.EXITED` or `TIMED_OUT`, and of the candidate's process the wait status, the CPU seconds
        and the largest resident size in MiB.

    """
    end = EXITED
    ended, status, usage = os.wait4(child, os.WNOHANG)
    while not (ended and (judge is None or has_exited(judge))):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            end = TIMED_OUT
            if judge:
                os.kill(judge, SIGKILL)
            if not ended:
                os.kill(child, SIGKILL)
                _, status, usage = os.wait4(child, 0)
            break
        _signal.sigtimedwait((SIGCHLD,), left_s)
        if not ended:
            ended, status, usage = os.wait4(child, os.WNOHANG)
    # Orphans become our children, because we are PID 1 of a namespace or a subreaper. A killed process's
    # own children become ours only after its death, so repeat until no child is left.
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return end, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if not pid:
            kill_children()


def has_exited(child: int) -> bool:
    """Return whether a child has ended. It is not reaped, so its process id cannot be reused."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_children() -> None:
    """Kill all our children; as PID 1, every other process of the namespace."""
    if os.getpid() == 1:
        os.kill(-1, SIGKILL)  # every process of this PID namespace except ourselves
        return
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in file.read().split():
            os.kill(int(pid), SIGKILL)


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only if the stream ends."""
    data = os.read(fd, size)
    while len(data) < size and (part := os.read(fd, min(size - len(data), 1 << 20))):
        data += part
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
