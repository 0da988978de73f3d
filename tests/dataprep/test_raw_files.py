"""Raw files of the public sets: downloaded or copied once, and prepared by one command."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cocos.dataprep.named_sets import fetch_raw_file
from cocos.dataprep.readers import read_file
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.problems import DataError, load_problems
from tests.support.data import contents

MBPP_ROW = {
    "task_id": 11,
    "text": "Double.",
    "code": "def f(x): return 2 * x",
    "test_list": ["assert f(1) == 2"],
}
HUMANEVAL_ROW = {
    "task_id": "HumanEval/0",
    "prompt": 'def add(a, b):\n    """Add."""\n',
    "declaration": "def add(a, b):\n",
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "buggy_solution": "    return a - b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}
KODCODE_ROW = {
    "question_id": "Demo_1_I",
    "question": "Double.",
    "solution": "def f(x): return 2 * x",
    "test_code": "from solution import f\ndef test_f():\n    assert f(1) == 2\n",
}
ROWS = {
    "mbpp": [MBPP_ROW],
    "mbpp-sanitized": [MBPP_ROW],
    "humaneval": [HUMANEVAL_ROW],
    "humanevalfix": [HUMANEVAL_ROW],
    "humanevalfix-docs": [HUMANEVAL_ROW],
    # It has no standard splits, and each split needs a row.
    "kodcode": [KODCODE_ROW | {"question_id": f"Demo_{i}_I"} for i in range(40)],
}


def write_raw(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in ROWS[name]).encode()
    file = PUBLIC_SOURCES[name].raw_file
    (folder / file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)


def test_a_raw_file_is_downloaded_from_the_hub_once(tmp_path, monkeypatch):
    hub = tmp_path / "owner/name"
    hub.mkdir(parents=True)
    (hub / "test.jsonl").write_text(json.dumps(HUMANEVAL_ROW) + "\n")
    monkeypatch.chdir(tmp_path)  # `datasets` reads a folder of that name as the data set of that name
    source = replace(PUBLIC_SOURCES["humaneval"], hub=("owner/name", None))
    path = fetch_raw_file(source, tmp_path / "raw", None)
    assert path == tmp_path / "raw/HumanEval.jsonl.gz" and path.read_bytes().startswith(b"\x1f\x8b")
    assert [row for _, _, row in read_file(path)] == [HUMANEVAL_ROW]
    before = contents(tmp_path / "raw")
    (hub / "test.jsonl").unlink()
    assert fetch_raw_file(source, tmp_path / "raw", None) == path and contents(tmp_path / "raw") == before


def test_json_lists_on_the_web_are_joined_and_an_interrupted_download_leaves_nothing(tmp_path):
    parts = [tmp_path / "a.json", tmp_path / "b.json"]
    parts[0].write_text(json.dumps([KODCODE_ROW]))
    source = replace(PUBLIC_SOURCES["kodcode"], raw_urls=tuple(part.as_uri() for part in parts))
    with pytest.raises(DataError, match=r"b\.json: cannot be downloaded"):
        fetch_raw_file(source, tmp_path / "raw", None)
    assert not (tmp_path / "raw").exists()
    parts[1].write_text(json.dumps([KODCODE_ROW | {"question_id": "Demo_2_I"}]))
    rows = [row for _, _, row in read_file(fetch_raw_file(source, tmp_path / "raw", None))]
    assert [row["question_id"] for row in rows] == ["Demo_1_I", "Demo_2_I"]


def test_public_prepares_every_set_it_can_names_a_missing_one_and_adds_it_later(prepare, tmp_path, capsys):
    given, out = tmp_path / "given", tmp_path / "public"
    for name in ROWS.keys() - {"humaneval"}:
        write_raw(given, name)
    words = ("public", "--input", given, "--output_dir", out)
    assert prepare(*words) == 1
    streams = capsys.readouterr()
    assert f"mbpp: test 1; written to {out / 'mbpp'}" in streams.out
    [failure] = [line for line in streams.err.splitlines() if "failed" in line]
    assert failure.startswith("humaneval: failed: ") and "HumanEval.jsonl.gz: no such file" in failure
    assert {path.name for path in out.iterdir()} == (ROWS.keys() - {"humaneval"}) | {"raw"}
    before = contents(out / "mbpp")

    write_raw(given, "humaneval")
    assert prepare(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"mbpp: skipped; {out / 'mbpp'} exists" in lines and len(lines) == len(ROWS)
    assert contents(out / "mbpp") == before and contents(out / "raw") == contents(given)
    assert [
        len(load_problems(out / name / "test.jsonl")) for name in ("mbpp", "humaneval", "humanevalfix")
    ] == [1] * 3


def test_public_writes_what_preparing_one_set_without_checks_writes(prepare, tmp_path):
    for name in ROWS:
        write_raw(tmp_path / "given", name)
    assert prepare("public", "--input", tmp_path / "given", "--output_dir", tmp_path / "public") == 0
    for name in ROWS:
        raw = tmp_path / "given" / PUBLIC_SOURCES[name].raw_file
        assert prepare(name, "--input", raw, "--output_dir", tmp_path / name, "--checks") == 0
        assert contents(tmp_path / name) == contents(tmp_path / "public" / name)


def test_a_benchmark_is_named_alone_and_its_raw_file_kept_in_the_cache_is_read(
    prepare, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("COCOS_CACHE", str(tmp_path / "cache"))
    write_raw(tmp_path / "raw", "humaneval")
    (tmp_path / "cache").mkdir()
    (tmp_path / "raw").rename(tmp_path / "cache/raw")
    (tmp_path / "mine.jsonl").write_text(json.dumps(MBPP_ROW | {"test_list": ["assert add(1, 2) == 3"]}))
    words = ("check", tmp_path / "mine.jsonl", "--checks", "overlap", "--against")
    assert prepare(*words, "humaneval") == 1
    assert "shared_assert: mine/11: assert add(1, 2) == 3 as humaneval/HumanEval/0" in capsys.readouterr().out
    assert prepare(*words, "livecodebench") == 2
    assert "--against livecodebench: it is not on the hub; give livecodebench=test6.jsonl" in (
        capsys.readouterr().err
    )
