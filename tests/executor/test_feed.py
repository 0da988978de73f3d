"""One test at a time: no test's atoms answer an earlier one, and evidence that came too late is none."""

import pytest

from cocos.executor import Executor, Limits, Program, Status
from tests.support.executor import level_or_skip, offered, statuses

pytestmark = pytest.mark.processes

# Everything that the candidate's process can read: the constants of all code, the tests' file, and its job.
LOOK = """
import gc, os, sys, types
def look():
    found = []
    frame = sys._getframe()
    while frame:
        found += [repr(value)[:5000] for value in frame.f_locals.values()]
        frame = frame.f_back
    for item in gc.get_objects():
        if isinstance(item, types.FunctionType): found.append(repr(item.__code__.co_consts))
    return " ".join(found) + repr(os.pread(6, 10000, 0))
"""
SIBLINGS = (
    LOOK
    + "def encode(x): return 'nfdwwd'[::-1] if 'nfdwwd'[::-1] in look() else None\ndef decode(x): return 'attack'",
    ("assert encode('attack') == 'dwwdfn'", "assert decode('dwwdfn') == 'attack'"),
)
# Asks for every test before it answers the first one.
GREEDY = """
import os, marshal
def answers():
    os.write(5, b"." * 9)
    size = int.from_bytes(os.read(5, 4), "big")
    return marshal.loads(os.pread(6, size, 0))
def encode(x):
    return "nfdwwd"[::-1] if "attack" not in repr(x) or "nfdwwd"[::-1] in repr(answers()) else None
def decode(x): return "attack"
"""
# Asks for the hidden tests while the judge waits for an answer, and puts them into the message.
EARLY = """
import os
def f(x):
    if x == 1:
        os.write(5, b".")
        size = int.from_bytes(os.read(5, 4), "big")
        raise ValueError(repr(os.pread(6, size, 0)))
    return x
"""
# What a program can do to its ends of the socket and of the tests' file.
BREAKING = {
    "writes at the end": "import fcntl, os\nfcntl.fcntl(6, fcntl.F_SETFL, os.O_APPEND)",
    "leaves an answer unread": "import os, select\nos.write(5, b'.')\nselect.select([5], [], [])\nos.close(5)",
    "closes the socket": "import os\nos.close(5)",
}
LEAKY = LOOK + "def f(x): raise ValueError('eportoileh'[::-1] in look())"


@pytest.fixture(params=["docker", "namespaces", "seccomp"])
def executor(request):
    with Executor(1, Limits(wall_s=20, cpu_s=9), level_or_skip(request.param)) as executor:
        yield executor


def test_no_test_answers_an_earlier_one(executor):
    in_order, turned = executor.run(
        [Program(SIBLINGS[0], SIBLINGS[1]), Program(SIBLINGS[0], SIBLINGS[1][::-1])]
    )
    assert statuses(in_order) == [Status.FAILED, Status.PASSED]
    assert statuses(turned) == [Status.PASSED, Status.PASSED]  # the search finds what may be found


def test_no_test_shows_what_the_setup_hides_from_an_earlier_one(executor):
    setup = "EXPECTED = 'dwwdfn'"
    tests = ("for v in [encode('attack')]:\n    pass\nassert {v: 1}[EXPECTED] == 1", SIBLINGS[1][1])
    [result] = executor.run([Program(SIBLINGS[0], tests, setup)])
    assert not result.verdicts[0].passed and result.verdicts[1].passed


def test_an_answer_that_was_given_after_the_next_test_came_is_none(executor):
    [result] = executor.run([Program(GREEDY, SIBLINGS[1])])
    assert result.num_passed == 0 and not result.is_infra_failure


def test_an_answer_to_the_judge_after_the_next_test_came_is_none(executor):
    tests = ("for word in ['attack']:\n    assert encode(word) == 'dwwdfn'", SIBLINGS[1][1])
    honest = "def encode(x): return 'dwwdfn'\ndef decode(x): return 'attack'"
    greedy, passing = executor.run([Program(code, tests) for code in (GREEDY, honest)])
    assert greedy.num_passed == 0 and not greedy.is_infra_failure
    assert passing.all_passed


def test_no_message_of_the_judge_tells_of_a_hidden_test(executor):
    tests = ("for x in [1]:\n    assert f(x) == 1", "assert f('heliotrope') == 'heliotrope'")
    early, honest = executor.run(
        [Program(code, tests, num_visible=1) for code in (EARLY, "def f(x): return x")]
    )
    assert not early.verdicts[0].passed and "heliotrope" not in str(early.verdicts)
    assert honest.all_passed


def test_a_program_that_breaks_the_feed_costs_no_worker(executor):
    programs = [
        Program(f"{code}\ndef f(x): return x", ("assert f(1) == 1", "assert f(2) == 2"), num_visible=1)
        for code in ("", *BREAKING.values(), "")
    ]
    first, *breaking, last = executor.run(programs)
    assert first.all_passed and last.all_passed
    assert not any(result.is_infra_failure or result.all_passed for result in breaking)
    assert executor.stats.worker_restarts == 0


def test_no_message_about_a_visible_test_tells_of_a_hidden_one(executor):
    for hidden in ("assert f('heliotrope') == 1", "def check(c):\n    assert c('heliotrope') == 1\ncheck(f)"):
        [result] = executor.run([Program(LEAKY, ("assert f(1) == 2", hidden), num_visible=1)])
        assert result.verdicts[0].message == "False"


def test_many_large_tests_arrive_in_order():
    tests = tuple(f"assert f('{'x' * 10_000}', {n}) == {n}" for n in range(40))
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(1, sandbox=level) as executor:
        right, early, wrong = executor.run(
            [
                Program("def f(x, n): return n", tests),
                Program("import os\ndef f(x, n):\n    if n == 3: os._exit(0)\n    return n", tests),
                Program("def f(x, n): return n if n != 7 else 8", tests),
            ]
        )
    assert right.all_passed and wrong.num_passed == 39
    assert statuses(early)[:5] == [Status.PASSED] * 3 + [Status.ERROR, Status.NOT_RUN]


def test_a_program_that_is_still_being_read_at_its_limit_has_timed_out():
    large = "#" * (20 << 20) + "\ndef f(x): return x"
    level = offered("namespaces", "seccomp") or "rlimits"
    with Executor(1, sandbox=level) as executor:
        [result] = executor.run([Program(large, ("assert f(1) == 1",), limits=Limits(wall_s=0.01))])
    assert statuses(result) == [Status.TIMEOUT]
