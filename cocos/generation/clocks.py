"""Seconds of named parts of a run. Standard library only."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Clocks:
    """Seconds by part; those of a part inside another one are its own alone.

    No clock waits for a GPU, so there a part has the seconds in which it launches its kernels or waits for
    them: sampling waits where it reads the sampled ids, the update where it reads a value for the log.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add the seconds of the `with` block, or of calls of the decorated function, to a part."""
        start, before_s = time.perf_counter(), sum(self.seconds.values())
        try:
            yield
        finally:
            inner_s = sum(self.seconds.values()) - before_s
            self.seconds[name] += time.perf_counter() - start - inner_s
