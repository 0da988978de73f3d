"""Converters: they keep what a row needs to run, do not change what it does, and make independent tests."""

import ast
import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.formats.conversion import (
    from_columns,
    from_humaneval,
    from_humanevalfix,
    from_kodcode,
    from_mbpp,
)
from cocos.dataprep.formats.humaneval import prompt_helpers, split_check_function
from cocos.dataprep.formats.indentation import tabs_to_spaces
from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.dataprep.hidden_tests import hide_tests
from cocos.dataprep.splits import assign_split
from cocos.executor import Program
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, problem_from_row, problem_to_row
from cocos.prompts import protocol
from cocos.trajectories import as_program

PLACE = Place("f", 1)
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def add(a, b):\n    """Add."""\n',
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "test": (
        "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(1, 2) == 3, 'small'\n"
        "    assert True, 'reached'\n    for n in range(3):\n        assert candidate(n, n) == 2 * n\n"
        "    big = 10 ** 6\n    assert candidate(big, 1) == big + 1\n"
    ),
}


def test_each_assert_of_check_is_a_test_with_what_it_needs_and_nothing_else():
    problem, left_out, _ = from_humaneval(HUMANEVAL, PLACE)
    assert problem.test_list == (
        "assert add(1, 2) == 3, 'small'",
        "for n in range(3):\n        assert add(n, n) == 2 * n",
        "big = 10 ** 6\nassert add(big, 1) == big + 1",
    )
    assert left_out == ("assert True, 'reached': holds for any program",)
    assert problem.code == 'def add(a, b):\n    """Add."""\n    return a + b'
    assert problem.text.endswith('"""Add."""') and problem.entry_point == "add"


def test_asserts_that_share_a_variable_stay_one_test():
    source = (
        "def check(candidate):\n    xs = [3]\n    assert candidate(xs) == 1\n    assert candidate(xs) == 2\n"
    )
    assert split_check_function(source, "f").tests == (f"{source.rstrip()}\n\ncheck(f)",)


def test_the_call_that_humanevalpack_appends_is_not_run_twice():
    tests = split_check_function(
        "def check(f):\n    x = 1\n    x += f(x)\n    assert x\n\ncheck(f)", "f"
    ).tests
    assert len(tests) == 1 and tests[0].count("check(f)") == 2  # the definition and one call


def test_a_helper_of_the_prompt_is_set_up_for_the_candidate_and_carried_by_the_test():
    prompt = (
        "import math\n\ndef half(x):\n    return math.floor(x / 2)\n\ndef f(x):\n    '''Halve twice.'''\n"
    )
    row = HUMANEVAL | {
        "prompt": prompt,
        "entry_point": "f",
        "canonical_solution": "    return half(half(x))",
        "test": "def check(candidate):\n    assert candidate(9) == half(4)\n",
    }
    problem = from_humaneval(row, PLACE).problem
    helper = "import math\ndef half(x):\n    return math.floor(x / 2)"
    assert problem.test_setup_code == helper == prompt_helpers(prompt, "f")
    assert problem.test_list == (f"{helper}\nassert f(9) == half(4)",)


def test_humanevalfix_shows_the_buggy_program_and_keeps_the_right_one():
    row = HUMANEVAL | {"declaration": "def add(a, b):\n", "buggy_solution": "    return a - b\n"}
    problem = from_humanevalfix(row, PLACE).problem
    assert problem.text == "Fix the bugs in this function.\n\ndef add(a, b):\n    return a - b"
    assert "return a + b" in problem.code and problem.buggy_code == "def add(a, b):\n    return a - b"
    with_docs = from_humanevalfix(row, PLACE, field="prompt").problem
    assert '"""Add."""' in with_docs.text and with_docs.text.endswith("    return a - b")
    assert with_docs.test_list == problem.test_list


PYTEST = '''
import pytest
from math import sqrt
import solution
from solution import area as surface, Shape
from pytest import approx

SIDE = 2

def square():
    """A helper."""
    return Shape(SIDE)

@pytest.fixture
def shape():
    return square()

def unused():
    return 1

@pytest.mark.parametrize("side,expected", [(1, 1), pytest.param(2, 4, id="two")])
@pytest.mark.parametrize("factor", [1, 10])
def test_scaled(side, expected, factor):
    assert surface(Shape(side * factor)) == expected * factor ** 2

def test_fixture(shape):
    assert solution.area(shape) == 4

def test_root():
    assert sqrt(surface(square())) == approx(2.0, abs=1e-3)  # the root

def test_refusal():
    with pytest.raises(ValueError, match="neg.*") as caught:
        surface(Shape(-1))
    assert "negative" in str(caught.value)

class TestShape:
    def setup_method(self):
        self.shape = Shape(3)

    def test_area(self):
        assert surface(self.shape) == 9

@pytest.mark.skip(reason="no")
def test_skipped():
    assert False

def test_output(capsys):
    assert True

if __name__ == "__main__":
    pytest.main()
'''
SHAPES = """
class Shape:
    def __init__(self, side):
        if side < 0:
            raise ValueError("negative side")
        self.side = side

def area(shape):
    return shape.side ** 2
"""


def test_a_pytest_file_becomes_one_test_per_function_method_and_set_of_parameters(executor):
    tests, left_out = split_pytest_file(PYTEST)
    assert tests[:4] == tuple(
        f"surface = area\nassert surface(Shape({side} * {factor})) == {expected} * {factor} ** 2"
        for factor in (1, 10)
        for side, expected in ((1, 1), (2, 4))
    )
    assert len(tests) == 8
    assert not any("pytest" in test or "import solution" in test or "unused" in test for test in tests)
    assert [reason.split(":")[0] for reason in left_out] == ["test_skipped", "test_output"]
    [right, wrong] = executor.run(
        [Program(SHAPES, tests), Program(SHAPES.replace("** 2", "** 3").replace("negative", "bad"), tests)]
    )
    assert right.all_passed, right.verdicts
    assert [v.passed for v in wrong.verdicts] == [True, False] + [False] * 6  # 1 cubed is 1


def test_a_single_assert_shows_expected_and_actual(executor):
    tests = split_pytest_file("from solution import f\ndef test_f():\n    assert f(1) == 2\n").tests
    assert tests == ("assert f(1) == 2",)
    [result] = executor.run([Program("def f(x): return 5", tests)])
    assert (result.verdicts[0].expected, result.verdicts[0].actual) == ("2", "5")


def test_a_test_of_several_asserts_says_which_failed_and_what_it_got(executor):
    source = (
        "def test_f():\n    x = f(1)\n    assert x == 1\n    assert f(x) == 7\n    assert f(2) in (3, 4)\n"
    )
    tests = split_pytest_file(source).tests
    results = executor.run(
        [Program(f"def f(x): return {body}", tests) for body in ("1", "1 if x < 2 else 0", "7")]
    )
    assert [result.verdicts[0].message for result in results[::2]] == [
        "expected 7, got 1",
        "expected 1, got 7",
    ]
    [last] = executor.run([Program("calls = iter([1, 7, 5])\ndef f(x): return next(calls)", tests)])
    assert last.verdicts[0].message == "false: f(2) in (3, 4)"  # and f was called three times, not more


def test_what_the_candidate_prints_can_be_asserted(executor):
    source = (
        "import io, contextlib\nfrom solution import shout\ndef test_shout():\n    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out):\n        shout()\n    assert out.getvalue() == 'A\\n'\n"
    )
    tests = split_pytest_file(source).tests
    right, wrong = executor.run([Program(f"def shout(): print('{word}')", tests) for word in "AB"])
    assert right.all_passed and not wrong.all_passed


UNSUPPORTED = [
    ("def test_f(tmp_path):\n    assert f(tmp_path)", "needs the pytest fixture 'tmp_path'"),
    ("async def test_f():\n    assert f()", "is asynchronous"),
    ("CASES = [1]\n@pytest.mark.parametrize('x', CASES)\ndef test_f(x):\n    assert f(x)", "not written out"),
    ("@pytest.mark.xfail\ndef test_f():\n    assert f()", "is marked pytest.mark.xfail"),
    ("def test_f():\n    assert f() == pytest.approx([1.0])", "which has no plain counterpart"),
    ("x = 1", "has no test function"),
    ("def test_f(:", "does not parse"),
]


@pytest.mark.parametrize(("source", "words"), UNSUPPORTED)
def test_a_test_that_cannot_stand_by_itself_is_refused_with_the_reason(source, words):
    row = {"question_id": "1_I", "question": "q", "solution": "", "test": source}
    with pytest.raises(DataError, match="f:1: field 'test' ") as caught:
        from_kodcode(row, PLACE)
    assert words in str(caught.value)


def test_kodcode_names_its_column_either_way_and_its_variants_share_a_group():
    row = {"question_id": "A_7_C", "question": "q", "solution": "def f(): return 1"}
    tests = "def test_f():\n    assert f() == 1"
    one, other = (from_kodcode(row | {name: tests}, PLACE) for name in ("test", "test_code"))
    assert one == other and one.group == "A_7"


def test_columns_of_ones_own_are_read_by_their_names_and_csv_lists_as_json():
    row = {"q": "Add.", "tests": '["assert f() == 1"]', "code": "", "task_id": "7"}
    problem = from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "list").problem
    assert problem == Problem("7", "Add.", ("assert f() == 1",))
    row["tests"] = "assert f() == 1\nassert f() != 2"
    assert len(from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "lines").problem.test_list) == 2
    with pytest.raises(DataError, match="f:1: field 'test_list' is text, not a JSON list"):
        from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "list")
    with pytest.raises(DataError, match="f:1: has no column 'query'; it has q, tests"):
        from_columns(row, PLACE, {"text": "query"}, "list")


def outcome(code: str) -> object:
    """What a program does, as far as a test can see it."""
    space: dict[str, object] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, space)
    return out.getvalue(), space.get("s")


BLOCKS = st.recursive(
    st.sampled_from(
        [
            "print(1)",
            "s = 'a\\tb'",
            "s = '''x\n\ty\n  \tz'''",
            "t = [1,\n\t\t2,\n   3]",
            "# \t note",
            "u = 1\t+ 2\t",
            "s = '\t' +\t'x'",
        ]
    ),
    lambda inner: st.tuples(
        st.sampled_from(["if True:", "for i in range(2):", "while True:"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def written(block, indent: str, step: str) -> str:
    if isinstance(block, str):
        return indent + block + "\n"
    head, body = block
    stop = f"{indent}{step}break\n" if head.startswith("while") else ""
    inner = "".join(written(one, indent + step, step) for one in body)
    return f"{indent}{head}\n{inner}{indent}{step}pass\n{stop}"


@settings(max_examples=150, deadline=None, database=None)
@given(st.lists(BLOCKS, min_size=1, max_size=3), st.sampled_from(["\t", "\t\t", " \t", "  "]))
def test_tabs_leave_the_indentation_and_nothing_else_changes(blocks, step):
    code = "".join(written(block, "", step) for block in blocks)
    spaced = tabs_to_spaces(code)
    assert ast.dump(ast.parse(spaced)) == ast.dump(ast.parse(code)) and outcome(spaced) == outcome(code)
    assert tabs_to_spaces(spaced) == spaced


def test_tabs_become_four_spaces_where_only_tabs_indent_and_eight_where_both_do():
    assert tabs_to_spaces("def f():\n\treturn 1") == "def f():\n    return 1"
    assert tabs_to_spaces("if 1:\n  \tif 1:\n  \t\tx = 1") == "if 1:\n        if 1:\n                x = 1"
    assert (
        tabs_to_spaces("if 1:\n    x = 1\n\ty = 1") == "if 1:\n    x = 1\n\ty = 1"
    )  # no Python: not ours to mend


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
VALUES = st.integers(-99, 99) | st.booleans() | st.lists(st.integers(0, 9), max_size=3)


@settings(max_examples=50, deadline=None, database=None)
@given(
    cases=st.lists(st.tuples(VALUES, VALUES, CELLS), min_size=1, max_size=5),
    words=CELLS.filter(str.strip),
    amount=st.sampled_from([0, 0.5, 1, 2]),
)
def test_the_same_asserts_come_out_of_every_form_they_are_written_in(cases, words, amount):
    asserts = [f"assert f({a!r}) == {b!r}, {note!r}" for a, b, note in cases]
    lines = "\n".join(asserts)
    check = "def check(candidate):\n" + "\n".join(
        "    " + a.replace(" f(", " candidate(", 1) for a in asserts
    )
    functions = "from solution import f\n" + "\n".join(
        f"def test_{number}():\n    {one}\n" for number, one in enumerate(asserts)
    )
    base = {"task_id": "1", "text": words, "code": "", "entry_point": "f"}
    forms = {"list": asserts, "lines": lines, "check": check, "pytest": functions}
    converted = [from_columns(base | {"test_list": t}, PLACE, {}, form).problem for form, t in forms.items()]
    assert [p.test_list for p in converted] == [tuple(asserts)] * 4
    hidden = hide_tests(converted[0], amount, seed=0)
    assert hide_tests(hidden, amount, seed=0) == hidden
    assert (
        from_mbpp(problem_to_row(hidden), PLACE).problem
        == problem_from_row(problem_to_row(hidden), PLACE)
        == hidden
    )


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(1, 9), st.integers(0, 12) | st.floats(0, 0.99), st.integers(0, 3))
def test_hiding_moves_tests_and_loses_none_and_leaves_one_in_sight(count, amount, seed):
    problem = Problem("1", "t", tuple(f"assert f({i})" for i in range(count)))
    hidden = hide_tests(problem, amount, seed)
    assert sorted(hidden.scored_tests) == sorted(problem.test_list) and hidden.test_list
    expected = int(amount) if amount >= 1 else int(amount * count)
    assert len(hidden.hidden_test_list) == min(expected, count - 1)


def test_a_hidden_test_is_scored_and_never_shown(problem):
    hidden = hide_tests(problem, 2, seed=0)
    shown = protocol("cocos").first_turn(hidden)
    assert [test in shown for test in hidden.test_list] == [True]
    assert [test in shown for test in hidden.hidden_test_list] == [False, False]
    assert as_program(hidden, "x").test_list == hidden.test_list + hidden.hidden_test_list


def test_splits_follow_the_shares_and_keep_equal_texts_together():
    converted = [
        from_mbpp({"task_id": i, "text": f"Task {i}.", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    dealt = [assign_split(one, (0.8, 0.1, 0.1), seed=0) for one in converted]
    assert 1540 < dealt.count("train") < 1660 and 150 < dealt.count("test") < 250  # 1600 and 200, five sigma
    assert dealt != [assign_split(one, (0.8, 0.1, 0.1), seed=1) for one in converted]
    shouted = [
        from_mbpp({"task_id": f"{i}!", "text": f"TASK  {i}", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    assert [assign_split(one, (0.8, 0.1, 0.1), seed=0) for one in shouted] == dealt
    assert {assign_split(one, (0, 0, 1), seed=0) for one in converted} == {"test"}
