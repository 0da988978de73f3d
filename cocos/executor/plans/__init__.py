"""Plans for tests: in which process they run, and what each process gets.

Everything here runs in the trusted process, which is the process that created the `Executor`. The candidate
is the program under test. Example:

    assert sorted(f([2, 1])) == [1, 2]

1. `plans` decides that a driver can run the test: nothing in it needs the candidate's process but `f`.
2. `instrumented` puts a call in, so that the driver can say what a false assert compares.
3. The driver (`inside/driver.py`) runs it as plain Python. It asks the candidate's process for `f([2, 1])`,
   and gets a list. `sorted` and `==` are the driver's own, and [1, 2] never leaves it.
4. `cocos.executor.evidence` makes the verdict of what the driver reports.

`setups` splits the problem's setup for the two processes; `names` finds what a source binds and reads.

A test with one of the `reasons` runs in the candidate's process, and so does one in which the candidate
would get an object of the test; the candidate could forge such a verdict, which is marked.
"""
