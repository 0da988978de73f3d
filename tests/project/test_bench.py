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


def test_attention_by_segment_is_that_of_a_dense_mask(measure):
    found = measure("attention", rounds=1)
    assert found["difference"] < 1e-5 and found["tokens"] >= 100
    assert found["seconds"]["segments"] > 0 and found["seconds"]["dense"] > 0


def test_the_committed_page_of_a_gpu_names_every_figure_and_is_that_of_the_committed_parts(
    bench, tmp_path, monkeypatch
):
    import gpu_figures

    monkeypatch.chdir(tmp_path)  # the page was written without outputs/real
    jobs = [job | ({"shape": vars(job["shape"])} if "shape" in job else {}) for job in bench.gpu_jobs(False)]
    file = ROOT / "docs/gpu/parts.json"
    measured = json.loads(file.read_text()) if file.exists() else {"parts": []}
    figures = gpu_figures.figures_of(jobs, measured)
    assert len({(figure.part, figure.figure) for figure in figures}) == len(figures) > 40
    assert (ROOT / "docs/gpu.md").read_text() == gpu_figures.page(figures, measured)
    assert (ROOT / "docs/gpu/figures.csv").read_text() == gpu_figures.csv_text(figures)


def test_a_figure_is_measured_only_by_its_own_part(bench, tmp_path, monkeypatch):
    import gpu_figures

    monkeypatch.chdir(tmp_path)  # without outputs/real, whose evaluations are figures too
    job = {"part": "laboratory", "options": ["--bf16", "False"]}
    updates = [{"reward_t1": 0.3784, "reward_t2": 0.0762, "step_time": 2.0}] * 3
    measured = {
        "machine": {"device": "CARD", "matrix_rate": 1e12, "versions": {}},
        "parts": [{"job": job, "found": {"updates": updates}}],
    }
    jobs = [job, {"part": "laboratory", "options": ["--beta", "0.01"]}]
    figures = gpu_figures.figures_of(jobs, measured)
    assert [figure.measured for figure in figures[:2]] == ["0.378", "0.076"]
    assert [figure.measured for figure in figures if figure.figure == "kl_t1 of update 1"] == ["not measured"]
    assert "**CARD: 5 of 10 figures are measured.**" in gpu_figures.page(figures, measured)


@pytest.mark.processes
def test_a_second_call_continues_and_measures_nothing_again(bench, tmp_path, monkeypatch, capsys):
    """The part trains, and states its peak memory beside the estimate."""
    file = tmp_path / "gpu/parts.json"
    monkeypatch.setattr(
        sys, "argv", ["bench.py", "gpu", "--small", "--only", "training", "--json", str(file)]
    )
    bench.main()
    first = capsys.readouterr().out
    bench.main()
    second = capsys.readouterr().out
    assert "training, 2 layers of 0.1B, one process: " in first
    assert "training, 2 layers of 0.1B, one process: " not in second
    [part] = json.loads(file.read_text())["parts"]
    found, table = part["found"], (tmp_path / "gpu.md").read_text()
    assert found["estimated_gib"] > 0.5 and found["peak_gib"] > 0.1 and found["seconds"] > 0
    sizes = f"{found['estimated_gib']:.1f} | {found['peak_gib']:.1f} |"
    assert f"| 2 layers of 0.1B | 4 x 2 | one process | {sizes}" in table
    share = f"{found['peak_gib'] / found['estimated_gib']:.3g}"
    assert (
        f"| training, 2 layers of 0.1B, one process | peak, GiB / the dry run's | 0.8 to 1.2 | {share} |"
        in table
    )
    assert "not measured" in table
