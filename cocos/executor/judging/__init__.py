"""Plans for judging tests, and verdicts from the evidence.

Everything here runs in the trusted process, which is the process that created the `Executor`. The candidate
is the program under test. `plans.plan_test` decides which process evaluates which part of a test. Example:

    assert sorted(f([2, 1])) == [1, 2]

1. `assert_split` splits the assert. The candidate's part is the atom `sorted(f([2, 1]))`. The trusted
   process keeps the condition `_0 == [1, 2]`, where `_0` stands for the value of the first atom.
2. `worker` sends the source of the atom, `(lambda: sorted(f([2, 1]))),`, but not the condition.
3. The candidate's process evaluates the atom and writes the evidence `[0, 1.2e-05, [["v", ["l", 1, 2]]]]`.
   It says that test 0 took 12 microseconds and that its only atom has the value [1, 2].
4. `conditions` decodes the value and evaluates the condition on it, and `evidence` returns the verdict. A
   candidate that controls its whole process can choose the value that it sends, but it never receives the
   condition.

A test that cannot be split is driven by a process of its own (`inside/driver.py`), and only the few tests of
`in_child_reasons` run beside the candidate. If the value of a split test is not plain, the program runs
again with that test driven (`runner`).
"""
