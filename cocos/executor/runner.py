"""Execution of one program after the other on a worker: second runs, failures and new workers.

Knows when a program runs again and who is to blame for a failure. Does not know queues or threads
(`pool.py`), or where a test runs (`plans/`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from cocos.executor.evidence import Answer, read_result
from cocos.executor.inside.wire_format import TIMED_OUT
from cocos.executor.limits import Limits
from cocos.executor.plans.plans import Plan, in_child, plan_tests, split_setup, together
from cocos.executor.plans.setups import Setups
from cocos.executor.sandboxes.sandbox import Sandbox
from cocos.executor.self_test import RIGHT
from cocos.executor.stdout_tests import StdoutTest, batch_of, judge, read_stdout_tests
from cocos.executor.verdicts import ExecutionResult, Program, Status, Verdict
from cocos.executor.worker import Worker, WorkerDied, WorkerSpent

# A worker may fail through no fault of its program, so the program runs again on a new worker. This many
# failures are an infrastructure failure. But if the worker died each time while the program ran, and a right
# program then passes, the program is the cause: its status is ERROR.
MAX_FAILURES = 2
# A test that has moved may show what another one gets, so that it has to move, too.
MAX_RERUNS = 3
# A program that timed out was starved if its processes waited for a processor for more than this share of the
# wall limit. A program that slept, or waited for itself, is not starved.
STARVED_SHARE = 0.1


@dataclass(frozen=True)
class Attempt:
    """Outcome of one attempt to execute a program.

    Attributes:
        result: The result.
        is_starved: The program timed out, and other processes had the processors. The timeout may be the
            machine's fault.
        reruns: Further runs because tests were undecided.
        failures: Failures of the worker.
        busy_s: Wall time inside the workers, of all runs.
        waited_s: Seconds of the last run that its processes waited for a processor.

    """

    result: ExecutionResult
    is_starved: bool = False
    reruns: int = 0
    failures: int = 0
    busy_s: float = 0.0
    waited_s: float = 0.0


class Runner:
    """A worker, replaced when it fails. Not thread-safe: each thread of the pool has its own.

    Args:
        launch: Starts a sandbox.
        limits_for: Returns the limits of a program.
        isolation: Name of the isolation level, for the results.

    """

    def __init__(
        self, launch: Callable[[], Sandbox], limits_for: Callable[[Program], Limits], isolation: str
    ) -> None:
        self._worker: Worker | None = None
        self._launch = launch
        self._limits_for = limits_for
        self._isolation = isolation

    def run(self, program: Program, more_s: float = 0.0) -> Attempt:
        """Execute a program, on a new worker if one fails. Raises nothing: a failure is in the result.

        Args:
            program: The program.
            more_s: Seconds to add to its wall limit, which its first attempt spent waiting for a processor.

        """
        if tests := read_stdout_tests(program):
            return self._run_script(program, tests, more_s)
        return self._run_again(program, (), more_s)

    def _run_again(self, program: Program, inputs: tuple[str, ...], more_s: float) -> Attempt:
        """Execute a program, or with inputs a script, on a new worker if one fails."""
        errors: list[Exception] = []
        while len(errors) < MAX_FAILURES:
            outcome = self._try(program, inputs, more_s)
            if isinstance(outcome, Attempt):
                # A program that has already cost a worker gets no second attempt for a timeout.
                is_starved = outcome.is_starved and not errors
                return replace(outcome, is_starved=is_starved, failures=len(errors)) if errors else outcome
            errors.append(outcome)
        reason = "; then ".join(dict.fromkeys(str(error) or repr(error) for error in errors))
        result = ExecutionResult((), reason, self._isolation)
        if all(isinstance(error, WorkerDied) for error in errors):
            probe = self._try(RIGHT)
            if isinstance(probe, Attempt) and probe.result.all_passed:
                text = f"the program ended its sandbox: {reason}"[:300]
                cause = Verdict(Status.ERROR, "WorkerKilled", text, ended_at="")
                result = ExecutionResult((cause,) * len(program.test_list), None, self._isolation)
        return Attempt(result, failures=len(errors))

    def _run_script(self, program: Program, tests: list[StdoutTest], more_s: float) -> Attempt:
        """Run a program anew for each test, until one reaches the limit of time."""
        program = replace(program, limits=self._limits_for(program))
        attempts: list[Attempt] = []
        verdicts: list[Verdict] = []
        while len(verdicts) < len(tests):
            batch = batch_of(tests[len(verdicts) :])
            sources = program.test_list[len(verdicts) :][: len(batch)]
            inputs = tuple(test.input for test in batch)
            attempts.append(self._run_again(replace(program, test_list=sources), inputs, more_s))
            if (last := attempts[-1].result).is_infra_failure:
                verdicts = []
                break
            found = [verdict for verdict in last.verdicts if verdict.status is not Status.NOT_RUN]
            verdicts += [judge(verdict, test.output) for verdict, test in zip(found, batch, strict=False)]
            if found[-1].status is Status.TIMEOUT:
                verdicts += [Verdict(Status.NOT_RUN)] * (len(tests) - len(verdicts))
        results = [attempt.result for attempt in attempts]
        seconds = sum(result.duration_s for result in results), sum(result.cpu_s for result in results)
        return replace(
            attempts[-1],
            result=ExecutionResult(tuple(verdicts), last.infra_error, self._isolation, *seconds),
            failures=sum(attempt.failures for attempt in attempts),
            busy_s=sum(attempt.busy_s for attempt in attempts),
        )

    def close(self) -> None:
        """End the worker. Safe to call twice; the next program starts a new one."""
        if self._worker:
            self._worker.kill()
            self._worker = None

    def _try(
        self, program: Program, inputs: tuple[str, ...] = (), more_s: float = 0.0
    ) -> Attempt | Exception:
        """Execute a program on this worker; return the executor's own error if that fails.

        If tests turn out to need the program's process, the whole program runs again, with these tests there.
        """
        try:
            limits = self._limits_for(program)
            if more_s:
                limits = replace(limits, wall_s=limits.wall_s + more_s)
            plans = tuple(Plan(text, "script") for text in inputs) or plan_tests(program)
            setups, answer = self._run(program, plans, limits)
            result, undecided = read_result(plans, setups, answer, limits, self._isolation)
            busy_s, reruns = answer.header.wall_s, 0
            while undecided and reruns < MAX_RERUNS:
                tests = program.test_list
                moved = [
                    in_child(plan, tests[number], undecided[number]) if number in undecided else plan
                    for number, plan in enumerate(plans)
                ]
                plans = together(moved, tests)
                # In the same sandbox, numbers of processes and inodes would tell of the first run.
                self.close()
                setups, answer = self._run(program, plans, limits)
                result, undecided = read_result(plans, setups, answer, limits, self._isolation)
                busy_s += answer.header.wall_s
                reruns += 1
            end = answer.header
            # Threads of one program that wait for each other's processor time do not starve it.
            is_alone = bool(inputs) or end.cpu_s + end.waited_s <= limits.wall_s * (1 + STARVED_SHARE)
            is_starved = end.end == TIMED_OUT and end.waited_s > STARVED_SHARE * limits.wall_s
            return Attempt(result, is_starved and is_alone, reruns, 0, busy_s, end.waited_s)
        # Whatever goes wrong, the caller must get a result. Anything else than a death of the worker is an
        # error of ours or of the machine, such as a sandbox that cannot be started.
        except Exception as error:
            self.close()
            return error

    def _run(self, program: Program, plans: tuple[Plan, ...], limits: Limits) -> tuple[Setups, Answer]:
        setups = split_setup(program, plans)
        if self._worker:
            try:
                return setups, self._worker.run(program, plans, setups, limits)
            except WorkerSpent:
                self.close()
        self._worker = Worker(self._launch)
        return setups, self._worker.run(program, plans, setups, limits)
