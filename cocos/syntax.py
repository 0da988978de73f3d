"""Python text -> syntax tree, from whatever thread and without a word on the terminal.

CPython 3.11 counts the depth of a growing tree where all threads share it (cpython #106905): two threads
parsing at once can end in a SystemError. So one thread parses at a time.
"""

import ast
import threading
import warnings

_LOCK = threading.RLock()


def parse(source: str) -> ast.Module:
    """The tree of a program; odd literals of a data set or a model warn nobody.

    Raises:
        SyntaxError, ValueError, MemoryError, RecursionError: As `ast.parse`.

    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)
