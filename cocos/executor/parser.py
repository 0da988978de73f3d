"""Python parser that is safe to call from several threads and prints no warnings.

CPython 3.11 keeps the recursion depth of the tree under construction in a field that all threads share
(cpython issue 106905). Two threads that parse at the same time can fail with a SystemError, so a lock lets
only one thread parse at a time.
"""

import ast
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Reentrant: garbage collection during a parse may run a finalizer that parses on the same thread.
_LOCK = threading.RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Let only this thread parse and compile, without warnings."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def parse(source: str) -> ast.Module:
    """Parse a program and suppress its warnings, such as the one for an invalid escape sequence.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: As `ast.parse`.

    """
    with quiet():
        return ast.parse(source)
