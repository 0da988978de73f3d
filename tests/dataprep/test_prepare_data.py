"""scripts/prepare_data.py: what it writes and refuses; an interrupted run leaves nothing behind."""

import csv
import gzip
import io
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet
import pytest

import cocos.dataprep
from cocos.problems import load_problems
from tests.support.commands import free_port
from tests.support.data import contents, lines
from tests.support.executor import offered
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

SCRIPT = ROOT / "scripts/prepare_data.py"
ROW = {
    "task_id": 1,
    "text": "Double a number.",
    "code": "def f(x):\r\n\treturn 2 * x\r\n",
    "test_list": ["assert f(1) == 2", "assert f(2) == 4"],
}


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows(count: int) -> list[dict]:
    return [ROW | {"task_id": i, "text": f"Task {i}."} for i in range(count)]


def test_the_map_of_the_package_names_every_module():
    modules = {path.name for path in (ROOT / "cocos/dataprep").rglob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"^ +(\w+\.py) ", cocos.dataprep.__doc__, re.MULTILINE)) == modules


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_split(prepare, tmp_path):
    data = written(tmp_path / "mine.jsonl", *rows(40))
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        words = ("--output_dir", tmp_path / name, "--seed", seed, "--checks")
        assert prepare("jsonl", "--input", data, *words) == 0
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a")["train.jsonl"] != contents(tmp_path / "c")["train.jsonl"]
    found = [p for split in ("train", "validation", "test") for p in lines(tmp_path / f"a/{split}.jsonl")]
    assert sorted(int(p["task_id"]) for p in found) == list(range(40))
    assert found[0]["code"] == "def f(x):\n    return 2 * x\n"


def test_converting_the_output_again_changes_nothing(prepare, tmp_path):
    data = written(tmp_path / "mine.jsonl", *rows(40))
    hidden = ("--hide_tests", 1, "--checks")
    assert prepare("jsonl", "--input", data, "--output_dir", tmp_path / "once", *hidden) == 0
    assert prepare("jsonl", "--input", tmp_path / "once", "--output_dir", tmp_path / "twice", *hidden) == 0
    once, twice = contents(tmp_path / "once"), contents(tmp_path / "twice")
    assert {n: b for n, b in once.items() if n.endswith("l")} == {
        n: b for n, b in twice.items() if n.endswith("l")
    }
    assert all(
        len(p.test_list) == len(p.hidden_test_list) == 1 for p in load_problems(tmp_path / "once/train.jsonl")
    )


def test_the_manifest_accounts_for_every_row_and_byte(prepare, tmp_path):
    bad = [
        ROW | {"task_id": 90, "test_list": []},
        ROW | {"task_id": 91, "text": "Fails.", "code": "def f(x): return x"},
    ]
    data = written(tmp_path / "mine.jsonl", *rows(3), *bad, ROW | {"task_id": 92, "text": "task 1?"})
    drop = ("--drop", "malformed", "failing", "duplicate", "leak")
    assert (
        prepare("jsonl", "--input", data, "--output_dir", tmp_path / "out", *drop, "--splits", 1, 0, 0) == 0
    )
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    dropped = lines(tmp_path / "out/dropped.jsonl")
    assert [(row["kind"], row.get("task_id", row.get("place"))) for row in dropped] == [
        ("malformed", "mine.jsonl:4"),
        ("failing", "91"),
        ("duplicate", "1"),  # every row has row 0's code
        ("duplicate", "2"),
        ("duplicate", "92"),
    ]
    assert manifest["rows_in"] == 6 == manifest["rows_out"] + sum(manifest["dropped"].values())
    assert manifest["dropped"] == {"malformed": 1, "failing": 1, "duplicate": 3}
    assert len(manifest["input"][0]["sha256"]) == 64 and manifest["isolation"]
    assert manifest["output"]["train.jsonl"]["problems"] == 1 == len(lines(tmp_path / "out/train.jsonl"))
    card = (tmp_path / "out/README.md").read_text()
    assert "Rows read: 6; in these files: 1; dropped: 5 (listed in dropped.jsonl)." in card
    assert str(tmp_path) not in card + json.dumps(manifest) + json.dumps(dropped)


def test_rows_with_in_child_tests_are_named_counted_and_dropped_and_packages_recorded(prepare, tmp_path):
    awaited = "import asyncio\nassert asyncio.run(g(1)) == 2"
    marked = {"code": "async def g(x):\n    return 2 * x", "text": "Await.", "test_list": [awaited]}
    summed = {"code": "import numpy\ndef h(x):\n    return int(numpy.sum(x))", "text": "Sum."}
    data = written(
        tmp_path / "mine.jsonl",
        ROW,
        ROW | marked | {"task_id": 2},
        ROW | summed | {"task_id": 3, "test_list": ["assert h([1, 2]) == 3", "assert h([5]) == 5"]},
    )
    level = offered("namespaces", "seccomp", "rlimits")  # an image of docker may have another Python
    options = ("--program_packages", "numpy", "--program_memory_mb", 2048, "--sandbox", level)
    output = ("--output_dir", tmp_path / "out", "--splits", 1, 0, 0)
    assert prepare("jsonl", "--input", data, *output, *options, "--drop", "in_child") == 0
    assert [row["task_id"] for row in lines(tmp_path / "out/train.jsonl")] == ["1", "3"]
    [dropped] = lines(tmp_path / "out/dropped.jsonl")
    assert dropped["kind"] == "in_child" and dropped["detail"].startswith("1 of 1 tests; test 1: ")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["findings"] == manifest["dropped"] == {"in_child": 1}
    numpy = f"numpy {version('numpy')}"
    assert manifest["packages"] == [numpy] and manifest["options"]["program_packages"] == ["numpy"]
    card = (tmp_path / "out/README.md").read_text()
    assert "- 1 in_child: only the program's own process" in card and f"(isolation: {level}, {numpy})" in card


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_refused(prepare, tmp_path, capsys):
    data = written(tmp_path / "bad.jsonl", ROW)
    data.chmod(0)
    assert prepare("jsonl", "--input", data, "--output_dir", tmp_path / "out") == 2
    assert "cannot be read (" in capsys.readouterr().err


def test_missing_files_unknown_sources_and_existing_folders_are_refused(prepare, tmp_path, capsys):
    data = written(tmp_path / "mine.jsonl", ROW)
    far = written(tmp_path / "x.jsonl", ROW | {"task_id": 2000})
    for words, expected in (
        (("jsonl", "--input", tmp_path / "absent.jsonl"), "absent.jsonl: no such file"),
        (("jsonl",), "--input is missing"),
        (("mpbb", "--input", data), "unknown source 'mpbb'; choose one of mbpp"),
        (("mbpp", "--input", far), "MBPP's ids are 1 to 974"),
        (("jsonl", "--input", data, "--columns", "a=b"), "--columns: a=b: give FIELD=COLUMN"),
        (("jsonl", "--input", data, "--columns", "title=text"), "the field comes first; give text=title"),
        (("jsonl", "--input", data, "--columns", "text=a", "text=b"), "--columns names text 2 times; give"),
        (("jsonl", "--input", data, "--hide_tests", 1.5), "--hide_tests 1.5: give a whole number"),
        (("humaneval", "--input", data), "mine.jsonl:1: field 'prompt' is missing"),
    ):
        assert prepare(*words, "--output_dir", tmp_path / "out") == 2
        assert expected in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full/note").write_text("mine")
    assert prepare("jsonl", "--input", data, "--output_dir", tmp_path / "full") == 2
    assert "full contains note; choose a new or an empty folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and contents(tmp_path / "full") == {"note": b"mine"}


def test_findings_have_the_users_ids_and_a_command_that_leaves_their_rows_out(prepare, tmp_path, capsys):
    rows = [ROW | {"ID": f"mine-{number}"} for number in range(13)]
    rows = [{name: value for name, value in row.items() if name != "task_id"} for row in rows]
    words = ("jsonl", "--input", written(tmp_path / "mine.jsonl", *rows), "--splits", 1, 0, 0)
    assert prepare(*words, "--checks", "overlap", "--output_dir", tmp_path / "out") == 0
    *_, last, more, command = [*capsys.readouterr().out.splitlines()]
    assert "duplicate: train/mine-" in last and more == "  and 2 more in findings.jsonl"
    python, verb, *again = shlex.split(command.removeprefix("to leave these rows out: "))
    assert (python, verb) == ("cocos", "prepare") and prepare(*again) == 0
    assert [problem.task_id for problem in load_problems(tmp_path / "out_dropped/train.jsonl")] == ["mine-0"]


def test_wrong_rows_are_named_together_equal_ones_once(prepare, tmp_path, capsys):
    data = written(tmp_path / "a.jsonl", ROW, ROW | {"text": 3}, ROW, ROW | {"text": 4})
    assert prepare("jsonl", "--input", data, "--output_dir", tmp_path / "out") == 2
    errors = capsys.readouterr().err
    assert "a.jsonl:2 (also line 4): field 'text' is int; expected a string; " in errors
    assert "a.jsonl:3: task_id '1' occurs twice; make every id unique; --drop malformed leaves them" in errors


def refusal(prepare, capsys, *words) -> str:
    """Return the one line in which prepare_data.py refuses its arguments."""
    assert prepare(*words) == 2
    streams = capsys.readouterr()
    [line] = streams.err.splitlines()
    assert line.startswith("error: ") and not streams.out
    return line.removeprefix("error: ").removesuffix(" (COCOS_TRACEBACK=1 shows where)")


def test_shares_that_do_not_add_up_to_1_are_refused_with_shares_that_do(prepare, tmp_path, capsys):
    data = written(tmp_path / "mine.jsonl", *rows(40))
    words = ("jsonl", "--input", data, "--output_dir", tmp_path / "out")
    for shares, expected in (
        ((8, 1, 1), "--splits 8 1 1: the shares add up to 10, not 1; give for example 0.8 0.1 0.1"),
        (
            (0.5, 0.25, 0),
            "--splits 0.5 0.25 0: the shares add up to 0.75, not 1; give for example 0.667 0.333",
        ),
        ((0, 0, 0), "--splits 0 0 0: the shares add up to 0, not 1; give for example 0.8 0.1 0.1"),
        ((1.5, -0.5, 0), "--splits 1.5 -0.5 0: give three shares of 0 or more that add up to 1"),
        (("nan", 0, 1), "--splits nan 0 1: give three shares of 0 or more"),
        (("0.8", "0.2"), "--splits: expected 3 arguments; see --help"),
    ):
        assert refusal(prepare, capsys, *words, "--splits", *shares).startswith(expected)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]
    # The digits of a share are not its value: 0.7 + 0.2 + 0.1 is not exactly 1.
    assert prepare(*words, "--checks", "--splits", 0.7, 0.2, 0.1) == 0


def test_a_split_without_a_problem_is_refused_with_splits_for_few_problems(prepare, tmp_path, capsys):
    words = ("jsonl", "--input", written(tmp_path / "mine.jsonl", ROW), "--output_dir", tmp_path / "out")
    line = refusal(prepare, capsys, *words)
    assert line.startswith(
        "the shares 0.8 0.1 0.1 leave validation and test without a problem (there are 1, "
    )
    assert "give --splits 0 0 1 (all in test.jsonl) or 1 0 0 (all in train.jsonl)" in line
    assert not (tmp_path / "out").exists()
    assert prepare(*words, "--checks", "--splits", 0, 0, 1) == 0
    assert len(load_problems(tmp_path / "out/test.jsonl")) == 1
    capsys.readouterr()
    again = ("jsonl", "--input", tmp_path / "out", "--output_dir", tmp_path / "again", "--splits", 1, 0, 0)
    assert f"{tmp_path / 'out'} has its own splits; leave the option out" in refusal(prepare, capsys, *again)


def test_columns_of_other_names_are_listed_with_an_example_for_this_file(prepare, tmp_path, capsys):
    own = {"id": 1, "question": "Double.", "answer": "def f(x): return 2 * x", "asserts": "assert f(1) == 2"}
    (tmp_path / "own.csv").write_text(",".join(own) + "\n" + ",".join(map(str, own.values())) + "\n")
    written(tmp_path / "own.jsonl", own)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([own]), tmp_path / "own.parquet")
    out = ("--output_dir", tmp_path / "out")
    for kind, place in (("csv", ":2"), ("jsonl", ":1"), ("parquet", ": row 1")):
        file = tmp_path / f"own.{kind}"
        assert refusal(prepare, capsys, kind, "--input", file, *out) == (
            f"{file}{place}: has the columns id, question, answer, asserts, but not text and test_list; "
            "name them, for example: --columns text=question test_list=asserts"
        )
    given = ("csv", "--input", tmp_path / "own.csv", *out, "--columns", "text=question")
    assert refusal(prepare, capsys, *given).endswith("--columns text=question test_list=asserts")
    assert "use --tests lines" in refusal(prepare, capsys, *given, "test_list=asserts")
    splits = ("--splits", 0, 0, 1, "--checks")
    assert prepare(*given, "test_list=asserts", "--tests", "lines", *splits) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "columns that are not used: answer; no problem has a reference, so none was checked; "
        "name its column: --columns text=question test_list=asserts code=answer"
    )


def test_the_first_example_of_the_page_prints_what_the_page_says(prepare, tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs/data.md").read_text()
    table, command = re.findall(r"```(?:csv)?\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "mine.csv").write_text(table)
    monkeypatch.chdir(tmp_path)
    cocos, name, *words = shlex.split(command.replace("\\\n", " "))
    assert (cocos, name) == ("cocos", "prepare") and prepare(*words) == 0
    assert f"| `{capsys.readouterr().out.strip()}` |" in page
    problems = load_problems("data/mine/test.jsonl")
    assert [(p.task_id, len(p.test_list)) for p in problems] == [("double", 2), ("shout", 2)]
    assert not Path("data/mine/findings.jsonl").exists()


def test_a_csv_file_in_another_encoding_is_refused_with_the_command_that_converts_it(
    prepare, tmp_path, capsys
):
    for content, expected in (
        (b"t\xfcxt,test_list\n", ":1: byte 0xfc is not UTF-8; expected UTF-8 CSV"),
        (b"text,test_list\na,b\n\xfc,d\n", ":3: byte 0xfc is not UTF-8; expected UTF-8 CSV"),
        ("text,test_list\n".encode("utf-16"), "convert it with iconv -f utf-16 -t utf-8"),
    ):
        (tmp_path / "bad.csv").write_bytes(content)
        words = ("csv", "--input", tmp_path / "bad.csv", "--output_dir", tmp_path / "o")
        line = refusal(prepare, capsys, *words)
        assert expected in line and "bad.csv" in line


WRONG = """
--ouput_dir x | unknown option: --ouput_dir; did you mean --output_dir?
--output_dir x --colums a=b | unknown option: --colums; did you mean --columns?
 | --output_dir is missing; see --help
--output_dir x --checks overlp | --checks: invalid choice: 'overlp' (choose from
--output_dir x --drop failling | --drop: invalid choice: 'failling' (choose from
--output_dir x --hide_tests nan | --hide_tests nan: give a whole number of tests
--output_dir x --executor_workers 0 | --executor_workers is 0; give 1 or more
--output_dir x --program_timeout_s 0 | --program_timeout_s is 0.0; give a number above 0
--output_dir x --sandbox dockr | --sandbox: invalid choice: 'dockr' (choose from
--output_dir x --against no.jsonl | --against no.jsonl: no such file; give FILE, NAME
--output_dir x --against mbp=no | --against mbp=no: unknown benchmark 'mbp'; choose
--output_dir x --revision v1 | --revision selects a commit on the hub; leave it out
--output_dir x --drop malformed --tests check | none of the 1 rows is valid; the
"""


def test_options_are_refused_by_name_and_misspelt_ones_with_the_nearest(prepare, tmp_path, capsys):
    data = ("jsonl", "--input", written(tmp_path / "mine.jsonl", ROW))
    for words, expected in (line.split(" | ") for line in WRONG.strip("\n").splitlines()):
        assert refusal(prepare, capsys, *data, *shlex.split(words)).startswith(expected)
    line = refusal(prepare, capsys, *data, "--output_dir", data[2] / "x")
    assert line == f"--output_dir {data[2] / 'x'}: {data[2]} is a file; choose another folder"
    assert refusal(prepare, capsys, "chek", "data").startswith(
        "SOURCE: unknown source 'chek'; did you mean check?"
    )
    missing = ("public", "--output_dir", tmp_path / "p", "--input", tmp_path / "absent")
    assert refusal(prepare, capsys, *missing).startswith(f"--input {tmp_path / 'absent'}: no such folder")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]


def test_the_help_fits_80_columns_and_ends_with_examples(prepare, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert prepare("--help") == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n{title}:\n" in text for title in ("your own set", "what is written", "checks", "examples"))


def test_bom_crlf_gzip_csv_and_parquet_give_the_same_rows_as_plain_lines(prepare, tmp_path):
    plain = written(tmp_path / "plain.jsonl", *rows(3))
    (tmp_path / "bom.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n"))
    (tmp_path / "zip.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    with open(tmp_path / "table.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["task_id", "question", "code", "test_list"])
        table.writerows([r["task_id"], r["text"], r["code"], json.dumps(r["test_list"])] for r in rows(3))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows(3)), tmp_path / "table.parquet")
    for name in ("plain.jsonl", "bom.jsonl", "zip.jsonl.gz", "table.csv", "table.parquet"):
        columns = ("--columns", "text=question") if name.endswith("csv") else ()
        words = ("--input", tmp_path / name, "--output_dir", tmp_path / f"out {name}", "--checks")
        assert prepare("jsonl", *words, "--splits", 1, 0, 0, *columns) == 0
        made, plain = (tmp_path / f"out {n}/train.jsonl" for n in (name, "plain.jsonl"))
        assert made.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize(
    ("name", "separator"),
    [("a.csv", ";"), ("a.txt", ","), ("a.tsv", "\t"), ("a", "|"), ("a.data", ";"), ("a.csv.gz", "\t")],
)
def test_a_csv_file_has_any_name_and_any_separator(prepare, tmp_path, name, separator):
    rows = [("q", "t", "code"), ("Double, and no more.", "assert f(1) == 2", "def f(x):\n    return 2 * x")]
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    data = text.getvalue().encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    words = ("--tests", "lines", "--columns", "text=q", "test_list=t", "--splits", 0, 0, 1, "--checks")
    assert prepare("csv", "--input", tmp_path / name, *words, "--output_dir", tmp_path / "out") == 0
    [problem] = load_problems(tmp_path / "out/test.jsonl")
    assert (problem.text, problem.test_list) == ("Double, and no more.", ("assert f(1) == 2",))
    assert problem.code == "def f(x):\n    return 2 * x"


def test_a_set_without_references_says_that_none_was_executed(prepare, tmp_path):
    row = {"task_id": 1, "text": "Double.", "test_list": ["assert f(1) == 2"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    words = ("--splits", 0, 0, 1, "--checks", "references", "--executor_workers", 1)
    assert prepare("jsonl", "--input", tmp_path / "a.jsonl", *words, "--output_dir", tmp_path / "out") == 0
    card = (tmp_path / "out/README.md").read_text()
    assert "because no row has a reference" in card and "references executed" not in card


def test_a_set_on_the_hub_is_streamed_with_its_own_splits(prepare, tmp_path, monkeypatch):
    (tmp_path / "owner/name").mkdir(parents=True)
    for split, first in (("train", 0), ("test", 100)):
        written(
            tmp_path / f"owner/name/{split}.jsonl",
            *(row | {"task_id": row["task_id"] + first} for row in rows(4)),
        )
    monkeypatch.chdir(tmp_path)  # `datasets` reads a folder of that name as the data set of that name
    assert prepare("owner/name", "--output_dir", tmp_path / "out", "--checks", "--licence", "CC0") == 0
    assert [len(load_problems(tmp_path / f"out/{split}.jsonl")) for split in ("train", "test")] == [4, 4]
    assert json.loads((tmp_path / "out/manifest.json").read_text())["licence"] == "CC0"


def start(*words, **options):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.processes
def test_ctrl_c_leaves_nothing_behind(tmp_path):
    data = tmp_path / "many.jsonl"
    with open(data, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(40_000))
    running = start("jsonl", "--input", data, "--output_dir", tmp_path / "out", "--checks")
    wait_until(lambda: any(tmp_path.glob(".out-*.partial/train.jsonl")))
    running.send_signal(signal.SIGINT)
    _, complaint = running.communicate(timeout=300)
    assert running.returncode == 130
    assert complaint.splitlines()[-1] == f"interrupted: {tmp_path / 'out'} was not written"
    assert "Traceback" not in complaint and [path.name for path in tmp_path.iterdir()] == ["many.jsonl"]


@pytest.mark.processes
def test_a_hub_that_cannot_be_reached_is_refused_without_retries(tmp_path):
    hub = {"HF_ENDPOINT": f"http://127.0.0.1:{free_port()}", "HF_HUB_OFFLINE": "0"}
    running = start("owner/name", "--output_dir", tmp_path / "out", env=os.environ | hub)
    _, complaint = running.communicate(timeout=300)
    assert running.returncode == 2 and len(complaint.splitlines()) == 1
    assert f"error: owner/name: {hub['HF_ENDPOINT']} cannot be reached (" in complaint
    assert not any(tmp_path.iterdir())


@pytest.mark.processes
def test_a_limit_on_file_size_leaves_nothing_behind(tmp_path):
    data = written(tmp_path / "mine.jsonl", *rows(3000))
    limit = 100_000

    def confine():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    running = start(
        "jsonl", "--input", data, "--output_dir", tmp_path / "out", "--checks", preexec_fn=confine
    )
    _, complaint = running.communicate(timeout=300)
    assert running.returncode == 2
    assert f"error: [Errno 27] File too large; {tmp_path / 'out'} was not written" in complaint
    assert [path.name for path in tmp_path.iterdir()] == ["mine.jsonl"]


@pytest.mark.processes
def test_a_full_disk_leaves_nothing_behind(tmp_path):
    data = written(tmp_path / "mine.jsonl", *rows(3000))
    (tmp_path / "disk").mkdir()
    script = (
        'mount -t tmpfs -o size=200k none "$0/disk" || exit 99\n'
        f'{sys.executable} {SCRIPT} jsonl --input {data} --output_dir "$0/disk/out" --checks\n'
        'status=$?; ls -A "$0/disk"; exit $status'
    )
    if shutil.which("unshare") is None:
        pytest.skip("this test needs unshare, to mount a tiny file system")
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, str(tmp_path)], capture_output=True, text=True
    )
    if done.returncode not in (0, 2):
        pytest.skip(f"this machine lets nobody mount a tiny file system: {done.stderr.strip()[:100]}")
    assert done.returncode == 2 and "No space left on device; " in done.stderr
    assert done.stdout == ""  # neither the folder nor a part of it


@pytest.mark.processes
def test_memory_does_not_grow_with_the_rows(tmp_path):
    peaks_mb = []
    for count in (1_000, 21_000):
        data = tmp_path / f"{count}.jsonl"
        with open(data, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows(count))
        words = ("jsonl", "--input", data, "--output_dir", tmp_path / f"out{count}", "--checks")
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, str(SCRIPT), *map(str, words)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)],
        )
        _, status, usage = os.wait4(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        peaks_mb.append(usage.ru_maxrss / 1024)
    assert (
        peaks_mb[1] - peaks_mb[0] < 20_000 * 500e-6
    )  # at most 500 bytes for each further row: its id, not its text
