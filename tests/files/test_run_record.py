"""The contents of run.json."""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

import pytest

from cocos.files.run_record import check_output_folder, run_record, sha256


@dataclass
class Options:
    seed: int = 3
    output_dir: str = "out"


class Arguments:
    """Options with a method `to_dict`, like transformers' TrainingArguments."""

    def to_dict(self):
        return {"learning_rate": 0.1, "seed": 4}


def test_a_record_has_the_options_of_all_configurations_the_versions_and_the_facts():
    record = run_record(Options(), Arguments(), isolation="seccomp")
    assert record["options"] == {"seed": 4, "output_dir": "out", "learning_rate": 0.1}
    assert record["isolation"] == "seccomp"
    assert record["versions"]["torch"] == importlib.metadata.version("torch")
    assert "python" in record["versions"] and set(record) == {"options", "versions", "isolation"}


def test_the_checksum_of_a_file_is_its_sha256(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")  # the first example of FIPS 180-2
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_folder_that_cannot_be_written_to_is_named_with_its_option_before_the_run(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere/x")
    (tmp_path / "file").write_text("")
    for folder, reason in (
        ("/proc/x", "cannot be written to (No such file or directory)"),
        (tmp_path / ("x" * 300), "cannot be written to (File name too long)"),
        (tmp_path / "link", "a link to nowhere; make its target"),
        (tmp_path / "file/out", "file is a file"),
    ):
        with pytest.raises(ValueError) as caught:
            check_output_folder(Path(folder))
        assert str(caught.value).startswith(f"--output_dir {folder}: ") and reason in str(caught.value)
        assert str(caught.value).endswith("choose another folder")
    with pytest.raises(ValueError, match="has characters that cannot be printed; choose another"):
        check_output_folder(tmp_path / "a\udcffb")
    check_output_folder(tmp_path / "new/folder")
    assert not (tmp_path / "new").exists()
