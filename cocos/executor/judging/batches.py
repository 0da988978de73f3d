"""The tests of a job as its processes get them, in batches that the candidate may know at the same time.

A candidate that knew a later test could answer an earlier one with what it reads there: `encode('attack')`
with the argument of `decode('dwwdfn')`. Such tests are handed over one after another, each after the evidence
of the former ones is final. The others go together, because each hand-over costs two switches of processes.
"""

import ast
import itertools
import marshal
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cocos.executor.inside.wire_format import MARSHAL_VERSION
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.plans import Driven, InChild, Plan, candidate_setup
from cocos.executor.parser import parse


class Tests(NamedTuple):
    """The tests of a job, which `inside/candidate.py` and `inside/driver.py` describe.

    The candidate can read its setup, and each batch from when it gets it. So these must not contain what a
    test expects. The docstring of `judging` explains atoms with an example.

    Attributes:
        firsts: Number of the first test of each batch.
        batches: The tests as the candidate gets them.
        setup: The setup that it runs.
        driven: The driver's tests.

    """

    firsts: tuple[int, ...]
    batches: tuple[bytes, ...]
    setup: str
    driven: list[dict]


@lru_cache(maxsize=1 << 11)
def encode_tests(
    plans: tuple[Plan, ...], tests: tuple[str, ...], setup: str, used: frozenset[str], num_visible: int
) -> Tests:
    """Return the tests of a job.

    Args:
        plans: The plan of each test.
        tests: Their sources.
        setup: The problem's setup.
        used: Names of it that the candidate's code uses.
        num_visible: Number of the first hidden test, whose inputs no message about a visible one may contain.

    """
    shown_setup = candidate_setup(setup, plans, used) if setup else ""
    hidden = _constants(setup) - _constants(shown_setup) if shown_setup != setup else frozenset[str]()
    firsts = _first_tests(plans, tests, hidden, num_visible)
    batches = tuple(_encode_batch(plans[a:b]) for a, b in itertools.pairwise((*firsts, None)))
    driven = [
        {"number": number, "source": plan.source, "setup": plan.setup, "remote": plan.remote}
        for number, plan in enumerate(plans)
        if isinstance(plan, Driven)
    ]
    return Tests(tuple(firsts), batches, shown_setup, driven)


def _encode_batch(plans: Sequence[Plan]) -> bytes:
    atoms = [plan.source for plan in plans if isinstance(plan, Split)]
    numbers = itertools.count()
    tests = [
        next(numbers) if isinstance(plan, Split) else plan.source if isinstance(plan, InChild) else None
        for plan in plans
    ]
    # The child decodes marshal several times faster than JSON, and this side wrote the job. What comes back
    # from a child is never decoded with marshal, which is unsafe on untrusted data.
    return marshal.dumps((f"({''.join(f'{source},' for source in atoms)})", tests), MARSHAL_VERSION)


def _first_tests(
    plans: Sequence[Plan], tests: Sequence[str], hidden: frozenset[str], num_visible: int
) -> list[int]:
    """Return the number of the first test of each batch.

    `hidden` are constants of the setup that only the driver has.
    """
    firsts, secrets = [0], set[str]()
    for number, (plan, test) in enumerate(zip(plans, tests, strict=True)):
        source = "" if isinstance(plan, Driven) else plan.source  # what the candidate receives before it runs
        shown = _constants(source)
        if number and (
            number == num_visible or shown & secrets or any(map(source.__contains__, _texts(secrets)))
        ):
            firsts.append(number)
            secrets = set()
        secrets |= _constants(test) - shown
        if isinstance(plan, Driven) and plan.private:
            secrets |= hidden
    return firsts


def _texts(constants: set[str]) -> list[str]:
    """Return the strings among constants, without quotes; they could be a part of another one."""
    return [text[1:-1] for text in constants if text[0] in "'\"" and len(text) > len("''") + 2]


@lru_cache(maxsize=1 << 14)
def _constants(source: str) -> frozenset[str]:
    """Return the constants in a source that one cannot guess."""
    try:
        nodes = ast.walk(parse(source))
        constants = (node.value for node in nodes if isinstance(node, ast.Constant))
        return frozenset(repr(value) for value in constants if value not in (None, True, False, ...))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset([source])
