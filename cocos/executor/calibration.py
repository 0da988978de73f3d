"""Time limits from reference solutions, so that the speed of the machine does not change the score.

Like EvalPlus (arXiv 2305.01210), which allows a program a multiple of the time that the reference takes on
the same machine. A limit covers all tests of a problem: the time of the reference is the sum over them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.verdicts import Program

FLOOR_S = 1.0  # a program needs this long on a busy machine, however fast the reference is
WAITING = 1.5  # a program that waits may take as many times the whole time of the reference


def calibrate(
    executor: Executor, references: Sequence[Program], factor: float, floor_s: float = FLOOR_S
) -> list[Limits]:
    """Run reference solutions and return the limits of the programs that are compared with each.

    The wall limit is `factor` times the CPU time of the reference, at least `floor_s`, and at most the
    wall limit of the executor. It is never shorter than 1.5 times what the reference itself took, which may
    have waited instead of computed.

    Args:
        executor: Executor that will run the programs. Its limits apply to the references, and to the programs
            of a problem whose reference fails.
        references: Reference solution and tests of each problem.
        factor: Multiple of the reference's CPU time, above 0.
        floor_s: Shortest limit, seconds.

    Returns:
        One `Limits` per reference, in order.

    Raises:
        ExecutorError: The executor is closed, or had too many infrastructure failures.

    """
    if not factor > 0:
        raise ValueError(f"factor is {factor}; give a number above 0")
    most = executor.limits
    limits = []
    for result in executor.run(references):
        if not result.all_passed:
            limits.append(most)
            continue
        wall_s = min(most.wall_s, max(floor_s, factor * result.cpu_s, WAITING * result.duration_s))
        limits.append(replace(most, wall_s=wall_s, cpu_s=min(most.cpu_s, math.ceil(wall_s))))
    return limits
