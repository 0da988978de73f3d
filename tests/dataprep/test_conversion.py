"""Converters: they keep what a problem needs to run, do not change what it does, and make independent tests."""

import ast
import contextlib
import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.formats.conversion import (
    from_columns,
    from_humaneval,
    from_humanevalfix,
    from_kodcode,
    from_mbpp,
    tabs_to_spaces,
)
from cocos.dataprep.formats.humaneval import prompt_helpers, split_check_function
from cocos.dataprep.splits import hide_tests
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, problem_from_row, problem_to_row

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
    problem, left_out, *_ = from_humaneval(HUMANEVAL, PLACE)
    assert problem.test_list == (
        "assert add(1, 2) == 3, 'small'",
        "for n in range(3):\n        assert add(n, n) == 2 * n",
        "big = 10 ** 6\nassert add(big, 1) == big + 1",
    )
    assert left_out == ("assert True, 'reached': passes for any program",)
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


def test_a_helper_of_the_prompt_is_in_the_setup_code_and_in_each_test_that_uses_it():
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


def test_humanevalfix_shows_the_buggy_program_and_has_the_correct_one_as_reference():
    row = HUMANEVAL | {"declaration": "def add(a, b):\n", "buggy_solution": "    return a - b\n"}
    problem = from_humanevalfix(row, PLACE).problem
    assert problem.text == "Fix the bugs in this function.\n\ndef add(a, b):\n    return a - b"
    assert "return a + b" in problem.code and problem.buggy_code == "def add(a, b):\n    return a - b"
    assert (problem.bug_type, problem.failure_symptoms) == ("", "")
    kinds = {"bug_type": "operator misuse", "failure_symptoms": "incorrect output"}
    named = from_humanevalfix(row | kinds, PLACE).problem
    assert named == replace(problem, **kinds) and problem_to_row(named).items() >= kinds.items()
    with_docs = from_humanevalfix(row, PLACE, field="prompt").problem
    assert '"""Add."""' in with_docs.text and with_docs.text.endswith("    return a - b")
    assert with_docs.test_list == problem.test_list


def test_kodcode_tests_are_in_either_column_and_variants_share_a_group():
    row = {"question_id": "A_7_C", "question": "q", "solution": "def f(): return 1"}
    tests = "def test_f():\n    assert f() == 1"
    one, other = (from_kodcode(row | {name: tests}, PLACE) for name in ("test", "test_code"))
    assert one == other and one.group == "A_7"


def test_columns_are_read_by_the_given_names_and_csv_lists_as_json():
    row = {"q": "Add.", "tests": '["assert f() == 1"]', "code": "", "task_id": "7"}
    problem = from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "list").problem
    assert problem == Problem("7", "Add.", ("assert f() == 1",))
    row["tests"] = "assert f() == 1\nassert f() != 2"
    assert len(from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "lines").problem.test_list) == 2
    with pytest.raises(DataError, match="f:1: field 'test_list' is text, not a JSON list"):
        from_columns(row, PLACE, {"text": "q", "test_list": "tests"}, "list")
    files = row | {"tests": '["assert f() == 1"]', "stdin": "3\r\n", "in": '{"a/b.txt": "1\\n"}'}
    problem = from_columns(files, PLACE, {"text": "q", "test_list": "tests", "files": "in"}, "list").problem
    assert problem.stdin == "3\r\n" and problem.files == (("a/b.txt", "1\n"),)
    with pytest.raises(DataError, match="f:1: field 'files' is text, not a JSON object; write"):
        from_columns(
            files | {"in": "b.txt"}, PLACE, {"text": "q", "test_list": "tests", "files": "in"}, "list"
        )
    with pytest.raises(
        DataError, match="f:1: --columns text=query: there is no such column; the columns are q, tests"
    ):
        from_columns(row, PLACE, {"text": "query"}, "list")


LISTED = ["assert f('a') == 1", 'assert f("b") == 2']


@pytest.mark.parametrize(
    "cell",
    [
        repr(LISTED),
        f"[{LISTED[0]!r} {LISTED[1]!r}]",  # numpy writes no commas
        f"array([{LISTED[0]!r},\n       {LISTED[1]!r}], dtype=object)",
    ],
)
def test_a_list_is_read_as_python_and_numpy_write_it(cell):
    row = {"task_id": "7", "text": "Add.", "code": "", "test_list": cell}
    assert list(from_columns(row, PLACE, {}, "list").problem.test_list) == LISTED
    with pytest.raises(DataError, match="is a list, not lines of asserts; use --tests list"):
        from_columns(row | {"test_list": repr(LISTED)}, PLACE, {}, "lines")


def converted(form: str, **fields: object) -> Problem:
    return from_columns({"task_id": "7", "text": "Add."} | fields, PLACE, {}, form).problem


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        ("lines", "import math\nfrom os import path\n\nassert f(1) == math.pi\nassert f(2)"),
        ("list", ["import math", "from os import path", "assert f(1) == math.pi", "assert f(2)"]),
        ("list", '["import math", "from os import path", "assert f(1) == math.pi", "assert f(2)"]'),
    ],
)
def test_imports_at_the_head_of_the_tests_become_test_imports(form, cell):
    problem = converted(form, test_list=cell, test_imports="import re\nimport json")
    assert problem.test_imports == ("import re\nimport json", "import math", "from os import path")
    assert problem.test_list == ("assert f(1) == math.pi", "assert f(2)")


def test_a_line_that_an_assert_needs_is_part_of_its_test():
    lines = "x = f(1)\nassert x == 2\nassert f(2) == 3\nfor n in (1, 2):\n    assert f(n)"
    assert converted("lines", test_list=lines).test_list == (
        "x = f(1)\nassert x == 2",
        "assert f(2) == 3",
        "for n in (1, 2):\n    assert f(n)",
    )
    shared = "import math\ns = Stack()\ns.push(math.pi)\nassert s.top() > 3\nassert s.pop() > 3"
    assert converted("lines", test_list=shared).test_list == (shared,)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"test_list": "assert f(1)\nf(2) == 3"}, "not an assert: 'f(2) == 3'; write 'assert f(2) == 3'"),
        ({"test_list": "assert f(1)\ndef test_f():\n    assert f(2)"}, "'def test_f():'; use --tests pytest"),
        ({"test_list": "def check(f):\n    assert f(2)"}, "'def check(f):'; use --tests check"),
        ({"test_list": "class T(C):\n    def test(self):\n        self.assertTrue(f(2))"}, "'class T(C):'; use --tests pytest"),
        ({"test_list": "import math"}, "not an assert: 'import math'; write one assert per line"),
        ({"test_list": "# later"}, "contains no assert; write one assert per line"),
        ({"test_list": "assert f(1)", "test_imports": "x = 1"}, 'write ["import math"], or one import per line'),
    ],
)  # fmt: skip
def test_lines_that_check_nothing_are_refused_with_what_to_write(fields, message):
    with pytest.raises(DataError) as error:
        converted("lines", **fields)
    assert message in str(error.value)


DOUBLE = "def double(x):\n    return 2 * x"


@pytest.mark.parametrize(
    ("fields", "edits"),
    [
        ({"test_setup_code": "from your_module import double"}, ["the import of your_module"]),
        ({"test_list": ["from solution import double\nassert double(2) == 4"]}, ["the import of solution"]),
        ({"test_list": ["import solution\nassert solution.double(2) == 4"]}, ["the import of solution"]),
        ({"test_list": ["import solution as s\nassert s.double(2) == 4"]}, ["the import of solution"]),
        ({"test_imports": ["from main import double"]}, ["the import of main"]),
        ({"test_imports": ["import m"], "test_list": ["assert m.double(2) == 4"]}, ["the import of m"]),
        ({"test_imports": ["from main import *"]}, ["the import of main"]),
        ({"test_imports": ["from .main import double"]}, ["the import of .main"]),
        ({"test_imports": ["from os import *"]}, []),
        ({"code": f"```python\n{DOUBLE}\n```"}, ["the fence around the reference"]),
        ({"test_setup_code": "from math import floor"}, []),
        ({"test_setup_code": "from helpers import other"}, []),  # not the reference's: nothing is known of it
    ],
)
def test_an_import_of_the_solution_and_a_fence_around_it_are_left_out(fields, edits):
    row = {"task_id": "1", "text": "Double.", "code": DOUBLE, "test_list": ["assert double(2) == 4"]} | fields
    converted = from_columns(row, PLACE, {}, "list")
    assert list(converted.edits) == edits
    if edits:
        assert converted.problem == Problem("1", "Double.", ("assert double(2) == 4",), DOUBLE)


def test_helpers_of_pytest_become_plain_python_wherever_their_import_stands():
    raising = "with pytest.raises(TypeError):\n    double(None)"
    close = "assert double(2) == pytest.approx(4)"
    row = {"task_id": "1", "text": "Double.", "code": DOUBLE, "test_list": ["import pytest", raising, close]}
    done = from_columns(row, PLACE, {}, "list")
    assert done.edits == ("the import of pytest",) and done.problem.test_imports == ()
    for test in done.problem.test_list:
        exec(DOUBLE + "\n" + test, {})
    one = from_columns(row | {"test_list": f"import pytest\n{raising}"}, PLACE, {}, "lines").problem
    assert one.test_list == done.problem.test_list[:1]
    wrong = "def double(x):\n    return 5"
    for test in done.problem.test_list:
        with pytest.raises(AssertionError):
            exec(wrong + "\n" + test, {})


def test_a_test_function_that_is_called_and_indented_lines_are_tests():
    called = "def test():\n    assert f(1) == 2\ntest()"
    assert converted("lines", test_list=called).test_list == (called,)
    assert converted("lines", test_list="\n    assert f(1)\n    assert f(2)\n").test_list == (
        "assert f(1)",
        "assert f(2)",
    )


def test_an_import_of_the_solution_within_a_function_is_left_out_and_its_other_name_stays():
    test = "def check():\n    from solution import double as d\n    assert d(2) == 4\ncheck()"
    row = {"task_id": "1", "text": "Double.", "code": DOUBLE, "test_list": [test]}
    [edited] = from_columns(row, PLACE, {}, "list").problem.test_list
    assert edited == "def check():\n    d = double\n    assert d(2) == 4\ncheck()"


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
VALUES = st.integers(-99, 99) | st.booleans() | st.lists(st.integers(0, 9), max_size=3)


@settings(max_examples=50, deadline=None, database=None)
@given(
    cases=st.lists(st.tuples(VALUES, VALUES, CELLS), min_size=1, max_size=5),
    words=CELLS.filter(str.strip),
    amount=st.sampled_from([0, 0.5, 1, 2]),
)
def test_every_form_of_the_same_asserts_gives_the_same_tests(cases, words, amount):
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


def outcome(code: str) -> object:
    """Return what a program prints, and its variable `s`."""
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
def test_tabs_in_the_indentation_are_replaced_and_nothing_else_changes(blocks, step):
    code = "".join(written(block, "", step) for block in blocks)
    spaced = tabs_to_spaces(code)
    assert ast.dump(ast.parse(spaced)) == ast.dump(ast.parse(code)) and outcome(spaced) == outcome(code)
    assert tabs_to_spaces(spaced) == spaced


def test_tabs_become_four_spaces_if_only_tabs_indent_and_eight_if_both_do():
    assert tabs_to_spaces("def f():\n\treturn 1") == "def f():\n    return 1"
    assert tabs_to_spaces("if 1:\n  \tif 1:\n  \t\tx = 1") == "if 1:\n        if 1:\n                x = 1"
    assert (
        tabs_to_spaces("if 1:\n    x = 1\n\ty = 1") == "if 1:\n    x = 1\n\ty = 1"
    )  # not valid Python: unchanged
