"""Self-test of a new executor: it must give right verdicts and keep programs off the network."""

import socket
from collections.abc import Callable
from dataclasses import replace

from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program, Status

RIGHT = Program("def f(x): return x + 1", ("assert f(1) == 2",))
ENDLESS_WALL_S = 0.3  # limit of the endless program: enough to start it, without delaying the executor
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
    """Run a right program, a wrong one, an endless one and one that tries to connect to this machine.

    Raises:
        ExecutorError: A program did not end as it must.

    """
    _expect(run, RIGHT, Status.PASSED, "a right program passes")
    wrong = Program("def f(x): return x", ("assert f(1) == 2",))
    _expect(run, wrong, Status.FAILED, "a wrong program fails")
    short = replace(limits, wall_s=ENDLESS_WALL_S)
    endless = Program("def f():\n    while True: pass", ("assert f() == 2",), limits=short)
    _expect(run, endless, Status.TIMEOUT, "an endless program times out")
    if isolation == "rlimits":
        return  # this level leaves the network open
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connecting = Program(_CONNECT, (f"assert connects({port}) == False",))
        _expect(run, connecting, Status.PASSED, "the network is out of reach")


def _expect(run: Callable[[Program], ExecutionResult], program: Program, status: Status, claim: str) -> None:
    result = run(program)
    if result.is_infra_failure or result.verdicts[0].status is not status:
        actual = result.infra_error or f"{result.verdicts[0].status}: {result.verdicts[0].message}"
        raise ExecutorError(
            f"self-test at isolation level {result.isolation}: expected that {claim}, but got {actual}; "
            "`python -m cocos.executor doctor` shows which levels work on this machine"
        )
