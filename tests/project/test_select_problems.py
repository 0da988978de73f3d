"""select_problems.py: problems that a run solves with a share in a range, by hand arithmetic."""

from dataclasses import replace

import pytest
import select_problems
from select_problems import SolveRate, counts_line, select, solve_rates

from cocos.problems import Problem, load_problems, save_problems
from cocos.report.finished_runs import load_runs
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, trajectory

# 8 samples per problem, right in turn 2: 0, 1, 4, 7 and 8 of them. Turn 1 is right where turn 2 is wrong.
SOLVED = {"e": 0, "d": 1, "c": 4, "b": 7, "a": 8}
PROBLEMS = [Problem(task_id, "t", ("assert True",)) for task_id in SOLVED]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    samples = [
        trajectory(task_id, *((FAILED, PASSED) if sample < right else (PASSED, FAILED)), sample=sample)
        for task_id, right in SOLVED.items()
        for sample in range(8)
    ]
    return evaluated(tmp_path_factory.mktemp("run") / "samples", samples)


def rates(folder, problems=PROBLEMS):
    return solve_rates(load_runs([folder])[0], problems, "train")


def shares(folder, problems=PROBLEMS):
    return [rate.share for rate in rates(folder, problems)]


def test_the_share_is_that_of_the_last_turn(folder):
    assert shares(folder) == [0, 1 / 8, 4 / 8, 7 / 8, 1]


def test_both_ends_of_the_range_are_included_and_the_order_is_that_of_the_file(folder):
    backwards = PROBLEMS[::-1]
    chosen = select(backwards, shares(folder, backwards), 0.125, 0.875)
    assert [problem.task_id for problem in chosen] == ["b", "c", "d"]
    assert [problem.task_id for problem in select(PROBLEMS, shares(folder), 0.13, 0.87)] == ["c"]


def test_every_problem_is_counted_once(folder):
    assert counts_line(shares(folder), 0.2, 0.8) == (
        "5 problems: 1 never solved, 1 below 0.2, 1 in [0.2, 0.8], 1 above 0.8, 1 always"
    )
    assert counts_line(shares(folder), 0, 0.5) == (
        "5 problems: 0 never solved, 0 below 0, 3 in [0, 0.5], 1 above 0.5, 1 always"
    )


def test_a_sample_without_a_verdict_does_not_count(tmp_path):
    results = [PASSED, INFRA_FAILURE, FAILED, FAILED]
    samples = [trajectory("c", result, sample=number) for number, result in enumerate(results)]
    run = evaluated(tmp_path / "run", samples)
    assert rates(run, [PROBLEMS[2]]) == [SolveRate("train", "c", 3, 1, pytest.approx(1 / 3))]


@pytest.mark.parametrize(
    ("problems", "message"),
    [
        (PROBLEMS[1:], "problem 'e' of .* is not in the file of problems"),
        ([*PROBLEMS, Problem("f", "t", ("assert True",))], "1 of 6 problems, the first 'f', have no scored"),
        (
            [Problem("e", "t", ("assert 1",)), *PROBLEMS[1:]],
            "problem 'e' of .* other tests there; give the file with which",
        ),
    ],
)
def test_a_run_of_other_problems_is_rejected(folder, problems, message):
    with pytest.raises(ValueError, match=message):
        shares(folder, problems)


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["select_problems.py", *map(str, words)])
    select_problems.main()


def test_the_command_writes_a_problem_file_and_prints_the_counts(folder, tmp_path, monkeypatch, capsys):
    save_problems(PROBLEMS, tmp_path / "train.jsonl")
    output = tmp_path / "selected.jsonl"
    run(monkeypatch, tmp_path / "train.jsonl", folder, "--solved", 0.05, 0.9, "--output", output)
    rates = (0.125, 0.5, 0.875)
    expected = [replace(p, solve_rate=rate) for p, rate in zip(PROBLEMS[1:4], rates, strict=True)]
    assert load_problems(output) == expected
    assert capsys.readouterr().out.splitlines() == [
        "5 problems: 1 never solved, 0 below 0.05, 3 in [0.05, 0.9], 0 above 0.9, 1 always",
        f"3 problems written to {output}; {tmp_path / 'selected.profile.csv'} has the profile",
    ]
    assert (tmp_path / "selected.profile.csv").read_text().splitlines() == [
        "file,task_id,samples,right,mean_reward",
        *("train,e,8,0,0.0", "train,d,8,1,0.125", "train,c,8,4,0.5", "train,b,8,7,0.875", "train,a,8,8,1.0"),
    ]
    with pytest.raises(ValueError, match="exists; remove it"):
        run(monkeypatch, tmp_path / "train.jsonl", folder, "--solved", 0, 1, "--output", output)


def test_several_files_have_one_profile_and_no_id_twice(folder, tmp_path, monkeypatch):
    others = [replace(problem, task_id=problem.task_id.upper()) for problem in PROBLEMS]
    played = [trajectory(problem.task_id, PASSED) for problem in others[:2]]
    run_of_others = evaluated(tmp_path / "others", [*played, trajectory("C", FAILED)])
    save_problems(PROBLEMS, tmp_path / "train.jsonl")
    save_problems([*others[:2], replace(PROBLEMS[0], task_id="C")], tmp_path / "more.jsonl")
    pairs = (tmp_path / "train.jsonl", folder, tmp_path / "more.jsonl", run_of_others)
    run(monkeypatch, *pairs, "--solved", 0.5, 1, "--output", tmp_path / "selected.jsonl")
    assert [p.task_id for p in load_problems(tmp_path / "selected.jsonl")] == ["c", "b", "a", "E", "D"]
    assert "more,C,1,0,0.0" in (tmp_path / "selected.profile.csv").read_text()
    words = ("--solved", 0.5, 1, "--output", tmp_path / "again.jsonl")
    with pytest.raises(ValueError, match="in two files: problems 'e', 'd'"):
        run(monkeypatch, *pairs[:2], *pairs[:2], *words)
    with pytest.raises(ValueError, match="or several such pairs"):
        run(monkeypatch, *pairs[:3], *words)


def test_ranges_that_select_nothing_or_are_none_are_rejected(folder, tmp_path, monkeypatch):
    save_problems(PROBLEMS, tmp_path / "train.jsonl")
    words = (tmp_path / "train.jsonl", folder, "--output", tmp_path / "selected.jsonl", "--solved")
    with pytest.raises(ValueError, match=r"no problem is solved with a share in \[0.6, 0.7\]; widen"):
        run(monkeypatch, *words, 0.6, 0.7)
    with pytest.raises(ValueError, match=r"--solved is 0\.9 0\.1; give two numbers"):
        run(monkeypatch, *words, 0.9, 0.1)
    assert not (tmp_path / "selected.jsonl").exists()
