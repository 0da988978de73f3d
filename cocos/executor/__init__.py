"""Execution of untrusted programs: a program and its tests go in, one verdict per test comes out.

    with Executor() as executor:
        [result] = executor.run([Program(code="def f(x): return x + 1", test_list=("assert f(1) == 2",))])
        assert result.all_passed

Needs the standard library only, and pyseccomp for the system-call filter. Does not know models.
`cocos/executor/README.md` lists what each isolation level prevents and what it does not.
"""

from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.verdicts import (
    ExecutionResult,
    ExecutorError,
    Program,
    Status,
    Value,
    Verdict,
    comparison_text,
)

__all__ = [
    "ExecutionResult",
    "Executor",
    "ExecutorError",
    "Limits",
    "Program",
    "Status",
    "Value",
    "Verdict",
    "comparison_text",
]
