"""Untrusted code in, one verdict per test out.

    with Executor() as executor:
        [result] = executor.run([Program(code="def f(x): return x + 1", test_list=("assert f(1) == 2",))])
        assert result.all_passed

Standard library only; knows nothing of models. `docs/executor.md` says what each isolation level stops and
does not stop.
"""

from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status, Verdict

__all__ = ["ExecutionResult", "Executor", "ExecutorError", "Limits", "Program", "Status", "Verdict"]
