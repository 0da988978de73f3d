"""Inputs that prepare_data.py cannot use: each is one line with a remedy, and nothing is written."""

import copy
import gzip
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cocos.dataprep.sources import PUBLIC_SOURCES, convert_row
from cocos.files.json_lines import DataError, Place
from tests.dataprep.test_program_sets import FUNCTIONAL
from tests.dataprep.test_program_sets import ROWS as PROGRAM_ROWS
from tests.dataprep.test_raw_files import ROWS as RAW_ROWS

ROW = {
    "task_id": 1,
    "text": "Double a number.",
    "code": "def f(x):\n    return 2 * x\n",
    "test_list": ["assert f(1) == 2", "assert f(2) == 4"],
}
CODEIO = {
    "code_sample": "def main_solution(",
    "task_description": "Double.",
    "input_output_spec": "A number.",
    "input_generator": "def generate_inputs(random): return {}",
}
WRONG_DOCTEST = b'def f(x):\n    """Say it.\n\n    >>> f(1)\n    2\n    """\n    return x\n'


def of(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def but(**fields: object) -> bytes:
    return of(ROW | fields)


def parquet() -> bytes:
    data = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([ROW] * 50), data)
    return data.getvalue()


def zipped() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("code/a.py", "x = 1")
    return data.getvalue()


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(200 << 20)


def many(path: Path) -> None:
    path.mkdir()
    for number in range(50_000):
        os.close(os.open(path / f"{number}.txt", os.O_CREAT))


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def loop_of_folders(path: Path) -> None:
    path.symlink_to("..", target_is_directory=True)


WEB_PAGE, LFS = (
    b"<!DOCTYPE html>\n<html>404</html>",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\n",
)
JSONL = "jsonl --input a.jsonl"
REPOSITORY = "repository --input a"
NO_CODE = "there is no function or class with doctests or tests"
# (what it is, the files, the words of the command, what the line says, the remedy in the line)
CASES: list[tuple[str, dict[Any, Any], str, str, str]] = [
    ("a truncated row", {"a.jsonl": json.dumps(ROW)[:-9].encode()}, JSONL, ":1: not valid JSON", "the file ends within this line: download it again"),
    ("a truncated list", {"a.json": json.dumps([ROW] * 3, indent=1)[:-30].encode()}, "jsonl --input a.json", "a.json:26: not valid JSON", "repair the list"),
    ("an object over several lines", {"a.json": json.dumps(ROW, indent=1).encode()}, "jsonl --input a.json", "a.json: its rows take several lines each", "write one row per line"),
    ("rows within an object", {"a.json": of({"data": [ROW]})}, "jsonl --input a.json", "has the columns data, but not text and test_list", "--columns text=COLUMN test_list=COLUMN"),
    ("a text that is a number", {"a.jsonl": but(text=3)}, JSONL, ":1: field 'text' is int", "expected a string"),
    ("a blank text", {"a.jsonl": but(text=" ")}, JSONL, ":1: field 'text' is missing or empty", "describe what the program should do"),
    ("no tests", {"a.jsonl": but(test_list=[])}, JSONL, ":1: field 'test_list' is missing or empty", "needs one test or more"),
    ("tests that are text", {"a.jsonl": but(test_list="assert f(1) == 2")}, JSONL, "field 'test_list' is text", "use --tests lines"),
    ("tests that are numbers", {"a.jsonl": but(test_list=[1])}, JSONL, ":1: field 'test_list'", "must be a list of strings"),
    ("a test that does not parse", {"a.jsonl": but(test_list=["assert f( =="])}, JSONL, ":1: field 'test_list': a test does not parse", "repair or remove"),
    ("a test that is a comment", {"a.jsonl": but(test_list=["# none"])}, JSONL, "the test '# none' checks nothing", "remove it"),
    ("an id that is a list", {"a.jsonl": but(task_id=[1])}, JSONL, "field 'task_id' is list", "expected a string or a whole number"),
    ("an id that occurs twice", {"a.jsonl": of(ROW, ROW)}, JSONL, "a.jsonl:2: task_id '1' occurs twice", "make every id unique"),
    ("an entry point that is a call", {"a.jsonl": but(entry_point="f(x)")}, JSONL, "field 'entry_point' is 'f(x)'", "expected a function's name"),
    ("a path out of the folder", {"a.jsonl": but(files={"../x": ""})}, JSONL, "has the path '../x'", "relative to the working folder"),
    ("files without names", {"a.jsonl": but(files=["x"])}, JSONL, "field 'files' is list", "expected an object: path -> text"),
    ("a long line", {"a.jsonl": but(text="x" * (5 << 20))}, JSONL, ":1: the line has more than 4 MiB", "or remove it"),
    ("a NUL", {"a.jsonl": but(code="a\0")}, JSONL, ":1: field 'code' holds a NUL character at character 2", "remove it"),
    ("a surrogate", {"a.jsonl": but(text="\ud83d")}, JSONL, ":1: field 'text' holds the lone surrogate U+D83D", "remove it"),
    ("latin-1", {"a.jsonl": b'{"text": "Gr\xfc\xdfe"}\n'}, JSONL, ":1: byte 0xfc is not UTF-8", "iconv -f latin1"),
    ("utf-16", {"a.jsonl": json.dumps(ROW).encode("utf-16")}, JSONL, ":1: byte 0xff is not UTF-8", "iconv -f utf-16"),
    ("nested beyond reason", {"a.jsonl": b'{"a":' + b"[" * 100_000}, JSONL, ":1: not valid JSON (maximum recursion", "download it again"),
    ("an array of arrays", {"a.jsonl": b"[[1]]"}, JSONL, "row 1: expected a JSON object", "found list"),
    ("a number", {"a.jsonl": b"7"}, JSONL, ":1: expected a JSON object", "found int"),
    ("an empty file", {"a.jsonl": b""}, JSONL, "a.jsonl: contains no rows", "expected one row or more"),
    ("blank lines", {"a.jsonl": b"\n\n"}, JSONL, "a.jsonl: contains no rows", "expected one row or more"),
    ("half a gzip file", {"a.jsonl": gzip.compress(of(ROW) * 99)[:80]}, JSONL, "cannot be read", "optionally gzipped"),
    ("a zip archive of rows", {"a.zip": zipped()}, "jsonl --input a.zip", "a.zip: is a zip archive", "unpack it"),
    ("a spreadsheet", {"a.csv": zipped()}, "csv --input a.csv", "a.csv: is a zip archive", "save a spreadsheet as CSV"),
    ("a web page", {"a.jsonl": WEB_PAGE}, JSONL, "a.jsonl: is a web page", "download the file itself"),
    ("a web page named CSV", {"a.csv": WEB_PAGE}, "csv --input a.csv", "a.csv: is a web page", "download the file itself"),
    ("a web page named Parquet", {"a.parquet": WEB_PAGE}, "parquet --input a.parquet", "is a web page", "download the file itself"),
    ("a pointer of Git LFS", {"a.jsonl": LFS}, JSONL, "is a pointer of Git LFS", "git lfs pull"),
    ("an image", {"a.jsonl": b"\x89PNG\r\n\x1a\n\0"}, JSONL, "is an image", "give a file of rows"),
    ("a program's binary", {"a.jsonl": b"\x7fELF\x02\0\0\xff\0"}, JSONL, "the file is not text", "give another file"),
    ("a file of 200 MB", {"a.jsonl": sparse}, JSONL, "a.jsonl:1: the line has more than 4 MiB", "or remove it"),
    ("a pipe", {"a.jsonl": os.mkfifo}, JSONL, "a.jsonl: is a pipe or a device", "give a file"),
    ("a device", {}, "jsonl --input /dev/zero", "/dev/zero: is a pipe or a device", "give a file"),
    ("a link to itself", {"a.jsonl": loop}, JSONL, "a.jsonl: no such file", "give the path of a JSON, JSONL, CSV or Parquet file"),
    ("a missing file", {}, JSONL, "a.jsonl: no such file", "give the path of"),
    ("an empty folder", {"a": Path.mkdir}, "jsonl --input a", "no train, validation, test or prompt file", "give a file"),
    ("two files for one split", {"a": Path.mkdir, "a/train.csv": b"", "a/train.jsonl": b""}, "jsonl --input a", "has both train.jsonl and train.csv", "keep one of them"),
    ("half a Parquet file", {"a.parquet": parquet()[:-200]}, "parquet --input a.parquet", "cannot be read as Parquet", "download it again"),
    ("a damaged Parquet file", {"a.parquet": parquet().replace(b"assert", b"\xff" * 6)[:300] + b"x" * 300 + parquet()[600:]}, "parquet --input a.parquet", "cannot be read as Parquet", "download it again"),
    ("lines that end with CR alone", {"a.jsonl": of(ROW, ROW).replace(b"\n", b"\r")}, JSONL, "not valid JSON (Extra data)", "convert it with tr '\\r' '\\n'"),
    ("CSV with a column twice", {"a.csv": b"text,text\na,b\n"}, "csv --input a.csv", "the column 'text' occurs twice", "rename one of them"),
    ("a CSV row of another length", {"a.csv": b"text,test_list\na,b,c\n"}, "csv --input a.csv", "a.csv:2: the number of fields differs", "quote fields that contain ','"),
    ("an unclosed quote", {"a.csv": b'text,test_list\n"a,[]\n'}, "csv --input a.csv", "not valid CSV", "check the quotes"),
    ("only the header of a CSV file", {"a.csv": b"text,test_list\n"}, "csv --input a.csv", "contains no rows", "expected one row or more"),
    ("tests in a cell", {"a.csv": b"text,test_list\na,assert f(1)\n"}, "csv --input a.csv", "is text, not a JSON list", "use --tests lines"),
    ("a cell that is no assert", {"a.csv": b"text,test_list\na,f(1)\n"}, "csv --input a.csv --tests lines", "a statement that is not an assert", "--drop malformed"),
    ("check() without an entry point", {"a.csv": b'text,test_list\na,"def check(c): assert c(1)"\n'}, "csv --input a.csv --tests check", "needs the field 'entry_point'", "--drop malformed"),
    ("a test file that does not parse", {"a.csv": b"text,test_list\na,def f(\n"}, "csv --input a.csv --tests pytest", "a.csv:2: field 'test_list' does not parse", "repair the row"),
    ("columns of other names", {"a.jsonl": of({"question": "a", "asserts": "b"})}, JSONL, "has the columns question, asserts", "--columns text=question test_list=asserts"),
    ("a column that is absent", {"a.jsonl": of(ROW)}, JSONL + " --columns text=question", "there is no such column", "the columns are task_id, text"),
    ("a repository that is a zip", {"a": zipped()}, REPOSITORY, "is a file, not a folder", "unpack it"),
    ("a repository that is missing", {}, REPOSITORY, "a: no such folder", "--input is the folder of the code"),
    ("a repository that links to itself", {"a": loop}, REPOSITORY, "a: no such folder", "--input is the folder of the code"),
    ("a folder without code", {"a": Path.mkdir}, REPOSITORY, "contains no Python file", "give the folder of the code"),
    ("50,000 files without code", {"a": many}, REPOSITORY, "contains no Python file", "give the folder of the code"),
    ("code without tests", {"a": Path.mkdir, "a/b.py": b"def f(): pass\n"}, REPOSITORY, NO_CODE, "give another folder"),
    ("a loop of links", {"a": Path.mkdir, "a/b": loop_of_folders, "a/c.py": loop}, REPOSITORY, "c.py:1: the file cannot be read (Too many levels", "repair the rows"),
    ("code of 200 MB", {"a": Path.mkdir, "a/b.py": sparse}, REPOSITORY, "b.py:1: the file has 200 MiB", "repair the rows"),
    ("code that is a pipe", {"a": Path.mkdir, "a/b.py": os.mkfifo}, REPOSITORY, "b.py:1: the file is a pipe or a device", "repair the rows"),
    ("code that does not parse", {"a": Path.mkdir, "a/b.py": b"def f(:"}, REPOSITORY, "b.py:1: the file does not parse", "repair the rows"),
    ("a file name that is not UTF-8", {"a": Path.mkdir, b"a/\xff.py": WRONG_DOCTEST}, REPOSITORY, r"\udcff.py:1: the file has a name that is not UTF-8", "repair the rows"),
    ("code of which no reference passes", {"a": Path.mkdir, "a/b.py": WRONG_DOCTEST}, REPOSITORY + " --splits 1 0 0", "no row is left (1 failing)", "--drop fewer kinds"),
    ("a profile that is missing", {"a.jsonl": of(ROW)}, JSONL + " --profile p.csv --solved 0 1", "p.csv: cannot be read", "expected UTF-8 CSV"),
    ("a profile of other columns", {"a.jsonl": of(ROW), "p.csv": b"a,b\n1,2\n"}, JSONL + " --profile p.csv --solved 0 1", "expected the columns task_id, samples and right", "scripts/select_problems.py"),
    ("a profile of other problems", {"a.jsonl": of(ROW), "p.csv": b"task_id,samples,right\n9,2,1\n"}, JSONL + " --profile p.csv --solved 0 1", "--profile p.csv contains none of the problems", "give the profile of this set"),
    ("a profile of other problems, without a range", {"a.jsonl": of(ROW), "p.csv": b"task_id,samples,right\n9,2,1\n"}, JSONL + " --profile p.csv", "--profile p.csv contains none of the problems", "give the profile of this set"),
    ("a solve rate in per cent", {"a.jsonl": but(solve_rate=50)}, JSONL, "field 'solve_rate' is 50", "a number from 0 to 1"),
    ("a solve rate in words", {"a.csv": b'text,test_list,solve_rate\nf,"[""assert f(1) == 1""]",half\n'}, "csv --input a.csv", "field 'solve_rate' is 'half'", "a number from 0 to 1"),
    ("a benchmark that is missing", {"a.jsonl": of(ROW)}, JSONL + " --against b.jsonl", "--against b.jsonl: no such file", "give FILE, NAME or NAME=FILE"),
    ("a benchmark of other rows", {"a.jsonl": of(ROW), "b.jsonl": of({})}, JSONL + " --against b.jsonl", "b.jsonl:1: field 'text' is missing", "describe what the program should do"),
    ("a benchmark under another's name", {"a.jsonl": of(ROW), "b.jsonl": of(ROW)}, JSONL + " --against humaneval=b.jsonl", "b.jsonl:1: field 'prompt' is missing", "check that SOURCE names this data set"),
    ("a row of another public set", {"a.jsonl": of(RAW_ROWS["kodcode"][0])}, "mbpp --input a.jsonl", "a raw row of the public set kodcode", "cocos prepare kodcode --input a.jsonl"),
    ("DebugBench as a file", {"a.json": b"[]"}, "debugbench --input a.json", "contains no python3_*.json", "--input is a folder with both"),
    ("DebugBench without the tests", {"a": Path.mkdir, "a/python3_x.json": b"[]"}, "debugbench --input a", "contains no LeetCodeDataset-*.jsonl", "--input is a folder with both"),
    ("LiveCodeBench without a file", {}, "livecodebench", "--input is missing", "give the livecodebench file"),
    ("CodeI/O that does not parse", {"a.jsonl": of(CODEIO)}, "codeio --input a.jsonl --sandbox rlimits", "no base input gives a test", "SyntaxError"),
    ("a name that is no set", {}, "mpbb", "unknown source 'mpbb'", "choose one of mbpp"),
    ("an output that is a file", {"a.jsonl": of(ROW), "f": b""}, JSONL + " --output_dir f", "--output_dir f is a file", "give a folder"),
    ("an output below a file", {"a.jsonl": of(ROW)}, JSONL + " --output_dir a.jsonl/x", "a.jsonl is a file", "choose another folder"),
    ("an output of a long name", {"a.jsonl": of(ROW)}, JSONL + f" --output_dir {'x' * 300}", "cannot be written to (File name too long", "choose another folder"),
]  # fmt: skip


# Many files take half a minute to make.
PARAMETERS = [
    pytest.param(*case[1:], id=case[0], marks=[pytest.mark.nightly] if "50,000" in case[0] else [])
    for case in CASES
]


@pytest.mark.parametrize(("files", "words", "what", "remedy"), PARAMETERS)
def test_a_bad_input_is_one_line_with_a_remedy_and_nothing_is_written(
    prepare, tmp_path, monkeypatch, capsys, files, words, what, remedy
):
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        path = Path(os.fsdecode(name))
        path.write_bytes(content) if isinstance(content, bytes) else content(path)
    before = sorted(os.listdir())
    output = () if "--output_dir" in words else ("--output_dir", "out")
    assert prepare(*words.split(), *output) == 2
    # A progress bar ends with a carriage return and a line end of its own.
    [line] = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert what in line and remedy in line
    assert sorted(os.listdir()) == before


WRONG_VALUES = (
    *(None, 3, 1.5, True, [], {}, "", "x", "def f(", [None], [3], ["x"], [{}], {"a": 1}, "\0", "\ud800"),
    *("[" * 5000, "class Solution:\n    pass", "[1]", '{"a": 1}', "def check(candidate):\n    pass"),
    "x = " + "(" * 300 + ")" * 300,
)
ROWS_OF_SETS = {
    **PROGRAM_ROWS,
    **{name: rows[0] for name, rows in RAW_ROWS.items()},
    "livecodebench": FUNCTIONAL,
    "codeio": CODEIO,
}


@pytest.mark.parametrize("name", ROWS_OF_SETS)
def test_a_column_of_any_content_gives_a_problem_or_an_error_with_its_place(name):
    row, source = ROWS_OF_SETS[name], PUBLIC_SOURCES[name]
    changed = [row | {column: value} for column in row for value in WRONG_VALUES]
    changed += [{other: row[other] for other in row if other != column} for column in row]
    refused = 0
    for number, one in enumerate(changed, start=1):
        try:
            convert_row(source, copy.deepcopy(one), Place("a.jsonl", number))
        except DataError as error:
            assert str(error).startswith(f"a.jsonl:{number}: ")
            refused += 1
    assert refused > len(changed) / 4
