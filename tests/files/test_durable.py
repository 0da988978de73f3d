"""Durable writes: all or nothing, and flushed in the right order."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cocos.files import durable
from cocos.files.durable import append_durably, drop_torn_line, save_json, sync, write_atomically
from tests.support.paths import ROOT


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, b"old and longer")
    write_atomically(path, "neu: ü")
    assert path.read_text(encoding="utf-8") == "neu: ü"
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_reaches_the_disk_before_the_rename_and_the_folder_after_it(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")
    flushed = []

    def fsync(descriptor):
        flushed.append((os.readlink(f"/proc/self/fd/{descriptor}"), path.read_text()))

    monkeypatch.setattr(durable.os, "fsync", fsync)
    write_atomically(path, "new")
    assert flushed == [(f"{path}.new", "old"), (str(tmp_path), "new")]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fsync(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(durable.os, "fsync", fsync)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.processes
def test_a_process_killed_while_it_replaces_a_file_leaves_a_complete_one(tmp_path):
    path = tmp_path / "a.txt"
    script = (
        "import sys\nfrom cocos.files.durable import write_atomically\n"
        f"for n in range(10**9):\n    write_atomically({str(path)!r}, f'{{n}}\\n' * 20_000)\n"
        "    print(n, flush=True)"
    )
    for wait_for in (1, 2, 4, 7):
        writer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(wait_for):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        lines = path.read_text().splitlines()
        assert len(lines) == 20_000 and len(set(lines)) == 1


class ShortWrites(io.FileIO):
    """A file that writes at most three bytes per call, as an unbuffered file may."""

    def write(self, data):
        return super().write(data[:3])


def test_every_byte_is_appended_even_if_a_call_of_write_takes_only_a_part(tmp_path):
    path = tmp_path / "a.txt"
    with ShortWrites(path, "ab") as file:
        append_durably(file, b"0123456789")
        append_durably(file, b"")
        append_durably(file, b"ab")
    assert path.read_bytes() == b"0123456789ab"


def test_a_buffered_append_is_readable_when_the_call_returns(tmp_path):
    path = tmp_path / "a.txt"
    with open(path, "ab") as file:
        append_durably(file, b"row\n")
        assert path.read_bytes() == b"row\n"


@pytest.mark.parametrize(
    ("data", "kept"), [(b"", b""), (b"a\n", b"a\n"), (b"a\nb", b"a\n"), (b"ab", b""), (b"\n\nb", b"\n\n")]
)
def test_an_incomplete_last_line_is_removed(tmp_path, data, kept):
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    assert drop_torn_line(path) == (kept, len(data) - len(kept))
    assert path.read_bytes() == kept


def test_json_is_indented_and_values_of_other_types_become_text(tmp_path):
    path = tmp_path / "a.json"
    save_json({"a": [1], "b": Path("c")}, path)
    assert path.read_text() == '{\n  "a": [\n    1\n  ],\n  "b": "c"\n}\n'


def test_json_with_nan_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a.json"
    save_json({"a": 1}, path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_json({"a": float("nan")}, path)
    assert json.loads(path.read_text()) == {"a": 1}


def test_files_and_folders_can_be_flushed(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    sync(tmp_path / "a.txt")
    sync(tmp_path)
