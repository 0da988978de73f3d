"""The batches of tests of a job on their way to the candidate, one after another.

`judging/batches.py` says which tests a candidate may know at the same time. A batch is handed over only after
the evidence up to then has been copied where the candidate cannot change it. The trusted process ignores
evidence that came too late.

The kernel copies all bytes. None of them enters the zygote's memory, which later children inherit.
"""

import _socket  # not `socket`, which imports much that each fork would have to copy
import os

from wire_format import SIZE


class Sink:
    """The evidence of the driver on its way from a socket to a memory file.

    The driver has no file: a test that opens a path which the program has linked to `/proc/self/fd` could
    read it, or write rows of its own to it.
    """

    def __init__(self) -> None:
        self.source, self.driver_end = _socket.socketpair()
        self.source.setblocking(False)
        self.file = os.memfd_create("evidence")
        self.is_open = True
        self._pipe_r, self._pipe_w = os.pipe()  # `splice` needs one

    def drain(self) -> int:
        """Move what has come; return the size of all."""
        while self.is_open:
            try:
                moved = os.splice(self.source.fileno(), self._pipe_w, 1 << 16)
            except BlockingIOError:
                break
            self.is_open = moved > 0
            while moved:
                moved -= os.splice(self._pipe_r, self.file, moved)
        return os.fstat(self.file).st_size

    def close(self) -> None:
        """Close all but the file."""
        self.source.close()
        os.close(self._pipe_r)
        os.close(self._pipe_w)


class Feed:
    """The batches after the first, and the evidence that is final.

    Args:
        jobs: Pipe to read the tests from.
        sizes: Bytes of each.
        evidence: Memory file that takes the candidate's evidence.
        sink: Evidence of the driver, or None.

    """

    def __init__(self, jobs: int, sizes: list[int], evidence: int, sink: Sink | None) -> None:
        self.commits: list[tuple[int, int]] = []
        self.is_open = True  # the candidate may ask
        self.tests, self.final = os.memfd_create("tests"), os.memfd_create("final")
        self.asks, self.candidate_end = _socket.socketpair()
        self._jobs, self._sizes, self._evidence, self._sink = jobs, sizes, evidence, sink
        self._size, self._num_moved, self._num_final = sum(sizes), 0, 0

    def hand_over(self) -> None:
        """Make the evidence final, and let the candidate have the next batch."""
        try:
            if self.asks.recv(1) and self._sizes:
                self.commits.append((self.finish(), self._sink.drain() if self._sink else 0))
                size = self._sizes.pop(0)
                self._move(self.tests, size)
                self.asks.send(SIZE.pack(size))
                return
        # The candidate can close the socket, and set O_APPEND on the file, which `splice` then refuses.
        except OSError:
            pass
        self.is_open = False
        self.asks.close()  # a candidate that waits for a batch ends

    def finish(self) -> int:
        """Make the evidence that was written since the last time final; return the size of all."""
        while copied := os.sendfile(self.final, self._evidence, self._num_final, 1 << 30):
            self._num_final += copied
        return self._num_final

    def close(self, devnull: int) -> None:
        """Take the other batches from the pipe, and remove the files but the final evidence."""
        self._move(devnull, self._size - self._num_moved)
        for fd in (self.tests, self._evidence):
            os.close(fd)
        self.asks.close()

    def _move(self, target: int, size: int) -> None:
        end = self._num_moved + size
        while self._num_moved < end:
            # Not at the offset of the tests' file, which the candidate has, too.
            offset = self._num_moved if target == self.tests else None
            moved = os.splice(self._jobs, target, end - self._num_moved, offset_dst=offset)
            if not moved:
                raise BrokenPipeError("the trusted process has ended while it sent a job")
            self._num_moved += moved
