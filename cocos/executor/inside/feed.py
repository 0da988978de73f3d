"""The batches of tests of a job on their way to the candidate, one after another.

`judging/batches.py` says which tests a candidate may know at the same time. A batch is handed over only after
the evidence up to then has been copied where the candidate cannot change it. The trusted process ignores
evidence that came too late.

The kernel copies all bytes. None of them enters the zygote's memory, which later children inherit.
"""

import _socket  # not `socket`, which imports much that each fork would have to copy
import os
from contextlib import suppress

from wire_format import SIZE


class Feed:
    """The batches after the first, and the evidence that is final.

    Args:
        jobs: Pipe to read the tests from.
        sizes: Bytes of each.
        evidence: Memory file that takes the candidate's evidence.

    """

    def __init__(self, jobs: int, sizes: list[int], evidence: int) -> None:
        self.commits: list[int] = []
        self.is_open = True  # the candidate may ask
        self.tests, self.final = os.memfd_create("tests"), os.memfd_create("final")
        self.asks, self.candidate_end = _socket.socketpair()
        self._jobs, self._sizes, self._evidence = jobs, sizes, evidence
        self._num_moved = self._num_final = 0

    def hand_over(self) -> None:
        """Make the evidence final, and let the candidate have the next batch."""
        if not (self.asks.recv(1) and self._sizes):
            self.is_open = False
            return
        self.commits.append(self.finish())
        size = self._sizes.pop(0)
        # Not at the offset of the file, which the candidate has, too.
        self._num_moved += self._move(self.tests, size, self._num_moved)
        with suppress(OSError):  # the candidate has ended
            self.asks.send(SIZE.pack(size))

    def finish(self) -> int:
        """Make the evidence that was written since the last time final; return the size of all."""
        while copied := os.sendfile(self.final, self._evidence, self._num_final, 1 << 30):
            self._num_final += copied
        return self._num_final

    def close(self, devnull: int) -> None:
        """Take the other batches from the pipe, and remove the files but the final evidence."""
        if self._sizes:
            self._move(devnull, sum(self._sizes))
        for fd in (self.tests, self._evidence):
            os.close(fd)
        self.asks.close()

    def _move(self, target: int, size: int, offset: int | None = None) -> int:
        moved = 0
        while moved < size:
            start = None if offset is None else offset + moved
            moved += os.splice(self._jobs, target, size - moved, offset_dst=start)
        return moved
