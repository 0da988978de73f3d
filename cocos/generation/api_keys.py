"""API keys: loading, rotation and redaction. Errors name a key by its number, never by its text."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dotenv import dotenv_values

ENV_FILE = ".env"


def read_keys(variable: str) -> list[str]:
    """Return the comma-separated API keys in an environment variable.

    If the variable is unset or empty, it is looked up in the file `.env` of the working directory.
    """
    from_file = dotenv_values(ENV_FILE) if Path(ENV_FILE).is_file() else {}
    text = os.environ.get(variable) or from_file.get(variable) or ""
    return [key.strip() for key in text.split(",") if key.strip()]


class KeyRing:
    """API keys in rotation, with a cool-down per key. Thread-safe.

    Args:
        keys: One or more API keys.
        clock: Monotonic time in seconds.

    """

    def __init__(self, keys: Sequence[str], clock: Callable[[], float] = time.monotonic):
        self.keys = list(keys)
        self.clock = clock
        self._lock = threading.Lock()
        self._available_at = [0.0 for _ in keys]
        self._num_uses = [0 for _ in keys]

    def acquire(self) -> int:
        """Return the index of the least used key that is available; block while every key cools down."""
        while True:
            with self._lock:
                now = self.clock()
                index = min(
                    range(len(self.keys)), key=lambda i: (max(self._available_at[i], now), self._num_uses[i])
                )
                wait_s = self._available_at[index] - now
                if wait_s <= 0:
                    self._num_uses[index] += 1
                    return index
            # Sleep without the lock. Another thread may extend the cool-down meanwhile, so check again.
            time.sleep(wait_s)

    def cool_down(self, index: int, seconds: float) -> None:
        """Do not hand out a key for the next `seconds`. A longer cool-down in progress is not shortened."""
        with self._lock:
            self._available_at[index] = max(self._available_at[index], self.clock() + seconds)

    def redact(self, text: str) -> str:
        """Return the text with every key replaced by its number, as in `[key 1]`."""
        for number, key in enumerate(self.keys, start=1):
            text = text.replace(key, f"[key {number}]")
        return text
