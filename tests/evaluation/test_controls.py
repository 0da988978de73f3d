"""Evaluations with known scores: the sets in data/controls, and the public sets if they are present."""

import json
import sys

import pytest

from cocos.problems import save_problems
from tests.support.commands import WITHOUT_CHARTS, succeed
from tests.support.data import converted
from tests.support.evaluation import evaluated, rows
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes  # every evaluation starts an executor of its own

CONTROLS = ROOT / "data/controls"


def values(metrics, *names):
    return [metrics["metrics"][name]["value"] for name in names]


def test_the_golden_set_scores_1(tmp_path):
    # As a user runs it. The other tests evaluate in this process.
    succeed(
        *(sys.executable, "test.py", "--test_data", CONTROLS / "golden.jsonl", "--answers", "references"),
        *("--num_turns", 1, "--output_dir", tmp_path),
        **WITHOUT_CHARTS,
    )
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert values(metrics, "acc_t1") == [1.0] and metrics["num_scored"] == 8


def test_the_unwinnable_set_scores_0(tmp_path):
    metrics = evaluated(
        test_data=str(CONTROLS / "unwinnable.jsonl"),
        answers=["references", "references"],
        output_dir=str(tmp_path),
        program_timeout_s=2.0,
    )
    assert values(metrics, "acc_t1", "acc_t2") == [0.0, 0.0] and metrics["num_scored"] == 10
    assert metrics["executor"]["timeouts"] == 1 and metrics["num_timeouts"] == 2


def test_the_known_answers_have_their_known_scores(tmp_path):
    metrics = evaluated(
        test_data=str(CONTROLS / "golden.jsonl"),
        answers=[str(CONTROLS / "known_answers.jsonl")],
        num_turns=3,
        num_samples=2,
        output_dir=str(tmp_path),
    )
    assert values(metrics, "acc_t1", "acc_t2", "acc_t3") == [7 / 16, 8 / 16, 10 / 16]
    assert values(metrics, "i2c_t1_t2", "i2c_t2_t3", "c2i_t1_t2", "c2i_t2_t3") == [
        3 / 16,
        3 / 16,
        2 / 16,
        1 / 16,
    ]
    assert [metrics["pass_at_k"][f"pass@2_t{t}"] for t in (1, 2, 3)] == [5 / 8, 5 / 8, 7 / 8]


def test_samples_that_are_scored_again_have_the_same_scores(tmp_path):
    given = {"test_data": str(CONTROLS / "golden.jsonl"), "num_turns": 3, "num_samples": 2}
    known = str(CONTROLS / "known_answers.jsonl")
    once = evaluated(**given, answers=[known], early_stop=True, output_dir=str(tmp_path / "once"))
    again = evaluated(
        **given, answers=[str(tmp_path / "once/samples.jsonl")], output_dir=str(tmp_path / "again")
    )
    assert once["metrics"] == again["metrics"]
    assert values(once, "acc_t1", "c2i_t1_t2", "c2i_t2_t3") == [7 / 16, 0.0, 0.0]


def test_published_programs_of_another_model_are_answers_and_their_verdicts_are_those_of_our_tests(tmp_path):
    tests = ["assert double(2) == 4", "assert double(3) == 6"]
    row = {"text": "Double a number.", "test_list": tests, "code": ""}
    data, programs = tmp_path / "mbpp.jsonl", tmp_path / "seed.jsonl"
    data.write_text("".join(json.dumps(row | {"task_id": n}) + "\n" for n in (11, 12)))
    prompt = 'def double(x):\n    """\n    Double a number.\n    """\n\n'
    published = [
        {"task_id": "MBPP/12", "solution": f"{prompt}    return x * x\n", "is_passing": True},
        {"task_id": "MBPP/11", "solution": f"{prompt}    return 2 * x\n", "is_passing": True},
    ]
    programs.write_text("".join(json.dumps(row) + "\n" for row in published))
    given = {"test_data": str(data), "num_turns": 1, "output_dir": str(tmp_path / "out")}
    assert values(evaluated(**given, answers=[str(programs)]), "acc_t1") == [0.5]
    turns = {row["task_id"]: row["turns"][0] for row in rows(tmp_path / "out")}
    assert [turns[name]["is_right"] for name in ("11", "12")] == [True, False]
    assert turns["11"]["code"].strip() == published[1]["solution"].strip()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"task_id": "golden-1"}', r"answers\.jsonl:1: expected a row of samples\.jsonl"),
        ('{"task_id": "golden-1", "answers": [1]}', r"answers\.jsonl:1: expected a row of samples\.jsonl"),
        ('{"task_id": "golden-1", "answers": ["x"]}', r"no answers for sample 0 of problem 'golden-2', .*; add a row or change --task_ids"),
        ('{"task_id": "golden-1", "answers": ["x"], "sample": 1}', r"no answers for sample 0 of problem 'golden-1', .*; add a row or change --task_ids"),
    ],
)  # fmt: skip
def test_missing_answers_are_an_error(tmp_path, row, words):
    path = tmp_path / "answers.jsonl"
    path.write_text(row + "\n")
    given = {"test_data": str(CONTROLS / "golden.jsonl"), "output_dir": str(tmp_path / "out"), "num_turns": 1}
    with pytest.raises(ValueError, match=words):
        evaluated(**given, answers=[str(path)])
    with pytest.raises(ValueError, match="no buggy_code in problem 'golden-1'"):
        evaluated(**given, answers=["buggy"])
    with pytest.raises(
        ValueError, match="--answers supplies 1 of the 2 turns; give --model_name_or_path for the others"
    ):
        evaluated(**{**given, "num_turns": 2}, answers=["references"])


@pytest.mark.parametrize(
    ("name", "split"),
    [("mbpp", range(11, 511)), ("mbpp-sanitized", None), ("humaneval", None), ("humanevalfix", None)],
)
def test_references_score_1_on_the_public_sets(tmp_path, name, split):
    problems = [problem for _, problem in converted(name)]
    if split:
        problems = [problem for problem in problems if int(problem.task_id) in split]
    save_problems(problems, tmp_path / "problems.jsonl")
    metrics = evaluated(
        test_data=str(tmp_path / "problems.jsonl"),
        answers=["references"],
        num_turns=1,
        batch_size=100,
        program_timeout_s=30.0,  # one reference of MBPP takes seconds
        output_dir=str(tmp_path / "out"),
    )
    assert values(metrics, "acc_t1") == [1.0]
    assert metrics["num_scored"] == {"mbpp": 500, "mbpp-sanitized": 427}.get(name, 164)


def test_buggy_programs_repaired_by_references_are_all_corrections(tmp_path):
    save_problems([problem for _, problem in converted("humanevalfix")], tmp_path / "problems.jsonl")
    metrics = evaluated(
        test_data=str(tmp_path / "problems.jsonl"),
        answers=["buggy", "references"],
        num_turns=2,
        batch_size=100,
        program_timeout_s=2.0,  # three of the buggy programs never end
        output_dir=str(tmp_path / "out"),
    )
    assert values(metrics, "acc_t1", "acc_t2", "i2c_t1_t2", "c2i_t1_t2") == [0.0, 1.0, 1.0, 0.0]
    assert metrics["num_scored"] == 164
