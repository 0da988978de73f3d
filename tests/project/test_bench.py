"""The parts of make bench and make gpu at small size, on a processor."""

import json
import sys

import pytest

from tests.support.paths import ROOT


@pytest.fixture
def bench(monkeypatch):
    """scripts/bench/bench.py as a module, in the repository's folder."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/bench"))
    monkeypatch.chdir(ROOT)
    import bench

    return bench


@pytest.fixture
def measure(bench):
    """Measure the first small part of a name in this process."""
    import parts

    def measured(part, **arguments):
        job = next(job for job in bench.gpu_jobs(is_small=True) if job["part"] == part)
        return parts.measure(job | {"shape": vars(job["shape"])} | arguments)

    return measured


def test_without_a_gpu_one_line_says_so_and_the_status_is_3(bench, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["bench.py", "gpu"])
    assert bench.main() == 3
    assert capsys.readouterr().err == "make gpu: this machine has no GPU that PyTorch can use\n"


def test_layouts_and_cached_decoding_equal_plain_rows_in_float32(measure):
    found = measure("equality")
    assert found["shared"]["logps_max"] < 1e-4 and 0 < found["shared"]["gradient"] < 1e-4
    assert measure("cached_decoding")["same"] == 1.0


def test_trees_take_fewer_operations_than_plain_rows(measure):
    operations = measure("passes", rounds=1)["operations"]
    assert operations["packing_ratio"] > 1 and operations["shared"] < operations["plain"]


def test_sampling_counts_the_tokens_of_all_rows(measure):
    found = measure("decoding")
    assert 0 < found["tokens"] <= 16 * 8 and found["seconds"] > 0


def test_the_committed_tables_are_those_of_the_committed_figures(bench):
    folder = ROOT / "docs/performance"
    assert (folder / "update.md").read_text() == bench.tables(
        json.loads((folder / "update.json").read_text())
    )


@pytest.mark.processes
def test_a_second_call_continues_and_measures_nothing_again(bench, tmp_path, monkeypatch, capsys):
    """The part trains, and states its peak memory beside the estimate."""
    file = tmp_path / "gpu.json"
    monkeypatch.setattr(
        sys, "argv", ["bench.py", "gpu", "--small", "--only", "training", "--json", str(file)]
    )
    bench.main()
    first = capsys.readouterr().out
    bench.main()
    second = capsys.readouterr().out
    assert "training of 2 layers: " in first and "training of 2 layers: " not in second
    [part] = json.loads(file.read_text())["parts"]
    found, table = part["found"], (tmp_path / "gpu.md").read_text()
    assert found["estimated_gib"] > 0.5 and found["peak_gib"] > 0.1 and found["seconds"] > 0
    sizes = f"{found['estimated_gib']:.1f} | {found['peak_gib']:.1f} |"
    assert f"| 2 layers of 0.1B | 4 x 2 | one process | {sizes}" in table
    assert table in second
