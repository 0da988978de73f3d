"""Failures of vLLM, reported as user errors."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def engine_failure_named(action: str) -> Iterator[None]:
    """Turn every failure of the engine in the `with` block into an error of one line.

    Args:
        action: What the engine is asked to do, as in "vLLM cannot ACTION".

    Raises:
        ValueError: The block has raised any exception. Its first line is quoted; vLLM's own messages, which
            name the cause, are above it in the output.

    """
    try:
        yield
    # vLLM and TRL's client raise plain Exception, RuntimeError, AttributeError and others, by version.
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        raise ValueError(
            f"vLLM cannot {action} ({type(error).__name__}: {reason}); its messages above have the cause"
        ) from error
