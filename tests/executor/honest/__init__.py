"""Honest programs of unusual shapes, with tests that plain Python passes. One module per class of shapes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Honest:
    """A right program and its tests.

    Attributes:
        name: What is unusual about it.
        code: The program.
        tests: Its tests; each must pass.
        setup: Source between the program and the tests.
        is_marked: The verdicts may be marked in_child, because the program's own code decides or the test can
            only run in the program's process.
        stdin: Text on standard input.

    """

    name: str
    code: str
    tests: tuple[str, ...]
    setup: str = ""
    is_marked: bool = False
    stdin: str = ""


def honest(
    name: str, code: str, *tests: str, setup: str = "", marked: bool = False, stdin: str = ""
) -> Honest:
    return Honest(name, code, tests, setup, marked, stdin)
