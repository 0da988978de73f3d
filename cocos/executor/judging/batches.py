"""Batches of tests: which of them the candidate may know at the same time.

A candidate that knew a later test could answer an earlier one with what it reads there: `encode('attack')`
with the argument of `decode('dwwdfn')`. Such tests are handed over one after another, each after the evidence
of the former ones is final. The others go together, because each hand-over costs two switches of processes.
"""

import ast
from collections.abc import Sequence
from functools import lru_cache

from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.plans import InChild, Plan
from cocos.executor.parser import parse


def first_tests(plans: Sequence[Plan], tests: Sequence[str], num_visible: int) -> list[int]:
    """Return the number of the first test of each batch.

    Args:
        plans: The plan of each test.
        tests: Their sources.
        num_visible: Number of the first hidden test, whose inputs no message about a visible one may contain.

    """
    firsts, secrets = [0], set[str]()
    for number, (plan, test) in enumerate(zip(plans, tests, strict=True)):
        source = _shown(plan)
        shown = _constants(source)
        if number and (
            number == num_visible or shown & secrets or any(map(source.__contains__, _texts(secrets)))
        ):
            firsts.append(number)
            secrets = set()
        secrets |= _constants(test) - shown
    return firsts


def _shown(plan: Plan) -> str:
    """Return what the candidate receives of a test before it runs: of a judged one nothing."""
    match plan:
        case Split(atoms=atoms):
            return f"({','.join(atoms)})"
        case InChild(source=source):
            return source
    return ""


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
