"""Programs that read standard input are judged by what they print, as plain Python prints it."""

import random
import subprocess
import sys

from cocos.executor import Limits, Program, StdoutTest, read_stdout_test
from cocos.executor.stdout_tests import is_same_output

# Programs that read numbers, in the ways in which contest programs read and print.
PROGRAMS = [
    "n = int(input('n? '))\nprint(n, n + 1, sep='\\n')",
    "import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1])",
    "import sys\ninput = sys.stdin.readline\nprint(int(input()) ** 2)",
    "import sys\nsys.stdout.write(sys.stdin.buffer.readline().decode())",
    "import os, sys\nprint('first')\nsys.stdout.flush()\nos.write(1, os.read(0, 100))",
    "print(*map(int, open(0).read().split()))",
    "import threading\nthreading.Thread(target=lambda: print(int(input()) + 1)).start()",
    "import atexit\natexit.register(print, 'end')\nprint(input())",
    "import sys\nprint(input())\nsys.exit()",
    "import os\nprint(input(), flush=True)\nos._exit(0)",
    "import sys\nprint(input())\nsys.stdout.close()",
    "f = open(1, 'w', closefd=False)\nf.write(input())",
    "class Last:\n    def __del__(self):\n        print('end')\nlast = Last()\nprint(input())",
    "import os\nprint(input(), flush=True)\nif os.fork():\n    os.wait()",
    "import sys\nsys.stdin.close()\nprint(1)",
    "import sys\nsys.setrecursionlimit(20000)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(9000))",
    "raise KeyboardInterrupt",
    "print(input())\nraise SystemExit('wrong')",
    "print(input(), input(), input(), input())",
    "print(input()",
    "from __future__ import annotations\nx: Undefined = input()\nprint(x)",
    "import __main__\nx = input()\nprint(__main__.x, __name__)",
    "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "import sys\nsys.stderr.write('noise')\nprint(input())",
    "print('\\ud800')",
    "import sys\nsys.stdout = open('out', 'w')\nprint(input())",
    "pass",
]
INPUTS = ["3\n", "5", "12\n7\n", "1 2 3\n", ""]


def plain_python(code: str, given: str) -> str | None:
    """Return what plain Python prints; None if it ends with an error."""
    environment = {"PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "-c", code],
        input=given.encode(),
        capture_output=True,
        env=environment,
    )
    return None if done.returncode else done.stdout.decode(errors="replace")


def judged_all(executor, tests: dict[str, list[StdoutTest]]) -> dict[str, list[str]]:
    """Return the statuses of programs by their code."""
    programs = [Program(code, tuple(test.source for test in own)) for code, own in tests.items()]
    results = dict(zip(tests, executor.run(programs), strict=True))
    assert {code: r.infra_error for code, r in results.items() if r.is_infra_failure} == {}
    return {code: [verdict.status.value for verdict in r.verdicts] for code, r in results.items()}


def judged(executor, code: str, *tests: StdoutTest) -> list[str]:
    return judged_all(executor, {code: list(tests)})[code]


def test_a_program_passes_if_and_only_if_plain_python_prints_what_is_expected(
    executor, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    printed = {}
    for code in PROGRAMS:
        printed[code] = [(text, plain_python(code, text)) for text in random.Random(code).sample(INPUTS, 2)]
    right, wrong = (
        {code: [StdoutTest(text, (out or "") + more) for text, out in outs] for code, outs in printed.items()}
        for more in ("", " more")
    )
    assert judged_all(executor, right) == {
        code: ["error" if out is None else "passed" for _, out in outs] for code, outs in printed.items()
    }
    assert [code for code, found in judged_all(executor, wrong).items() if "passed" in found] == []


def test_a_verdict_says_what_was_printed_and_in_which_line(executor):
    numbers = "".join(f"{n}\n" for n in range(1000))
    code = "for n in range(1000):\n    print(n if n != 500 else 7)"
    [short] = executor.run([Program("print(int(input()) + 1)", (StdoutTest("1", "3").source,))])
    [long] = executor.run([Program(code, (StdoutTest("", numbers).source,))])
    assert short.verdicts[0].message == "expected '3', got '2\\n'"
    assert long.verdicts[0].message == "line 501 of the output: expected '500', got '7'"
    assert not short.verdicts[0].in_child and not long.verdicts[0].in_child


def test_each_test_has_its_own_limit_of_time_and_after_a_late_one_none_runs(executor):
    program = Program(
        "n = int(input())\nwhile n == 2:\n    pass\nprint(n)",
        tuple(StdoutTest(n, n).source for n in "1123"),
        limits=Limits(wall_s=1.5, cpu_s=1),
    )
    [result] = executor.run([program])
    assert [verdict.status for verdict in result.verdicts] == ["passed", "passed", "timeout", "not_run"]
    assert result.num_passed == 2


def test_endless_and_huge_outputs_are_errors(executor):
    for code in ("while True:\n    print('x' * 999)", "print('x' * (20 << 20))"):
        assert judged(executor, code, StdoutTest("", "x")) == ["error"]


# What a program could look through for an expected output: files, its memory, its arguments, earlier tests.
SEARCHES = [
    "import os\nfor folder in ('.', '/tmp', '/proc/self'):\n    for name in os.listdir(folder):\n        try:\n            print(open(f'{folder}/{name}', errors='replace').read())\n        except OSError:\n            pass",
    "import gc\nprint([x for x in gc.get_objects() if isinstance(x, (dict, list, tuple))])",
    "import sys\nframe = sys._getframe()\nwhile frame:\n    print(frame.f_locals, frame.f_globals)\n    frame = frame.f_back",
    "import os\ntry:\n    print(open('seen').read())\nexcept OSError:\n    open('seen', 'w').write(input())",
    "import builtins\nprint(getattr(builtins, 'seen', ''))\nbuiltins.seen = input()",
    "print(open('/proc/self/cmdline').read(), open('/proc/self/environ').read())",
    "import os\nprint([os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if int(fd) < 3])",
    "import os\nfor fd in range(9):\n    try:\n        print(os.pread(fd, 999, 0))\n    except OSError:\n        pass",
    "import os\nfor place in ('mem', 'environ', 'fd/5', 'fd/6', 'fd/7'):\n    for process in (os.getppid(), 1):\n        try:\n            print(open(f'/proc/{process}/{place}').read(99))\n        except (OSError, UnicodeError):\n            print(process)",
    "import ctypes, re\nfor line in open('/proc/self/maps'):\n    start, end = (int(part, 16) for part in line.split()[0].split('-'))\n    if ' rw' in line and end - start < 1 << 24:\n        print(re.findall(rb'[0-9]{10}', ctypes.string_at(start, end - start)))",
    "import os, time\nif not os.fork():\n    os.setsid()\n    time.sleep(0.3)\n    print(open(0).read())\n    raise SystemExit\nprint(1)",
]


def test_no_search_of_a_program_finds_what_is_expected_or_what_an_earlier_test_had(executor):
    secret = "7391824650"
    tests = (StdoutTest(secret, "").source, StdoutTest("", secret).source)
    caught = [f"try:\n    exec({code!r})\nexcept Exception as error:\n    print(error)" for code in SEARCHES]
    results = executor.run([Program(code, tests) for code in caught])
    for code, result in zip(SEARCHES, results, strict=True):
        first, second = result.verdicts
        found = (second.actual or "") + (second.message or "").partition("got")[2]
        assert not second.passed and secret not in found, code
        assert not first.passed or "seen" in code, code


# What the program does in test 2 of 3.
ENDS = {
    # Ends of its process, of its group, and of the process that runs the tests.
    "os.abort()": ["passed", "error", "passed"],
    "os.kill(0, 9)": ["passed", "error", "passed"],
    "os.kill(os.getppid(), 9)": ["passed", "error", "passed"],
    "os.kill(os.getppid(), 2)": ["passed", "error", "passed"],
    "os.kill(os.getppid(), 19)": ["passed", "timeout", "not_run"],
    "os._exit(1)": ["passed", "error", "passed"],
    "x = 'x' * (2 << 30)": ["passed", "memory", "passed"],
    # What a run has left: processes, files, and replaced functions that end the process.
    "os._exit = lambda status: None": ["passed"] * 3,
    "os.fork() or [open('seen', 'a').write('x') for _ in iter(int, 1)]": ["passed"] * 3,
    "os.mkdir('seen')": ["passed"] * 3,
}


def test_what_a_run_does_to_the_processes_around_it_ends_no_other_test(executor):
    program = "import os\nn = input()\nassert not os.path.exists('seen')\nif n == '2':\n    {}\nprint(n)"
    tests, limits = tuple(StdoutTest(n, n).source for n in "123"), Limits(wall_s=3, cpu_s=2)
    results = executor.run([Program(program.format(code), tests, limits=limits) for code in ENDS])
    found = [[verdict.status for verdict in result.verdicts] for result in results]
    assert dict(zip(ENDS, found, strict=True)) == ENDS


def test_the_reason_of_an_end_that_a_program_forges_is_an_error_at_most(executor):
    written = (
        "b''",
        "b'\\xff' * 9999",
        "b'0000[1,2]'",
        'b\'0000["AssertionError",""]\'',
        "b'0000' + b'[' * 9999",
    )
    code = "import os\nprint(2, flush=True)\nos.write(3, {})\nos._exit({})"
    for status in (0, 1):
        tests = {code.format(text, status): [StdoutTest("", "2")] for text in written}
        found = judged_all(executor, tests).values()
        assert [is_passed == ["passed"] for is_passed in found] == [status == 0] * len(written)


def test_hundreds_of_tests_and_tests_of_megabytes_have_their_own_verdicts(executor):
    code = "text = input()\nprint(text if text != '150' else 'x')"
    many = [StdoutTest(str(n), str(n)) for n in range(230)]
    large = [StdoutTest("y" * (3 << 20), ("y" if n else "z") * (3 << 20)) for n in range(2)]
    assert judged(executor, code, *many, *large) == [
        *("failed" if n == 150 else "passed" for n in range(230)),
        *("failed", "passed"),
    ]


def test_outputs_are_compared_word_by_word_and_numbers_with_a_point_by_tolerance():
    same = [("1 2\n3\n", "1 2\n3"), ("1\n2\n3", "1 2 3"), ("0.3333333", "0.333333333"), ("1e6", "1000000.0")]
    same += [("nan", "nan"), ("inf", "1e400"), ("", "")]
    other = [
        ("1.0", "1"),
        ("0.34", "0.33"),
        ("nan", "0.5"),
        ("YES", "Yes"),
        ("1 2", "1 2 3"),
        ("", "0"),
        ("12", "1 2"),
    ]
    assert [pair for pair in same + other if is_same_output(*pair)] == same


def test_a_test_is_its_source_and_other_tests_are_none():
    for test in (StdoutTest("3\n", "6\n"), StdoutTest("'\"\\\n", ""), StdoutTest("x" * 100_000, "\u00e4")):
        for source in (test.source, f"\n# one\n{test.source}", f"assert ({test.source[7:]}), 'why'"):
            assert read_stdout_test(source) == test
    for source in (
        "assert f(1) == 2",
        "assert program_output(1) == 2",
        "assert program_output('1') != '2'",
        "assert program_output(",
        "assert f('program_output') == '2'",
    ):
        assert read_stdout_test(source) is None
