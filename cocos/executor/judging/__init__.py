"""Plans for tests, and verdicts from the evidence.

Everything here runs in the trusted process, which is the process that created the `Executor`. The candidate
is the program under test. Example:

    assert sorted(f([2, 1])) == [1, 2]

1. `plans` finds that only the candidate defines `f`, so the test is driven. `instrumented` lets it note what
   it compares.
2. The driver (`inside/driver.py`) runs the test as plain Python. The candidate's process receives one
   request, the call of `f` with [2, 1], and answers with a list. It never receives `sorted` or [1, 2].
3. The driver writes the evidence `[0, 1.2e-05, ["passed"]]`: test 0 took 12 microseconds and passed.
4. `evidence` reads it and returns the verdict.

The few tests of `in_child_reasons` run in the candidate's process, and their verdicts are marked. If
something of a driven test cannot leave the driver, the program runs again with that test there (`runner`).
"""
