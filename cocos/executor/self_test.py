"""The self-test at the start: an executor that cannot tell right from wrong must not run at all."""

import socket
from collections.abc import Callable
from dataclasses import replace

from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status

LOOP_S = 0.3
_CONNECT = """
import socket
def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1)
    except OSError:
        return False
    return True
"""


def self_test(run: Callable[[Program], ExecutionResult], limits: Limits, isolation: str) -> None:
    """Run a right, a wrong, an endless and a network-seeking program.

    Raises:
        ExecutorError: One of them did not end as it must; the message says which and how.

    """
    _expect(
        run, Program("def f(x): return x + 1", ("assert f(1) == 2",)), Status.PASSED, "a right program passes"
    )
    _expect(run, Program("def f(x): return x", ("assert f(1) == 2",)), Status.FAILED, "a wrong program fails")
    brief = replace(limits, wall_s=LOOP_S)
    loop = Program("def f():\n    while True: pass", ("assert f() == 2",), limits=brief)
    _expect(run, loop, Status.TIMEOUT, "an endless program times out")
    if isolation == "rlimits":
        return  # this level promises nothing about the network
    with socket.create_server(("127.0.0.1", 0)) as server:
        program = Program(_CONNECT, (f"assert connects({server.getsockname()[1]}) == False",))
        _expect(run, program, Status.PASSED, "the network is out of reach")


def _expect(run: Callable[[Program], ExecutionResult], program: Program, status: Status, claim: str) -> None:
    result = run(program)
    if result.is_infra_failure or result.verdicts[0].status is not status:
        found = result.infra_error or f"{result.verdicts[0].status}: {result.verdicts[0].message}"
        raise ExecutorError(
            f"self-test: not so that {claim} at isolation level {result.isolation} ({found}); "
            "`python -m cocos.executor doctor` shows what this machine offers"
        )
