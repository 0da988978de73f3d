"""Problem files: what is read, what is refused and in which words, what is written back."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.preparation import read_splits
from cocos.files.run_record import sha256
from cocos.problems import DataError, Problem, load_problems, save_problems
from tests.support.paths import dataset

ROW = {"task_id": 7, "text": "Write f.", "code": "def f():\n    return 1", "test_list": ["assert f() == 1"]}


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_problems(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


def test_all_974_problems_of_mbpp_are_read_with_their_facts():
    path = dataset("mbpp.jsonl")
    assert sha256(path).startswith("ccf64ceae9c5403b")
    problems = {problem.task_id: problem for problem in load_problems(path)}
    assert list(problems) == [str(number) for number in range(1, 975)]
    assert [i for i, p in problems.items() if p.test_setup_code] == ["367", "927"]
    assert problems["367"].setup.startswith("root = Node(1)") and "class Node" in problems["367"].code
    assert sum(bool(p.challenge_test_list) for p in problems.values()) == 11
    assert not any("\r" in p.code for p in problems.values())  # 972 rows of the file have CRLF, 4 end in CR


def test_all_427_problems_of_sanitized_mbpp_are_read_with_their_facts():
    path = dataset("sanitized-mbpp.json")
    assert sha256(path).startswith("ca95deaa9a01ef0a")
    problems = load_problems(path)
    ids = [int(problem.task_id) for problem in problems]
    splits = [range(1, 11), range(11, 511), range(511, 601), range(601, 975)]
    assert [sum(i in split for i in ids) for split in splits] == [7, 257, 43, 120]  # 427 together
    with_imports = [problem for problem in problems if problem.test_imports]
    assert len(with_imports) == 13 and {problem.setup for problem in with_imports} == {"import math"}
    assert problems[0].text == "Write a function to find the shared elements from the given two lists."


def test_a_json_list_json_lines_and_their_gzipped_forms_say_the_same(tmp_path):
    rows = [ROW, {**ROW, "task_id": 8}]
    lines = written(tmp_path / "lines.jsonl", *rows)
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(rows, indent=2))
    zipped = tmp_path / "lines.jsonl.gz"
    zipped.write_bytes(gzip.compress(lines.read_bytes()))
    expected = [Problem(i, "Write f.", ("assert f() == 1",), "def f():\n    return 1") for i in ("7", "8")]
    assert load_problems(lines) == load_problems(listed) == load_problems(zipped) == expected


def test_a_byte_order_mark_blank_lines_and_crlf_line_ends_are_harmless(tmp_path):
    path = tmp_path / "windows.jsonl"
    line = json.dumps({**ROW, "code": "def f():\r\n    return 1\r", "test_list": ["assert f() == 1\r\n"]})
    path.write_bytes(b"\xef\xbb\xbf" + line.encode() + b"\r\n\r\n\r\n")
    [problem] = load_problems(path)
    assert problem.code == "def f():\n    return 1\n" and problem.test_list == ("assert f() == 1\n",)


def test_the_text_may_be_called_prompt_and_a_row_without_id_is_named_by_its_number(tmp_path):
    rows = [{"prompt": f"Write {name}.", "test_list": ["assert True"]} for name in "fg"]
    path = written(tmp_path / "p.jsonl", *rows)
    assert [(p.task_id, p.text, p.code) for p in load_problems(path)] == [
        ("1", "Write f.", ""),
        ("2", "Write g.", ""),
    ]
    path = tmp_path / "p.json"
    path.write_text(json.dumps(rows))
    assert [p.task_id for p in load_problems(path)] == ["1", "2"]


def test_setup_is_the_imports_and_then_the_setup_code():
    problem = Problem(
        "1", "t", ("assert True",), test_setup_code="n = 1", test_imports=("import math", "", "import re")
    )
    assert problem.setup == "import math\nimport re\nn = 1"
    assert Problem("1", "t", ("assert True",)).setup == ""


BAD_ROWS = [
    ("an array", [1], "expected a JSON object, found list"),
    ("a number", 3, "expected a JSON object, found int"),
    ("no text", {"test_list": ["assert True"]}, "field 'text' is missing or empty; describe what"),
    ("blank text", {**ROW, "text": " \n"}, "field 'text' is missing or empty; describe what"),
    ("text null", {**ROW, "text": None}, "field 'text' is missing or empty; describe what"),
    ("tests null", {**ROW, "test_list": None}, "field 'test_list' is missing or empty; a problem needs one test"),
    ("text a number", {**ROW, "text": 3}, "field 'text' is int; expected a string"),
    ("code a list", {**ROW, "code": ["def f(): 1"]}, "field 'code' is list; expected a string"),
    ("setup a number", {**ROW, "test_setup_code": 0}, "field 'test_setup_code' is int; expected a string"),
    ("no tests", {"text": "Write f."}, "field 'test_list' is missing or empty; a problem needs one test"),
    ("empty tests", {**ROW, "test_list": []}, "field 'test_list' is missing or empty; a problem needs one test"),
    ("tests a string", {**ROW, "test_list": "assert f() == 1"}, "field 'test_list' must be a list of strings"),
    ("a test a number", {**ROW, "test_list": ["assert f()", 1]}, "field 'test_list' must be a list of strings"),
    ("imports a string", {**ROW, "test_imports": "import re"}, "field 'test_imports' must be a list of strings"),
    ("a broken test", {**ROW, "test_list": ["assert f( == 1"]}, "a test does not parse"),
    ("a null byte in a test", {**ROW, "test_list": ["assert f()\0"]}, "field 'test_list' holds a NUL character at character 11"),
    ("a lone surrogate", {**ROW, "code": "x = '\ud800'"}, "field 'code' holds the lone surrogate U+D800"),
    ("a broken hidden test", {**ROW, "hidden_test_list": ["assert ("]}, "field 'hidden_test_list': a test does"),
    ("an entry point in words", {**ROW, "entry_point": "the f"}, "expected a function's name"),
    ("a broken challenge", {**ROW, "challenge_test_list": ["assert ("]}, "a test does not parse"),
    ("an empty test", {**ROW, "test_list": ["assert f() == 1", ""]}, "the test '' checks nothing; remove it"),
    ("stdin a list", {**ROW, "stdin": ["3"]}, "field 'stdin' is list; expected a string"),
    ("a surrogate in stdin", {**ROW, "stdin": "3\ud800"}, "field 'stdin' holds a lone surrogate at character 2"),
    ("files a list", {**ROW, "files": ["a"]}, "field 'files' is list; expected an object: path -> text"),
    ("a file's text null", {**ROW, "files": {"a": None}}, "field 'files', 'a' is NoneType; expected a string"),
    ("a file outside", {**ROW, "files": {"b/../../a": ""}}, "has the path 'b/../../a'; expected one that is relative"),
    ("an absolute file", {**ROW, "files": {"/etc/a": ""}}, "has the path '/etc/a'; expected one that is relative"),
    ("a file without name", {**ROW, "files": {"a/": ""}}, "has the path 'a/'; expected one that is relative"),
    ("a file as folder", {**ROW, "files": {"a": "", "a/b": ""}}, "'a' is a file and a folder; rename one"),
    ("a whole program and a call", {**ROW, "test_list": [*ROW["test_list"], "assert program_output('1') == '2'"]}, "as assert program_output('INPUT') == 'OUTPUT', with two texts"),
    ("an output that is no text", {**ROW, "test_list": ["assert int(program_output('1')) == 2"]}, "and give its problem no other tests"),
    ("a comment as test", {**ROW, "test_list": ["# TODO"]}, "the test '# TODO' checks nothing; remove it"),
]  # fmt: skip


# `datasets` writes null for columns of other rows, pandas NaN, and a CSV file has an empty id.
@pytest.mark.parametrize(("absent", "task_id"), [(None, None), (float("nan"), float("nan")), (None, "")])
def test_a_null_is_a_field_that_is_not_there(tmp_path, absent, task_id):
    row = {**ROW, "task_id": task_id, "code": absent, "entry_point": absent, "hidden_test_list": absent}
    [problem] = load_problems(written(tmp_path / "null.jsonl", row))
    assert problem == Problem(task_id="1", text=ROW["text"], test_list=tuple(ROW["test_list"]))


@pytest.mark.parametrize(("row", "words"), [bad[1:] for bad in BAD_ROWS], ids=[bad[0] for bad in BAD_ROWS])
def test_a_malformed_row_is_refused_by_file_line_and_remedy(tmp_path, row, words):
    path = written(tmp_path / "bad.jsonl", ROW, row)
    message = refusal(path)
    assert message.startswith(f"{path}:2: ") and words in message
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([ROW, row]))
    message = refusal(path)
    assert message.startswith(f"{path}: row 2: ") and words in message


def test_an_id_that_occurs_twice_is_refused_even_as_number_and_string(tmp_path):
    path = written(tmp_path / "twice.jsonl", ROW, {**ROW, "task_id": "7"})
    assert refusal(path) == f"{path}:2: task_id '7' occurs twice; make every id unique"


LIST = json.dumps([ROW, {**ROW, "task_id": 8}], indent=1).encode()
LINES = (json.dumps(ROW) + "\n" + json.dumps({**ROW, "task_id": 8})).encode()
BAD_FILES = [
    ("empty", b"", "contains no problems; expected one MBPP-format row or more"),
    ("blank lines only", b"\n\n", "contains no problems; expected one MBPP-format row or more"),
    ("an empty list", b"[]", "contains no problems; expected one MBPP-format row or more"),
    ("a list cut off in its last line", LIST[:-8], "not valid JSON"),
    ("lines cut off in line 2", LINES[:-8], ":2: not valid JSON"),
    (
        "rows of several lines",
        json.dumps(ROW, indent=1).encode(),
        "write one row per line, for example with jq -c .",
    ),
    ("no JSON at all", b"task_id,text\n1,Write f.", ":1: not valid JSON"),
    ("latin-1", '{"text": "Größe"}'.encode("latin-1"), "expected UTF-8 JSON or JSONL, optionally gzipped"),
    ("gzip cut off", gzip.compress(LINES * 50)[:60], "expected UTF-8 JSON or JSONL, optionally gzipped"),
    ("gzip with a flipped byte", None, "expected UTF-8 JSON or JSONL, optionally gzipped"),
]


@pytest.mark.parametrize(
    ("content", "words"), [bad[1:] for bad in BAD_FILES], ids=[bad[0] for bad in BAD_FILES]
)
def test_an_unusable_file_is_refused_by_name_and_remedy(tmp_path, content, words):
    if content is None:
        content = bytearray(gzip.compress(LINES))
        content[10] ^= 0xFF  # the first byte after the gzip header: no such kind of deflate block
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert words in refusal(path)


def test_a_list_that_is_cut_off_names_the_line_at_which_it_breaks(tmp_path):
    path = tmp_path / "cut.json"
    path.write_bytes(LIST.split(b'"code"')[0])  # [, {, "task_id", "text", and a lone indentation: line 5
    assert refusal(path).startswith(f"{path}:5: not valid JSON")


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path):
    assert "no such file; give the path of a JSON or JSONL file" in refusal(tmp_path / "absent.jsonl")
    assert "is a folder; give a file" in refusal(tmp_path)


data = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # keeps NUL and CR, unlike source
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=20)
tests = st.sampled_from(
    ["assert f(1) == 2", "assert f('é') is None", "x = f(2)\nassert x", "assert True, '\u2028'"]
)
problems = st.builds(
    Problem,
    task_id=words.filter(bool),
    text=words.filter(str.strip),
    test_list=st.lists(tests, min_size=1, max_size=3).map(tuple),
    code=words,
    test_setup_code=words,
    test_imports=st.lists(words, max_size=2).map(tuple),
    challenge_test_list=st.lists(tests, max_size=2).map(tuple),
    hidden_test_list=st.lists(tests, max_size=2).map(tuple),
    entry_point=st.sampled_from(["", "f"]),
    solve_rate=st.none() | st.floats(0, 1),
    stdin=data,
    files=st.dictionaries(st.sampled_from(["a.txt", "b/c.csv", "b/d/é"]), data).map(
        lambda d: tuple(d.items())
    ),
)


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(problems, min_size=1, max_size=4, unique_by=lambda problem: problem.task_id))
def test_what_is_saved_is_read_back_unchanged(tmp_path_factory, saved):
    path = tmp_path_factory.mktemp("saved") / "round_trip.jsonl"
    save_problems(saved, path)
    assert load_problems(path) == saved
    path.rename(path.with_name("train.jsonl"))
    assert list(read_splits(path.parent)) == [("train", problem) for problem in saved]


def test_real_problems_survive_saving(tmp_path):
    real = load_problems(dataset("mbpp.jsonl"))
    save_problems(real, tmp_path / "copy.jsonl")
    assert load_problems(tmp_path / "copy.jsonl") == real


@pytest.mark.parametrize(
    ("code", "tests", "entry_point", "signature"),
    [
        ("def f(a, b=2):\n    return a", ("assert f(1) == 1",), "", "def f(a, b=2):"),
        ("import math\n\ndef g(x):\n    return x\n\ndef f(a):\n    return g(a)", ("assert f(1) == 1",), "", "def f(a):"),
        ("@cache\ndef f(\n    a: int,\n    b: str = 'x\\ny',\n) -> int:\n    '''Doc.'''\n    return a", ("assert f(1) == 1",), "", "def f(a: int, b: str='x\\ny') -> int:"),
        ("def f(a): return secret(a)", ("assert f(1) == 1",), "", "def f(a):"),
        ("class Stack(list):\n    def push(self, x): ...", ("s = Stack()\nassert not s",), "", "class Stack(list):"),
        ("def f(a):\n    return a\n\ndef f(b):\n    return b", ("assert f(1) == 1",), "f", "def f(b):"),
        ("def f(a):\n    return a", ("assert g(1) == 1",), "", ""),
        ("", ("assert f(1) == 1",), "f", ""),
        ("def f(", ("assert f(1) == 1",), "f", ""),
    ],
)  # fmt: skip
def test_a_signature_is_the_first_line_of_what_the_tests_call_and_never_more(
    code, tests, entry_point, signature
):
    assert Problem("1", "Do it.", tests, code, entry_point=entry_point).signature == signature
    assert "\n" not in signature
