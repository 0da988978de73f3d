"""The contents of run.json."""

import importlib.metadata
from dataclasses import dataclass

from cocos.files.run_record import run_record, sha256


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
