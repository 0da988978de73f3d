"""Every part of make gpu at small size, on a processor."""

import json
import sys

import pytest

from tests.support.paths import ROOT


@pytest.fixture
def gpu(monkeypatch):
    """scripts/bench/gpu.py as a module, in the repository's folder."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/bench"))
    monkeypatch.chdir(ROOT)
    import gpu

    return gpu


def small(gpu, part):
    [job] = [job for job in gpu.jobs(is_small=True) if job["part"] == part and job.get("engine") != "vllm"]
    return job


def test_without_a_gpu_one_line_says_so_and_the_status_is_3(gpu, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    assert gpu.main() == 3
    assert capsys.readouterr().err == "make gpu: this machine has no GPU that PyTorch can use\n"


def test_layouts_and_cached_decoding_equal_plain_rows_in_float32(gpu):
    found = gpu.measure(small(gpu, "equality"))
    assert found["shared"]["logps_max"] < 1e-4 and 0 < found["shared"]["gradient"] < 1e-4
    assert gpu.measure(small(gpu, "cached_decoding"))["same"] == 1.0


def test_an_update_counts_the_tokens_of_the_rows_and_its_own_operations(gpu):
    """The same tokens in both layouts, so the ratio of their rates is that of their seconds."""
    found = gpu.measure(small(gpu, "update") | {"rounds": 1})
    shared, plain = found["shared"], found["plain"]
    assert shared["tokens_per_s"] * shared["seconds"] == pytest.approx(found["tokens"])
    assert plain["tokens_per_s"] * plain["seconds"] == pytest.approx(found["tokens"])
    operations = [layout["operations_per_s"] * layout["seconds"] for layout in (shared, plain)]
    assert found["packing_ratio"] > 1 and operations[0] < operations[1]


def test_sampling_counts_the_tokens_of_all_rows(gpu):
    found = gpu.measure(small(gpu, "decoding"))
    assert 0 < found["tokens"] <= 16 * 8 and found["tokens_per_s"] * found["seconds"] == pytest.approx(
        found["tokens"]
    )


@pytest.mark.processes
def test_a_second_call_continues_and_measures_nothing_again(gpu, tmp_path, monkeypatch, capsys):
    """The part trains, and states its peak memory beside the estimate."""
    file = tmp_path / "gpu.json"
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--small", "--only", "training", "--json", str(file)])
    gpu.main()
    first = capsys.readouterr().out
    gpu.main()
    second = capsys.readouterr().out
    assert "training of 2 layers: " in first and "training of 2 layers: " not in second
    [part] = json.loads(file.read_text())["parts"]
    found, table = part["found"], (tmp_path / "gpu.md").read_text()
    assert found["estimated_gib"] > 1.5 and found["peak_gib"] > 0.1 and found["seconds"] > 0
    assert (
        f"| 2 layers of 0.1B | one process | {found['estimated_gib']:.1f} | {found['peak_gib']:.1f} |"
        in table
    )
    assert table in second
