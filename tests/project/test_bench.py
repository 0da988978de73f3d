"""The parts of make bench and make gpu at small size, on a processor."""

import sys
from dataclasses import replace

import pytest

from tests.support.paths import ROOT


@pytest.fixture(autouse=True)
def bench_modules(monkeypatch):
    """Let the tests import the modules of scripts/bench, in the repository's folder."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/bench"))
    monkeypatch.chdir(ROOT)


def test_without_a_gpu_one_line_says_so_and_the_status_is_3(monkeypatch, tmp_path, capsys):
    import gpu

    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--output", str(tmp_path / "gpu.csv")])
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    assert ended.value.code == 3 and not list(tmp_path.iterdir())
    assert capsys.readouterr().err.startswith("gpu: PyTorch finds no GPU here; ")


@pytest.mark.processes
@pytest.mark.nightly
def test_the_figures_of_a_gpu_are_measured_and_written(tmp_path, capsys):
    import gpu

    model, file = "data/toy/base", tmp_path / "build/gpu.csv"
    measured = [gpu.programs(20), gpu.sampling(model, "transformers", 2, 8), *gpu.updates(model, 8, 8)]
    gpu.write(measured, file)
    head, *figures = [line.rsplit(",", 2) for line in file.read_text().splitlines()]
    assert head == ["figure", "value", "unit"]
    assert [unit for _, _, unit in figures] == ["programs/s", "tokens/s", "s", "GiB", "GiB"]
    assert all(float(value) > 0 for _, value, _ in figures)
    assert "sampling with transformers, 2 prompts: " in capsys.readouterr().out


@pytest.mark.nightly
def test_trees_take_fewer_tokens_than_plain_rows_and_a_whole_update_is_accounted_for_beside_trls():
    import update

    shape = replace(update.LAB, num_problems=1, num_generations=2, max_length=8)
    row = update.passes(shape, rounds=1)
    assert float(row["tokens, ratio"]) > 1 and float(row["trees s"]) > 0 and float(row["trees MiB"]) > 100
    whole = update.updates(replace(shape, num_turns=1), rounds=1)
    assert float(whole["trl s"]) > 0 and whole["T"] == "1" and float(whole["a token, ratio"]) > 0
    assert float(whole["step / products"]) > 0 and float(whole["time/rest_s"]) >= 0


def test_both_generators_sample_the_same_ids():
    import turns

    row = turns.turns("data/toy/base", ["data/toy/dev.jsonl"], "cocos", 6, 4, 12, rounds=1)
    assert row["trajectories that differ"] == "0" and int(row["tokens"]) > 12


@pytest.mark.processes
@pytest.mark.nightly
def test_the_rate_of_the_executor_is_between_its_baselines(monkeypatch):
    import executor

    monkeypatch.setattr(executor, "DATA", ("data/toy/boost.jsonl",))
    monkeypatch.setattr(executor, "FRESH_PROGRAMS", 5)
    row = executor.rates("rlimits", rounds=1)
    assert float(row["times `python -I`"]) > 1 and 0 < int(row["of empty forks"].rstrip("%")) < 100


def test_rows_with_other_columns_are_a_table_of_their_own():
    import bench

    text = bench.tables([{"a": "1"}, {"a": "2"}, {"b": "3"}])
    assert text == "| a |\n| --- |\n| 1 |\n| 2 |\n\n| b |\n| --- |\n| 3 |"
