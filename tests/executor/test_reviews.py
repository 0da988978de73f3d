"""The programs of all reviews at every level, as root and as an ordinary user.

Other modules show each of them in its own words at one level or more. Here all meet all tests: no program that
solves nothing passes unmarked, unless plain Python passes it too and no lie is needed for it.
"""

import json
import textwrap

import pytest

from tests.executor import test_cheats, test_demands, test_judge_holes, test_object_space
from tests.executor.test_demands import accepted_by_plain_python
from tests.support.executor import level_or_skip
from tests.support.ordinary_user import run_python

pytestmark = [pytest.mark.processes, pytest.mark.nightly]

SETTINGS = [
    ("docker", "root"),
    *((level, user) for level in ("namespaces", "seccomp") for user in ("root", "ordinary")),
]
RUN = """
import json, sys
from cocos.executor import Executor, Limits, Program
level, programs = json.load(sys.stdin)
with Executor(2, Limits(wall_s=4, cpu_s=2), level) as executor:
    results = executor.run([Program(code, tuple(tests), setup) for code, tests, setup in programs])
print(json.dumps([r.infra_error or [[v.passed, v.in_child] for v in r.verdicts] for r in results]))
"""


@pytest.fixture(params=SETTINGS, ids=" ".join)
def run(request):
    """A function that runs (code, tests, setup) and returns [passed, marked] per test and program."""
    level, user = request.param
    level_or_skip(level)

    def run_all(programs: list) -> list:
        answer = run_python(RUN, json.dumps([level, programs]), as_root=user == "root")
        assert answer.returncode == 0, answer.stderr
        return json.loads(answer.stdout)

    return run_all


def unmarked(outcomes: list) -> bool:
    return any(passed and not marked for passed, marked in outcomes)


def test_the_cheats_of_the_first_review(run):
    tests = (test_cheats.ASSERTS, test_cheats.CHECK)
    cheats = [(name, code, t) for name, (code, _) in test_cheats.CHEATS.items() for t in tests]
    twins = [(name, code, t) for name, (_, code) in test_cheats.CHEATS.items() for t in tests]
    found = run([(code, t, "") for _, code, t in (*cheats, *twins)])
    scores = list(zip((*cheats, *twins), found, strict=True))
    assert [name for (name, *_), outcomes in scores[: len(cheats)] if any(p for p, _ in outcomes)] == []
    assert [name for (name, *_), outcomes in scores[len(cheats) :] if not all(p for p, _ in outcomes)] == []


def test_the_searches_of_the_first_review(run):
    tests = (test_cheats.SECRET, test_cheats.SECRET_CHECK)
    programs = [(code, t, "") for code in test_cheats.SEARCHES.values() for t in tests]
    assert not any(passed for outcomes in run(programs) for passed, _ in outcomes)


def test_the_conditions_of_the_first_review(run):
    programs = [(wrong, (test,), "") for test, (wrong, _) in test_cheats.CONDITIONS.items()]
    programs += [(right, (test,), "") for test, (_, right) in test_cheats.CONDITIONS.items()]
    passed = [outcomes[0][0] for outcomes in run(programs)]
    assert passed == [False] * len(test_cheats.CONDITIONS) + [True] * len(test_cheats.CONDITIONS)


def test_the_liars_of_the_second_review(run):
    cases = [
        (textwrap.dedent(code), setup, test)
        for code in test_demands.LIARS.values()
        for test, _, setup in test_demands.DEMANDS
    ]
    found = run([(code, (test,), setup) for code, setup, test in cases])
    assert [outcomes for outcomes in found if isinstance(outcomes, str)] == []
    met = [case for case, outcomes in zip(cases, found, strict=True) if unmarked(outcomes)]
    accepted = accepted_by_plain_python(met)
    assert [case for case, is_weak in zip(met, accepted, strict=True) if not is_weak] == []
    right = run([(code, (test,), setup) for test, code, setup in test_demands.DEMANDS])
    assert [outcomes for outcomes in right if not unmarked(outcomes)] == []


def test_the_objects_and_messages_of_the_second_review(run):
    bases = ("", "(int)", "(float)", "(str)", "(list)", "(tuple)", "(dict)", "(Exception)")
    objects = [
        (
            test_object_space.LIAR.replace("{base}", base) + "def f(x): return Liar()\ndef g(c): c(Liar())",
            (test,),
            "",
        )
        for base in bases
        for test in test_object_space.DEMANDS
    ]
    messages = [
        (test_object_space.FORGER.replace("MESSAGE", repr(message)), (test,), "")
        for message in test_object_space.MESSAGES + test_object_space.BYTES
        for test in (test_object_space.FUNCTION_TEST, test_object_space.RAISES_TEST)
    ]
    places = [
        (test_object_space.EXPLORER, (f"import string\n{place.replace('{n}', 'abcd')}\ncheck(find)",), "")
        for place in test_object_space.HIDING_PLACES.values()
    ]
    programs = [*objects, *messages, *places]
    found = run(programs)
    passed = [
        p
        for p, outcomes in zip(programs, found, strict=True)
        if isinstance(outcomes, list) and outcomes[0][0]
    ]
    assert passed == []


# S3: the answer of the first test is an argument of the second.
SIBLINGS = """
import gc, sys
def texts():
    frame = sys._getframe()
    while frame:
        for value in [frame.f_code, *frame.f_locals.values(), *gc.get_objects()]:
            for part in value if isinstance(value, (list, tuple)) else [value]:
                for function in part if isinstance(part, (list, tuple)) else [part]:
                    code = getattr(function, '__code__', function)
                    yield from getattr(code, 'co_consts', None) or ()
        frame = frame.f_back
def encode(x): return next((t for t in texts() if type(t) is str and t[:9] == 'helio' + 'trop' and len(t) == 14), None)
def decode(x): return 'attack'
"""
SIBLING_TESTS = ("assert encode('attack') == 'heliotropeabcd'", "assert decode('heliotropeabcd') == 'attack'")


def test_the_shapes_of_the_third_review(run):
    programs = [(code, (test,), "") for code, test in test_judge_holes.SHAPES.values()]
    programs += [(code, (test,), "") for code in test_judge_holes.COUNTERS.values() for test in
                 ("from collections import Counter\nx = f(3)\nassert x == Counter('ab')",)]  # fmt: skip
    programs.append((SIBLINGS, SIBLING_TESTS, ""))
    programs.append(
        (
            SIBLINGS,
            tuple(
                f"x = {t[7:].partition(' == ')[0]}\nx.upper()\nassert x == {t.partition(' == ')[2]}"
                for t in SIBLING_TESTS
            ),
            "",
        )
    )
    found = run(programs)
    assert [p for p, outcomes in zip(programs, found, strict=True) if unmarked(outcomes[:1])] == []
