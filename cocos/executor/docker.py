"""Level `docker`: the worker in a long-lived container."""

from cocos.executor.limits import Limits
from cocos.executor.worker import Sandbox


def why_missing() -> str | None:
    """Why this machine does not offer the level; None where it does."""
    return "not yet"


def launch(limits: Limits) -> Sandbox:
    """Start a worker."""
    raise NotImplementedError
