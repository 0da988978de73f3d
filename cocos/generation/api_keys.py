"""API keys: where they come from, in whose turn they are used, and that no text tells them.

A key is known by its number wherever something is said about it.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dotenv import dotenv_values

ENV_FILE = ".env"


def read_keys(variable: str) -> list[str]:
    """The keys in an environment variable, or of that name in a file `.env` here; several are separated by
    commas. None where there is no such variable.
    """
    from_file = dotenv_values(ENV_FILE) if Path(ENV_FILE).is_file() else {}
    text = os.environ.get(variable) or from_file.get(variable) or ""
    return [key.strip() for key in text.split(",") if key.strip()]


class KeyRing:
    """Keys in rotation; one that was told to wait rests meanwhile. For many threads.

    Args:
        keys: One or more.
        clock: Seconds, as time.monotonic.

    """

    def __init__(self, keys: Sequence[str], clock: Callable[[], float] = time.monotonic):
        self.keys = list(keys)
        self.clock = clock
        self._lock = threading.Lock()
        self._free_at = [0.0 for _ in keys]
        self._uses = [0 for _ in keys]

    def take(self) -> int:
        """Number of the key to use now: of those that do not rest, the one that was used least. Waits where
        all rest.
        """
        while True:
            with self._lock:
                now = self.clock()
                number = min(range(len(self.keys)), key=lambda n: (max(self._free_at[n], now), self._uses[n]))
                wait_s = self._free_at[number] - now
                if wait_s <= 0:
                    self._uses[number] += 1
                    return number
            time.sleep(wait_s)

    def rest(self, number: int, seconds: float) -> None:
        """Leave a key alone for that long."""
        with self._lock:
            self._free_at[number] = max(self._free_at[number], self.clock() + seconds)

    def hidden(self, text: str) -> str:
        """A text without any key that stands in it."""
        for number, key in enumerate(self.keys, start=1):
            text = text.replace(key, f"[key {number}]")
        return text
