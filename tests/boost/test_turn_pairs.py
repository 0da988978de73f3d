"""Attempts and pairs: what is taught, in which proportion, and that an interrupted run goes on where it stopped."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boost.attempt_log import AttemptLog
from boost.attempts import Attempt, sample_attempts
from boost.turn_pairs import balance_pairs, make_pairs
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import DataError, Problem
from cocos.prompts import answer, protocol
from tests.support.commands import complaint, succeed
from tests.support.paths import TOY

RIGHT, WRONG = "def double(x):\n    return 2 * x", "def double(x):\n    return x * x"
COCOS = protocol("cocos")


def sample(problems, script, executor, **numbers):
    return sample_attempts(
        problems, ScriptedGenerator(script), executor, COCOS, temperature=1.0, max_infra_share=0.0, **numbers
    )


def test_wrong_attempts_are_tried_again_and_only_what_passes_is_a_correction(problem, executor):
    easy = replace(problem, task_id="easy", text="Easy: double a number.")

    def script(prompt: str) -> str:
        return answer(RIGHT if "Easy" in prompt or "There might be an error" in prompt else WRONG)

    made = sample([problem, easy], script, executor, num_samples=2, num_corrections=3)
    assert made == [Attempt("1", WRONG, False, (RIGHT,))] * 2 + [Attempt("easy", RIGHT, True)] * 2


def test_a_hidden_test_decides_too(problem, executor):
    hiding = replace(problem, test_list=problem.test_list[:1], hidden_test_list=problem.test_list[1:])
    [made] = sample([hiding], lambda _: answer(WRONG), executor, num_samples=1, num_corrections=0)
    assert made.is_right is False  # 2 * 2 == 2 ** 2, so the visible test alone would pass


ATTEMPTS = [Attempt("1", WRONG, False), Attempt("1", RIGHT, True), Attempt("1", "x", False, ("own",)),
            Attempt("1", "y", None), Attempt("1", " ", False)]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "verified", "expected"),
    [
        ("any", {"1"}, [(WRONG, "reference"), (RIGHT, RIGHT), ("x", "reference")]),
        ("any", set(), [(WRONG, RIGHT), (RIGHT, RIGHT), ("x", "own")]),
        ("own", {"1"}, [(WRONG, RIGHT), (RIGHT, RIGHT), ("x", "own")]),
        ("reference", {"1"}, [(WRONG, "reference"), (RIGHT, RIGHT), ("x", "reference")]),
        ("reference", set(), [(RIGHT, RIGHT)]),
    ],
)
def test_a_right_attempt_is_kept_and_a_wrong_one_becomes_what_was_asked_for(
    problem, source, verified, expected
):
    pairs = make_pairs([replace(problem, code="reference")], ATTEMPTS, verified, source)
    assert [(p.attempt, p.correction) for p in pairs] == expected


@settings(max_examples=100, deadline=None, database=None)
@given(
    kinds=st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2)), max_size=30),
    per_problem=st.none() | st.integers(1, 4),
    keep_share=st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    seed=st.integers(0, 3),
)
def test_balanced_pairs_keep_to_the_share_and_the_number_per_problem(kinds, per_problem, keep_share, seed):
    problems = {i: Problem(str(i), "t", ("assert f()",), "reference") for i in range(5)}
    attempts = [Attempt(str(i), f"{right}{n}", right) for i, right, n in kinds]
    pairs = make_pairs(list(problems.values()), attempts, {str(i) for i in problems}, "any")
    chosen = balance_pairs(pairs, per_problem, keep_share, seed)
    assert chosen == balance_pairs(pairs, per_problem, keep_share, seed)
    assert [p for p in pairs if any(p is c for c in chosen)] == chosen
    counts = [sum(p.problem.task_id == i for p in chosen) for i in map(str, problems)]
    assert per_problem is None or max(counts) <= per_problem
    kept = sum(p.is_kept for p in chosen)
    if keep_share is None and per_problem is None:
        assert chosen == pairs
    elif keep_share is not None and chosen:
        assert abs(kept - keep_share * len(chosen)) < 1.01  # one pair off at most: counts are whole


def test_of_equal_attempts_at_a_problem_one_is_taught_before_another_is_repeated(problem):
    attempts = [Attempt("1", "same", False)] * 9 + [Attempt("1", "other", False)]
    pairs = make_pairs([replace(problem, code="reference")], attempts, {"1"}, "any")
    assert {p.attempt for p in balance_pairs(pairs, 2, None, seed=0)} == {"same", "other"}


def test_a_log_goes_on_after_its_last_whole_batch_and_refuses_other_settings(tmp_path):
    path, facts = tmp_path / "log", {"seed": 1, "model": "m"}
    log = AttemptLog(path, facts)
    log.append(ATTEMPTS[:2])
    log.append(ATTEMPTS[2:])
    whole = path.read_bytes()
    assert AttemptLog(path, facts).batches == [ATTEMPTS[:2], ATTEMPTS[2:]]
    path.write_bytes(whole[:-20])  # as after a power cut
    log = AttemptLog(path, facts)
    assert log.batches == [ATTEMPTS[:2]]
    log.append(ATTEMPTS[2:])
    assert path.read_bytes() == whole
    with pytest.raises(DataError, match="was made with seed 1, not 2; remove it or choose another --output"):
        AttemptLog(path, facts | {"seed": 2})
    path.write_text("[]\n")
    with pytest.raises(DataError, match="no log of attempts"):
        AttemptLog(path, facts)


def make(problems, output, *words):
    return (
        *(
            "python",
            "scripts/make_boost_data.py",
            "--model_name_or_path",
            TOY / "base",
            "--train_data",
            problems,
        ),
        *("--output", output, "--max_completion_length", 48, "--temperature", 1.0, *words),
    )


@pytest.mark.processes
def test_a_continued_run_writes_what_an_unbroken_one_writes(problems_file, tmp_path):
    words = ("--batch_size", 2, "--corrections", "any", "--num_corrections", 2, "--pairs_per_problem", 1)
    done = succeed(*make(problems_file, tmp_path / "rows.json", *words))
    assert "tokens per row: median" in done.stdout and "keep a right attempt" in done.stdout
    whole, log = (tmp_path / "rows.json").read_bytes(), tmp_path / "rows.json.attempts.jsonl"
    attempts = log.read_bytes()
    rows = json.loads(whole)
    assert {row["prompt"].rsplit("\n", 1)[-1] for row in rows} == {
        "[BEGIN]",
        "[CORRECT]",
    }  # the README's form
    log.write_bytes(
        b"\n".join(attempts.split(b"\n")[:2]) + b"\n[{"
    )  # the first of three batches, and a piece
    (tmp_path / "rows.json").unlink()
    succeed(*make(problems_file, tmp_path / "rows.json", *words))
    assert (tmp_path / "rows.json").read_bytes() == whole and log.read_bytes() == attempts


@pytest.mark.processes
def test_settings_without_effect_and_out_of_range_are_refused(problems_file, tmp_path):
    line = complaint(
        *make(problems_file, tmp_path / "r", "--corrections", "reference", "--num_corrections", 1)
    )
    assert "--num_corrections has no effect with --corrections reference" in line
    assert "it must lie in [0, 1]" in complaint(*make(problems_file, tmp_path / "r", "--keep_share", 1.5))
