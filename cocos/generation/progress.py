"""Progress within a batch for a person who waits, such as `turn 2 of 3, 7 of 12, 310 tokens`.

Evaluation, Boost data and training show it. A thread draws it, so that a bar's clock moves during a long
forward pass, too. Without a terminal it is drawn rarely, so that it does not flood a log file.
"""

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from cocos.generation.interface import Progress

TERMINAL_S, FILE_S = 1.0, 60.0  # seconds between two drawings


class BatchProgress(Progress):
    """Progress that is drawn at intervals inside a `with` block.

    Args:
        draw: Called with the progress as text, and at the end with "".
        every_s: Seconds between two calls.

    """

    def __init__(self, draw: Callable[[str], None], every_s: float) -> None:
        self._draw, self._every_s = draw, every_s
        self._lock, self._has_ended = threading.Lock(), threading.Event()
        self._turn, self._num_rows, self._num_ended, self._num_tokens = "", 0, 0, 0
        self.num_answers = 0  # completions that have ended since the batch began

    def __enter__(self) -> Self:
        self._has_ended.clear()
        self._turn, self._num_tokens, self.num_answers = "", 0, 0
        self._thread = threading.Thread(target=self._draw_regularly, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._thread.join()
        self._draw("")

    def start(self, turn: str, num_rows: int) -> None:
        with self._lock:
            self._turn, self._num_rows, self._num_ended = turn, num_rows, 0

    def add(self, num_tokens: int, num_ended: int) -> None:
        with self._lock:
            self._num_tokens += num_tokens
            self._num_ended += num_ended
            self.num_answers += num_ended

    def text(self) -> str:
        """Return the progress; "" before the first turn."""
        with self._lock:
            tokens = f", {self._num_tokens} tokens" if self._num_tokens else ""
            return f"{self._turn}, {self._num_ended} of {self._num_rows}{tokens}" if self._turn else ""

    def _draw_regularly(self) -> None:
        while not self._has_ended.wait(self._every_s):
            self._draw(self.text())


class BatchBar(BatchProgress):
    """tqdm bar that moves with every answer of the batch that is being sampled.

    Args:
        batch_size: Answers per batch; more of them, such as resampled ones, do not move the bar.
        total: Answers of all batches.
        bar_options: Further options of tqdm.

    """

    def __init__(self, batch_size: int, total: int, **bar_options: Any) -> None:
        super().__init__(self._show, TERMINAL_S if sys.stderr.isatty() else FILE_S)
        self.bar = tqdm(total=total, **bar_options)
        self._num_done, self._batch_size, self._total = int(self.bar.n), batch_size, total
        self.numbers = ""  # shown before the progress

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.bar.close()  # draws it for the last time

    def finish_batch(self, num_answers: int) -> None:
        """Move the bar to the end of a batch."""
        with self._lock:
            self._num_done += num_answers
            self.bar.n, self.num_answers = self._num_done, 0

    def _show(self, text: str) -> None:
        with self._lock:
            moved = min(self.num_answers, self._batch_size)
            self.bar.n = min(self._num_done + moved, self._total)
        words = ", ".join(filter(None, (self.numbers, text)))
        self.bar.set_postfix_str(words, refresh=not self._has_ended.is_set())
