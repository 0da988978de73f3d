"""What all visitors share: options, token, executor, and the attempts of each visitor."""

import json
import secrets
import threading
import time
from functools import cache

from cocos.config.page_options import PageOptions
from cocos.config.shared_options import open_executor
from cocos.evaluation.live_attempts import LiveAttempts

IDLE_S = 600.0  # a visitor who has been away for longer makes room for another one


class Shared:
    """Options, executor and visitors of one server.

    Attributes:
        token: What visitors have to type if other machines can reach the page; "": nothing.

    """

    def __init__(self, options: PageOptions) -> None:
        self.options, self.executor = options, open_executor(options)
        self.token = secrets.token_urlsafe(16) if options.allow_remote else ""
        self._visits: dict[str, tuple[float, list[LiveAttempts]]] = {}  # when last seen, attempts
        self._lock = threading.Lock()

    def attempts_of(self, visitor: str) -> list[LiveAttempts] | None:
        """Return the list of a visitor's attempts, a new one for a new visitor; None if the page is full."""
        now = time.monotonic()
        with self._lock:
            if visitor not in self._visits and len(self._visits) >= self.options.max_visitors:
                idle = min(self._visits, key=lambda name: self._visits[name][0])
                if now - self._visits[idle][0] < IDLE_S:
                    return None
                del self._visits[idle]
            _, attempts = self._visits.get(visitor, (now, []))
            self._visits[visitor] = now, attempts
            return attempts


@cache
def shared(options: str) -> Shared:
    """Return what the visitors of this process share; the first call starts the executor."""
    return Shared(PageOptions(**json.loads(options)))
