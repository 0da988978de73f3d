"""Execution of untrusted programs: a program and its tests go in, one verdict per test comes out.

    with Executor() as executor:
        [result] = executor.run([Program(code="def f(x): return x + 1", test_list=("assert f(1) == 2",))])
        assert result.all_passed

Needs the standard library only, and pyseccomp for the system-call filter. Does not know models.
`cocos/executor/README.md` lists what each isolation level prevents and what it does not.

    verdicts.py            programs, verdicts and results
    evidence.py            verdicts from what the driver reports
    limits.py              resource limits of a program
    pool.py                Executor: threads, and results in order
    job_queue.py           which job runs next, and which runs alone
    runner.py              a program on a worker: second runs, failures, new workers
    stdout_tests.py        tests of what a program prints for an input
    worker.py              jobs to a sandbox, answers from it
    calibration.py         limits from the time of reference solutions
    self_test.py           what a new executor must show
    promises.py, doctor.py programs that try to break each promise of an isolation level
    parser.py              ast.parse for several threads
    plans/                 in the trusted process
      plans.py               where a test runs
      needs.py               why it needs the program's process
      setups.py              what driver and program get of the setup
      names.py               what a source binds and reads
      instrumented.py        the test with calls of the driver
    inside/                in the sandbox
      zygote.py              forks a process for each program, and the driver
      processes.py           the end of a job
      driver.py              runs the tests
      operations.py          what a test may ask of objects of the program
      marks.py               why a program could have forged a verdict
      trusted_code.py        what may run in the driver: no file, text or pickle of a program
      stand_ins.py           stand-ins for these objects
      program.py             runs the program, and does what the driver asks for
      scripts.py             runs a whole program anew for each input
      exchange.py            tables of objects and messages, the same at both ends
      requests.py            requests to the program: functions of the test, exceptions
      data_types.py          values that cross as data
      wire_format.py         jobs and answers, also of the trusted process
      confinement.py, landlock.py, scratch.py, fixed_world.py, packages.py
    sandboxes/             the isolation levels, and the system-call filter
"""

from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.stdout_tests import STDOUT_FUNCTION, StdoutTest, read_stdout_test
from cocos.executor.verdicts import (
    ExecutionResult,
    ExecutorError,
    Program,
    Status,
    Value,
    Verdict,
    comparison_text,
    end_text,
)

__all__ = [
    "STDOUT_FUNCTION",
    "ExecutionResult",
    "Executor",
    "ExecutorError",
    "Limits",
    "Program",
    "Status",
    "StdoutTest",
    "Value",
    "Verdict",
    "comparison_text",
    "end_text",
    "read_stdout_test",
]
