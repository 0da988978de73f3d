"""Plans for judging tests, and verdicts from the evidence. All of it runs on the trusted side.

`plans.plan_test` decides per test who evaluates which part of it. An example, with the test

    assert sorted(f([2, 1])) == [1, 2]

1. `assert_split` splits it. The candidate's part is the atom `sorted(f([2, 1]))`. What is demanded of it
   is the condition `_0 == [1, 2]`, where `_0` stands for the value of the first atom.
2. `worker` sends the source of the atom, `(lambda: sorted(f([2, 1]))),`, and nothing of the condition.
3. The candidate's process evaluates the atom. It leaves the evidence `[0, 1.2e-05, [["v", ["l", 1, 2]]]]`:
   test 0 took 12 microseconds, and its only atom has the value [1, 2], as `inside/codec.py` encodes it.
4. `evidence` decodes the value, evaluates the condition on it, and gives the verdict. A candidate that
   controls its whole process can choose the value that is sent, but cannot find out which one would pass.
"""
