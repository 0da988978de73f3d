"""The program inside the sandbox: a zygote that forks one child per job. Spawned as `python -I inside/`, never imported.

The zygote reads a fixed header from stdin; the child reads its own job, so that nothing of a job stays in the zygote for the
next child to find. The child writes evidence to a pipe of its own; the zygote passes those bytes on as one answer, with the way
the child ended, and can therefore neither be impersonated nor be thrown out of step by what a candidate writes.
"""

import ctypes
import gc
import os
import select
import signal
import struct
import sys
import time

HEADER = struct.Struct("!IdIIIIII")  # job bytes, wall_s, cpu_s, memory_mb, output_kb, file_mb, processes, open_files
ANSWER = struct.Struct("!ciddI")  # how it ended, wait status, wall seconds, CPU seconds, bytes of evidence that follow
EXITED, TIMED_OUT, FLOODED = b"E", b"T", b"F"
JOB_FD, ANSWER_FD = 0, 1
PR_SET_CHILD_SUBREAPER = 36


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only where the stream ends."""
    parts = []
    while size and (part := os.read(fd, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def drain(evidence_fd: int, process_fd: int, wall_s: float, cap: int) -> tuple[bytes, bytes]:
    """Read the child's evidence until it ends, runs out of time or sends too much; return how, and the bytes."""
    deadline = time.monotonic() + wall_s
    poll = select.poll()
    poll.register(evidence_fd, select.POLLIN)
    poll.register(process_fd, select.POLLIN)
    parts, size = [], 0
    while True:
        left_s = deadline - time.monotonic()
        ready = [fd for fd, _ in poll.poll(max(0, left_s * 1000))] if left_s > 0 else []
        if not ready:
            return TIMED_OUT, b"".join(parts)
        if evidence_fd in ready:
            part = os.read(evidence_fd, 1 << 16)
            parts.append(part)
            size += len(part)
            if size > cap:
                return FLOODED, b"".join(parts)
            if part:
                continue
            poll.unregister(evidence_fd)
        if process_fd in ready:
            return EXITED, b"".join(parts)


def reap(child: int) -> tuple[int, float]:
    """Kill whatever the program left behind and wait for it; return the child's wait status and CPU seconds."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # it had not become a group leader yet, or is gone
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    while True:  # orphans come to us: we are PID 1 of our namespace, or subreaper
        try:
            stray, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status, usage.ru_utime + usage.ru_stime
        if not stray:
            kill_strays()


def kill_strays() -> None:
    if os.getpid() == 1:
        os.kill(-1, signal.SIGKILL)  # everybody in this PID namespace but ourselves
        return
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in file.read().split():
            os.kill(int(pid), signal.SIGKILL)


def serve(run_job) -> None:
    """Answer jobs until stdin ends."""
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 2)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write_all(ANSWER_FD, b"ready\n")
    while len(header := read_exactly(JOB_FD, HEADER.size)) == HEADER.size:
        size, wall_s, cpu_s, memory_mb, output_kb, file_mb, processes, open_files = HEADER.unpack(header)
        started = time.monotonic()
        evidence_r, evidence_w = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                job = read_exactly(JOB_FD, size)
                for fd in (0, 1, 2):
                    os.dup2(devnull, fd)
                os.dup2(evidence_w, 3)
                os.closerange(4, 64)
                run_job(job, 3, cpu_s, memory_mb, file_mb, processes, open_files)
            finally:
                os._exit(99)
        os.close(evidence_w)
        process_fd = os.pidfd_open(child)
        end, evidence = drain(evidence_r, process_fd, wall_s, output_kb << 10)
        os.close(evidence_r)
        os.close(process_fd)
        status, cpu_used_s = reap(child)
        answer = ANSWER.pack(end, status, time.monotonic() - started, cpu_used_s, len(evidence))
        write_all(ANSWER_FD, answer + evidence)


if __name__ == "__main__":
    import candidate

    sys.path.pop(0)
    gc.collect()
    gc.freeze()
    gc.disable()
    serve(candidate.run_job)
