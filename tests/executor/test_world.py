"""What a program finds around it: clock, random numbers, third-party packages, standard input and files."""

import importlib.metadata
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from cocos.dataprep.formats.conversion import from_kodcode
from cocos.executor import Executor, ExecutorError, Program, Status
from cocos.executor.inside.packages import import_packages
from cocos.files.json_lines import Place
from cocos.trajectories import as_program
from tests.support.executor import EVERY_LEVEL, at_night, level_or_skip, offered, statuses
from tests.support.paths import dataset

pytestmark = pytest.mark.processes

LEVEL = offered("namespaces", "seccomp") or "rlimits"
LEVELS = [*EVERY_LEVEL, *at_night("rlimits")]


@pytest.fixture(scope="module", params=LEVELS)
def executor(request):
    with Executor(num_workers=1, sandbox=level_or_skip(request.param)) as executor:
        yield executor


@pytest.fixture(scope="module", params=LEVELS)
def numpy_executor(request):
    with Executor(num_workers=1, sandbox=level_or_skip(request.param), packages=("numpy",)) as executor:
        yield executor


def check(executor, programs):
    """Run programs that must pass."""
    for program, result in zip(programs, executor.run(programs), strict=True):
        tests = zip(program.test_list, result.verdicts, strict=True)
        failed = [(test, verdict) for test, verdict in tests if not verdict.passed]
        assert not failed, (result.infra_error, failed)
        assert result.verdicts


def test_what_a_test_draws_is_the_same_after_any_other_job(executor):
    fixed = Program("def f(x): return 0", ("import random\nassert f(1) == random.gauss(0, 1)",))
    other = Program(
        "def f(x): return x", ("import random\nrandom.seed(3); random.gauss(0, 1)\nassert f(1) == 1",)
    )
    first, _, last = executor.run([fixed, other, replace(fixed, code=f"{fixed.code}  # again")])
    assert first.verdicts[0].expected == last.verdicts[0].expected is not None


def test_asserts_decide_in_a_process_that_runs_without_its_own():
    code = f"import cocos.executor as e; e.Executor(1, sandbox={LEVEL!r}).close()"  # runs a wrong program
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WORLD = [  # each is the first thing that a program asks for
    ("time.time()", "1735689600.0"),
    ("time.time_ns()", "1735689600000000000"),
    ("time.clock_gettime(time.CLOCK_REALTIME)", "1735689600.0"),
    ("time.ctime()", "'Wed Jan  1 00:00:00 2025'"),
    ("time.strftime('%Y-%m-%d %H:%M:%S %Z')", "'2025-01-01 00:00:00 UTC'"),
    ("time.localtime()[:6]", "(2025, 1, 1, 0, 0, 0)"),
    ("time.gmtime()[:6]", "(2025, 1, 1, 0, 0, 0)"),
    ("time.tzname", "('UTC', 'UTC')"),
    ("str(datetime.datetime.now())", "'2025-01-01 00:00:00'"),
    ("str(datetime.datetime.now(datetime.timezone.utc))", "'2025-01-01 00:00:00+00:00'"),
    ("str(datetime.datetime.now().astimezone())", "'2025-01-01 00:00:00+00:00'"),
    ("str(datetime.date.today())", "'2025-01-01'"),
    ("random.random()", "0.8444218515250481"),
    ("random.Random().random()", "0.22895563083705017"),
    ("(random.seed(time.time()), random.random())[1]", "0.07254274387468618"),
    ("random.SystemRandom().randrange(10**9)", "859949878"),
    ("os.urandom(4)", "b'\\xcd\\x07,\\xd8'"),
    ("str(uuid.uuid4())", "'cd072cd8-be6f-4f62-ac4c-09c28206e7e3'"),
]


def test_every_execution_finds_the_same_world(executor):
    code = "import time, datetime, random, os, secrets, uuid\ndef f(): return {}"
    check(executor, [Program(code.format(found), (f"assert f() == {value}",)) for found, value in WORLD])


def test_the_clock_advances_and_other_clocks_are_real(executor):
    code = """
import time, datetime
def elapsed():
    outer = time.monotonic()
    first, second = time.time(), datetime.datetime.now()
    inner = time.monotonic()
    time.sleep(0.05)
    inner = time.monotonic() - inner
    spans = time.time() - first, (datetime.datetime.now() - second).total_seconds()
    outer = time.monotonic() - outer
    return [0.04 < inner <= span + 1e-5 and span <= outer + 1e-5 for span in spans]
def uptime(): return time.monotonic() > 0 and time.perf_counter() > 0 and time.process_time() < 10
"""
    check(executor, [Program(code, ("assert elapsed() == [True, True]", "assert uptime() == True"))])


def test_dates_are_those_of_plain_python(executor):
    code = """
import copy, datetime, pickle, time
from datetime import datetime as dt, date, timedelta
class Own(dt):
    pass
class Timer:
    clock = time.time
    def read(self): return self.clock()
def f():
    now = dt.now()
    return [
        type(now) is dt, type(now + timedelta(1)) is dt, isinstance(now, date), type(date.today()) is date,
        type(Own.now()) is Own, type(Own.utcnow()) is Own, type(dt(2020, 1, 1).now()) is dt,
        pickle.loads(pickle.dumps(now)) == now, copy.deepcopy(now) == now, repr(now)[:17],
        dt.strptime("2024-02-03", "%Y-%m-%d") == dt(2024, 2, 3), dt.fromtimestamp(0) == dt(1970, 1, 1),
        str(dt), dt.__name__, Timer().read() < 1735689601, issubclass(Own, dt),
    ]
def g(): return dt(2024, 2, 3, 4), date(2024, 2, 3), timedelta(3)
"""
    texts = "datetime.datetime", "<class 'datetime.datetime'>", "datetime"
    expected = [*[True] * 9, texts[0], True, True, texts[1], texts[2], True, True]
    values = "(datetime(2024, 2, 3, 4), date(2024, 2, 3), timedelta(3))"
    imports = "from datetime import date, datetime, timedelta"
    check(executor, [Program(code, (f"assert f() == {expected}", f"assert g() == {values}"), imports)])


def test_the_test_and_the_program_read_the_same_clock(executor):
    test = """
import datetime
before = datetime.datetime.now()
found = f()
after = datetime.datetime.now()
assert before <= found <= after and found.year == 2025
"""
    check(executor, [Program("from datetime import datetime\ndef f(): return datetime.now()", (test,) * 5)])


def test_no_program_changes_the_world_of_the_next(executor):
    change = """
import datetime, gc, os, random, time
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
time.time(), random.seed(3), random.Random.seed(random._inst, 4), os.urandom(9), random.Random()
time.time.__self__._started_ns = 5
gc.get_referents(datetime.datetime.__dict__)[0]["now"] = None
time.time = os.urandom = random.random = None
def f(): return time.time
"""
    code = """
import datetime, os, random, time
def f(): return str(datetime.datetime.now()), os.urandom(2), random.random(), time.tzname
"""
    expected = "('2025-01-01 00:00:00', b',\\xd8', 0.8444218515250481, ('UTC', 'UTC'))"
    check(executor, [Program(change, ("assert f() is None",)), Program(code, (f"assert f() == {expected}",))])


def test_numpy_runs_at_the_default_limits_and_is_named_in_the_result(numpy_executor):
    version = importlib.metadata.version("numpy")
    code = """
import numpy as np
def f(n):
    m = np.random.default_rng(0).random((n, n))
    return bool(np.allclose(m @ np.linalg.inv(m), np.eye(n))), np.empty(900 << 20, np.uint8).nbytes >> 20
def versions():
    import importlib.metadata
    return np.__version__, importlib.metadata.version("numpy"), np.__file__.startswith(np.__path__[0])
def only_numpy():
    import pytest
"""
    tests = ("assert f(200) == (True, 900)", f"assert versions() == {(version, version, True)}")
    [result, alone] = numpy_executor.run([Program(code, tests), Program(code, ("assert only_numpy() == 1",))])
    assert result.all_passed and result.packages == (f"numpy {version}",) == numpy_executor.packages, result
    assert alone.verdicts[0].error_type == "ModuleNotFoundError"


def test_packages_change_neither_the_memory_limit_nor_the_world(numpy_executor):
    code = """
import numpy as np, os, time, random
def large(): return np.empty(1100 << 20, np.uint8).nbytes
def f(): return np.random.rand(), np.random.default_rng().random(), os.urandom(2), time.time(), random.random()
"""
    tests = {"": "assert large() == 1", "# 1": "assert f() == 1", "# 2": "assert f() == 1"}
    large, *same = numpy_executor.run([Program(code + more, (test,)) for more, test in tests.items()])
    assert statuses(large) == [Status.MEMORY]
    assert same[0].verdicts[0].actual == same[1].verdicts[0].actual
    assert "b',\\xd8'" not in same[0].verdicts[0].actual  # default_rng drew from the stream before
    assert same[0].verdicts[0].actual.endswith("1735689600.0, 0.8444218515250481)")


RIGHT_WITH_NUMPY = [
    ("def f(v): return np.sum(v)", "assert f([1, 2, 3]) == 6"),
    ("def f(v): return list(np.array(v) * 2)", "assert f([1, 2]) == [2, 4]"),
    ("def f(v): return {'a': np.int8(3), 'b': (np.float32(0.5),)}", "assert f(0) == {'a': 3, 'b': (0.5,)}"),
    ("def f(v): return v * 2", "assert np.array_equal(f(np.array([1, 2])), np.array([2, 4]))"),
    ("def f(n): return np.zeros((n, 0))", "assert f(3).shape == (3, 0)"),
    ("def f(n): return np.array(n)", "assert f(3) == 3 and f(3).shape == ()"),
    ("def f(n): return np.arange(4).reshape(2, 2).T", "assert f(3).tolist() == [[0, 2], [1, 3]]"),
    ("def f(n): return np.array(['ab', 'é'])", "assert f(3)[1] == 'é'"),
    ("def f(a): a.sort()", "a = np.array([3, 1, 2])\nf(a)\nassert a.tolist() == [1, 2, 3]"),
    ("def f(a):\n a *= 2\n return a", "a = np.array([3.0, 1])\nb = f(a)\nassert b is a and a.sum() == 8"),
    ("def f(a): return a[a > 1]", "np.testing.assert_array_equal(f(np.array([3, 1, 2])), [3, 2])"),
    ("def f(a): return np.linalg.inv(a)", "try:\n    f(np.zeros((2, 2)))\n    assert False\nexcept np.linalg.LinAlgError as error:\n    assert 'ingular' in str(error)"),
]  # fmt: skip
# No data, so the test runs in the program's process.
OBJECTS_WITH_NUMPY = [
    ("def f(a): return np.array([1, 'a', None], dtype=object)", "assert f(3).tolist() == [1, 'a', None]"),
    ("def f(a): return np.matrix([[1, 2], [3, 4]])", "assert (f(1) * f(1)).tolist() == [[7, 10], [15, 22]]"),
    ("class ndarray:\n    def __len__(self): return 2\ndef f(n): return ndarray()", "assert len(f(3)) == 2"),
]  # fmt: skip
LIES_WITH_NUMPY = [
    ("def f(n): return np.ones(n)", "assert (f(3) == np.zeros(3)).all()"),
    ("class Lie(np.ndarray):\n    def __array_function__(*a): return True\n    def __eq__(*a): return np.True_\n" "def f(n): return np.ones(n).view(Lie)", "assert np.array_equal(f(3), np.zeros(3))"),
    ("class Lie:\n    __array_function__ = __array_ufunc__ = __eq__ = lambda *a, **k: np.True_\n" "def f(n): return Lie()", "assert np.array_equal(f(3), np.zeros(3)) or np.equal(np.zeros(3), f(3)).all()"),
    ("class Lie:\n    __array_interface__ = {'shape': (3,), 'typestr': '<f8', 'version': 3, 'data': (id(0), True)}\n" "def f(n): return Lie()", "assert np.asarray(f(3)).dtype == float"),
    ("class Lie(np.int64):\n    __eq__ = lambda *a: True\ndef f(n): return Lie(4)", "assert f(3) == 6"),
]  # fmt: skip


def test_arrays_and_numbers_of_numpy_are_judged_by_value(numpy_executor):
    header = "import numpy as np\n"
    right, objects, lies = (
        numpy_executor.run([Program(header + code, (test,), header) for code, test in cases])
        for cases in (RIGHT_WITH_NUMPY, OBJECTS_WITH_NUMPY, LIES_WITH_NUMPY)
    )
    assert [(r.all_passed, r.verdicts[0].in_child) for r in right] == [(True, False)] * len(right)
    assert [(r.all_passed, r.verdicts[0].in_child) for r in objects] == [(True, True)] * len(objects)
    assert [case for case, r in zip(LIES_WITH_NUMPY, lies, strict=True) if r.is_right] == []


def test_kodcodes_problems_that_need_numpy_pass_with_it():
    pytest.importorskip("scipy")
    rows = map(json.loads, dataset("kodcode_demo_232.jsonl").read_text().splitlines())
    rows = [row for row in rows if "numpy" in row["solution"]]
    problems = [from_kodcode(row, Place("kodcode", number)).problem for number, row in enumerate(rows)]
    programs = [as_program(problem, problem.code) for problem in problems]
    assert len(programs) == 2
    with Executor(num_workers=1, sandbox=LEVEL, packages=("scipy",)) as executor:
        check(executor, programs)


def test_a_package_that_is_missing_is_refused_before_anything_runs():
    for packages, words in (
        (("no-such-package",), f"'no-such-package' is not installed for {sys.executable}; pip install"),
        (("yaml",), "the module 'yaml' belongs to 'PyYAML'"),
        ("numpy", "packages is the string 'numpy'; give a tuple"),
    ):
        with pytest.raises(ValueError, match=words):
            Executor(num_workers=1, sandbox=LEVEL, packages=packages)


BROKEN = {
    "raise RuntimeError('no luck')": "cannot import broken: RuntimeError: no luck",
    "print('{}')\nraise SystemExit(3)": "cannot import broken: SystemExit: 3",
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()": "starts threads",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_package_that_cannot_be_imported_is_named_with_the_reason(tmp_path, monkeypatch, source):
    (tmp_path / "broken.py").write_text(source)
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: broken\nVersion: 1.0\n")
    (info / "RECORD").write_text("broken.py,,\nbroken-1.0.dist-info/METADATA,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExecutorError, match=BROKEN[source]):
        Executor(num_workers=1, sandbox=LEVEL, packages=("broken",))


def test_packages_for_another_python_are_refused():
    with pytest.raises(ImportError, match=r"installed for Python 3\.9, and the sandbox has 3\.\d+"):
        import_packages("/packages", ["numpy"], [3, 9])


def test_a_program_reads_its_standard_input_and_its_files(executor):
    asks = "import os, sys\ndef ask(): return input()\ndef rest(): return sys.stdin.read()\n"
    asks += "def show(path): return open(path, newline='').read()\ndef names(): return sorted(os.listdir())"
    large = "é" * 1_500_000
    judged = "text = open('data/b.txt').read()\nassert show('data/b.txt') == text == 'two'"
    files = (("a.txt", "one\r\n"), ("data/b.txt", "two"), ("data/deep/é", ""))
    check(
        executor,
        [
            Program(asks, ("assert ask() == 'x'", "assert ask() == 'y z'", "assert rest() == 'é\\n'"), stdin="x\ny z\né\n"),
            Program(asks, (f"assert rest() == 'é' * {len(large)}",), stdin=large),
            Program(asks, ("assert show('a.txt') == 'one\\r\\n'", "assert show('data/deep/é') == ''", judged), files=files),
            Program(asks, ("assert names() == ['a.txt', 'data']",), files=files),
            Program("print(input())\nwords = open('a.txt').read().split()", ("assert words == ['one']",), stdin="q", files=files),
            # nothing is left for the next program
            Program(asks, ("assert names() == []", "assert rest() == ''")),
        ],
    )  # fmt: skip
    large_file = (("a", "x" * (17 << 20)),)
    [ended, too_large] = executor.run(
        [Program(asks, ("assert ask() == ''",)), Program(asks, ("assert names() == []",), files=large_file)]
    )
    assert ended.verdicts[0].error_type == "EOFError"
    assert too_large.num_passed == 0 and not too_large.is_infra_failure
