"""Assignment of problems to splits, their selection by solve rates, and their hidden tests."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.formats.conversion import from_mbpp
from cocos.dataprep.splits import Assigned, assign_split, fill_empty_splits, hide_tests, split_point
from cocos.files.json_lines import Place
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.trajectories import as_program
from tests.support.data import lines

PLACE = Place("f", 1)


def test_splits_follow_the_shares_and_keep_equal_texts_together():
    converted = [
        from_mbpp({"task_id": i, "text": f"Task {i}.", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    splits = [assign_split(split_point(row, 0), (0.8, 0.1, 0.1)) for row in converted]
    assert (
        1540 < splits.count("train") < 1660 and 150 < splits.count("test") < 250
    )  # 1600 and 200, five sigma
    assert splits != [assign_split(split_point(row, 1), (0.8, 0.1, 0.1)) for row in converted]
    in_capitals = [
        from_mbpp({"task_id": f"{i}!", "text": f"TASK  {i}", "test_list": ["assert f()"]}, PLACE)
        for i in range(2000)
    ]
    assert [assign_split(split_point(row, 0), (0.8, 0.1, 0.1)) for row in in_capitals] == splits
    assert {assign_split(split_point(row, 0), (0, 0, 1)) for row in converted} == {"test"}


def test_the_problem_nearest_to_its_border_fills_an_empty_split_and_no_other_moves():
    rows = [Assigned(0.1, "train", "a"), Assigned(0.75, "train", "b"), Assigned(0.95, "test", "c")]
    # Validation is [0.8, 0.9): b is 0.05 away, and c, too, but it is the only one of its split.
    assert fill_empty_splits(rows, (0.8, 0.1, 0.1)) == [(rows[1], "validation")]
    same_group = [*rows, Assigned(0.75, "train", "b2")]
    assert [row.task_id for row, _ in fill_empty_splits(same_group, (0.8, 0.1, 0.1))] == ["b", "b2"]
    assert fill_empty_splits([*rows, Assigned(0.85, "validation", "d")], (0.8, 0.1, 0.1)) == []
    assert fill_empty_splits(rows[:1], (0.8, 0.1, 0.1)) == []  # nothing is left to move
    all_low = [Assigned(n / 10, "train", str(n)) for n in range(3)]
    assert [(row.task_id, split) for row, split in fill_empty_splits(all_low, (0.8, 0.1, 0.1))] == [
        ("2", "validation"),
        ("1", "test"),
    ]


def test_a_small_set_has_problems_in_every_split_and_its_card_says_which_moved(prepare, tmp_path, capsys):
    rows = [{"task_id": n, "text": f"Task {n}.", "test_list": [f"assert f() == {n}"]} for n in range(6)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    words = ("jsonl", "--input", tmp_path / "mine.jsonl", "--checks", "--output_dir", out)
    assert prepare(*words) == 0
    splits = {
        path.stem: lines(path) for path in out.glob("*.jsonl") if path.stem in ("train", "validation", "test")
    }
    assert sorted(splits) == ["test", "train", "validation"] and sum(map(len, splits.values())) == 6
    moved = [row for row in lines(out / "findings.jsonl") if row["kind"] == "moved"]
    assert moved and all(row["task_id"] in {r["task_id"] for r in splits[row["split"]]} for row in moved)
    assert f"{len(moved)} moved: " in (out / "README.md").read_text()


def test_solved_keeps_the_problems_whose_solve_rate_lies_in_the_range(prepare, tmp_path, capsys):
    rows = [{"task_id": n, "text": f"Task {n}.", "test_list": ["assert f(1) == 1"]} for n in range(5)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    profile = tmp_path / "mine.profile.csv"
    # Rates 0, 1/8, 1/2 and 1; problem 4 was not sampled.
    rights = "".join(f"mine,{n},8,{right},0\n" for n, right in enumerate((0, 1, 4, 8)))
    profile.write_text("file,task_id,samples,right,mean_reward\n" + rights)
    options = ("--splits", 1, 0, 0, "--checks", "--solved", 0.1, 0.8)
    words = ("jsonl", "--input", tmp_path / "mine.jsonl", *options)
    assert prepare(*words, "--output_dir", tmp_path / "out") == 2
    assert "no solve rate is known; give a --profile" in capsys.readouterr().err
    assert prepare(*words, "--output_dir", tmp_path / "out", "--profile", profile) == 0
    kept = lines(tmp_path / "out/train.jsonl")
    assert [(row["task_id"], row["solve_rate"]) for row in kept] == [("1", 0.125), ("2", 0.5)]
    dropped = {row["task_id"]: row["detail"] for row in lines(tmp_path / "out/dropped.jsonl")}
    assert dropped == {
        "0": "solved in 0% of the samples, not in 10% to 80%",
        "3": "solved in 100% of the samples, not in 10% to 80%",
        "4": "no solve rate is known; give a --profile that contains the problem",
    }
    profile.write_text("task_id,samples,right\n1,0,0\n")
    assert prepare(*words, "--output_dir", tmp_path / "other", "--profile", profile) == 2
    assert (
        "profile.csv:2: expected the columns" in capsys.readouterr().err and not (tmp_path / "other").exists()
    )


def test_the_card_shows_the_quartiles_of_the_solve_rates_if_there_are_any(prepare, tmp_path):
    rows = "".join(
        f'{n},Task {n}.,"[""assert f(1) == 1""]",{rate}\n'
        for n, rate in enumerate((0, 0.05, 0.5, 0.5, 1, ""))
    )
    (tmp_path / "mine.csv").write_text("task_id,text,test_list,solve_rate\n" + rows)
    words = ("csv", "--input", tmp_path / "mine.csv", "--splits", 1, 0, 0, "--checks")
    assert prepare(*words, "--output_dir", tmp_path / "out") == 0
    assert "| solve rate | 0 | 0.05, 0.5, 0.5 | 1 |" in (tmp_path / "out/README.md").read_text()
    assert '"solve_rate", "dtype": "float64"' in (tmp_path / "out/README.md").read_text()
    (tmp_path / "none.csv").write_text('task_id,text,test_list\n1,Task.,"[""assert f(1) == 1""]"\n')
    words = ("csv", "--input", tmp_path / "none.csv", "--splits", 1, 0, 0, "--checks")
    assert prepare(*words, "--output_dir", tmp_path / "none") == 0
    assert "solve rate |" not in (tmp_path / "none/README.md").read_text()


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(1, 9), st.integers(0, 12) | st.floats(0, 0.99), st.integers(0, 3))
def test_hiding_moves_tests_loses_none_and_leaves_one_visible(count, amount, seed):
    problem = Problem("1", "t", tuple(f"assert f({i})" for i in range(count)))
    hidden = hide_tests(problem, amount, seed)
    assert sorted(hidden.scored_tests) == sorted(problem.test_list) and hidden.test_list
    expected = int(amount) if amount >= 1 else int(amount * count)
    assert len(hidden.hidden_test_list) == min(expected, count - 1)


def test_a_hidden_test_is_scored_and_never_shown(problem):
    hidden = hide_tests(problem, 2, seed=0)
    shown = named_protocol("cocos").first_turn(hidden)
    assert [test in shown for test in hidden.test_list] == [True]
    assert [test in shown for test in hidden.hidden_test_list] == [False, False]
    assert as_program(hidden, "x").test_list == hidden.test_list + hidden.hidden_test_list
