"""Turns beside independent first attempts at equal tokens."""

import sys
from dataclasses import replace
from math import sqrt

import pytest
from matplotlib.figure import Figure

from cocos.generation import Completion
from cocos.report.charts import draw_equal_tokens
from cocos.report.equal_tokens import equal_token_comparisons
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import markdown_report
from cocos.trajectories import Trajectory
from tests.support.commands import succeed
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, trajectory

SAMPLED = {"temperature": [0.8]}


def played(task_id: str, sample: int, *turns: tuple[bool, int]) -> Trajectory:
    """Return a trajectory; each turn is right or not and has a number of tokens."""
    made = trajectory(task_id, *(PASSED if right else FAILED for right, _ in turns), sample=sample)
    completions = [Completion(tuple(range(tokens)), "x\n[DONE]") for _, tokens in turns]
    changed = [
        replace(turn, completion=completion) for turn, completion in zip(made.turns, completions, strict=True)
    ]
    return replace(made, turns=tuple(changed))


def four_samples(task_id: str, right_first: str, right_second: str, tokens: int = 5) -> list[Trajectory]:
    """Return four samples with first turns of 10 tokens; "1000" says that the first is right."""
    pairs = zip(right_first, right_second, strict=True)
    return [
        played(task_id, sample, (first == "1", 10), (second == "1", tokens))
        for sample, (first, second) in enumerate(pairs)
    ]


# a: one first attempt of four is right, a second turn repairs one more. b: two are right and spoilt, one repaired.
TWO_PROBLEMS = four_samples("a", "1000", "1100") + four_samples("b", "1100", "0010")


def test_two_turns_and_as_many_tokens_of_first_attempts_by_hand(tmp_path):
    [comparison] = equal_token_comparisons(
        load_runs([evaluated(tmp_path / "run", TWO_PROBLEMS, options=SAMPLED)])
    )
    first, second = comparison.turns
    assert first[:6] == pytest.approx((1, 10.0, 0.375, 0.375, 1.0, 0.375))  # (1/4 + 2/4) / 2
    assert (second.turns, second.tokens, second.num_attempts) == (2, 15.0, 1.5)
    assert second.right_last == pytest.approx(0.375)  # (2/4 + 1/4) / 2
    assert second.right_any == pytest.approx(0.625)  # (2/4 + 3/4) / 2
    # pass@2: a 1 - C(3,2)/C(4,2) = 1/2, b 1 - C(2,2)/C(4,2) = 5/6; pass@1.5 is halfway: 3/8 and 2/3
    assert second.pass_k == pytest.approx((3 / 8 + 2 / 3) / 2)
    assert second.difference.value == pytest.approx(0.625 - (3 / 8 + 2 / 3) / 2)
    assert second.difference.low is None  # two problems
    # the line of first attempts: pass@1 and pass@2 at 10 and 20 tokens
    assert comparison.attempts == [(10.0, pytest.approx(0.375)), (20.0, pytest.approx(2 / 3))]


def test_the_interval_of_the_difference_is_over_problems(tmp_path):
    # 5 problems gain 0.5 - 3/8 = 1/8, 5 gain 0.75 - 2/3 = 1/12: mean 5/48, each 1/48 from it
    rows = [
        row
        for i in range(5)
        for row in four_samples(f"a{i}", "1000", "1100") + four_samples(f"b{i}", "1100", "0010")
    ]
    [comparison] = equal_token_comparisons(load_runs([evaluated(tmp_path / "run", rows, options=SAMPLED)]))
    half = 1.959964 * sqrt(10 / 48**2) / 10
    assert comparison.turns[1].difference == pytest.approx((5 / 48, 5 / 48 - half, 5 / 48 + half))


def test_a_greedy_run_is_compared_with_the_samples_of_another_run_of_the_same_model(tmp_path):
    greedy = [played("a", 0, (False, 8), (True, 12)), played("b", 0, (True, 12), (True, 8))]
    sampled = [replace(row, turns=row.turns[:1]) for row in TWO_PROBLEMS]
    loaded = load_runs(
        [
            evaluated(tmp_path / "greedy", greedy),
            evaluated(tmp_path / "sampled", sampled, options=SAMPLED),
            evaluated(tmp_path / "other", greedy, options={"model_name_or_path": "another"}),
        ]
    )
    [comparison] = equal_token_comparisons(loaded)
    assert (comparison.run.name, comparison.source.name) == ("greedy", "sampled")
    assert comparison.turns[1].num_attempts == 2.0  # 20 tokens, 10 per first attempt
    assert comparison.turns[1].pass_k == pytest.approx(2 / 3)
    text = markdown_report(loaded)
    table = text.split("## Turns and first attempts at equal tokens, %\n\n")[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert cells[0] == [
        *("model", "attempts of", "turns", "tokens", "acc@t", "any turn", "k", "pass@1", "pass@k"),
        "any turn - pass@k",
    ]
    assert cells[2:] == [
        [*("greedy", "sampled", "2", "20.0", "100.0", "100.0", "2.00", "37.5", "66.7"), "33.3 (no interval)"]
    ]
    assert "k first attempts have as many tokens as the turns" in text


@pytest.mark.parametrize(
    "changed", [{"agent": "reflect"}, {"system_prompt": "mine.txt"}, {"prompt_tests": 1}]
)
def test_first_attempts_from_other_prompts_are_not_set_beside_a_run(tmp_path, changed):
    """An agent has a system message and requests of its own, so its first prompts are other ones."""
    run = [played("a", 0, (False, 8), (True, 12)), played("b", 0, (True, 12), (True, 8))]
    attempts = [replace(row, turns=row.turns[:1]) for row in TWO_PROBLEMS]
    sampled = evaluated(tmp_path / "sampled", attempts, options=SAMPLED)
    same = evaluated(tmp_path / "same", run)
    other = evaluated(tmp_path / "other", run, options=changed)
    assert len(equal_token_comparisons(load_runs([same, sampled]))) == 1
    assert equal_token_comparisons(load_runs([other, sampled])) == []


def test_more_tokens_than_the_samples_have_give_a_dash_and_not_a_guess(tmp_path):
    rows = four_samples("a", "1000", "1100", tokens=31) + four_samples("b", "1100", "0010", tokens=31)
    loaded = load_runs([evaluated(tmp_path / "run", rows, options=SAMPLED)])
    [comparison] = equal_token_comparisons(loaded)
    assert comparison.turns[1].num_attempts == 4.1
    assert comparison.turns[1].pass_k is comparison.turns[1].difference is None
    assert len(comparison.attempts) == 4
    assert "| 4.10 | 37.5 | - | - |" in markdown_report(loaded)
    axes = Figure().subplots()
    draw_equal_tokens(axes, comparison)
    assert [len(line.get_xdata()) for line in axes.lines] == [2, 2, 4, 2]  # the last one is level


def test_turns_that_early_stop_carried_over_have_no_tokens(tmp_path):
    def stop(row):
        first, second = row.turns
        return replace(row, turns=(first, replace(second, is_carried=True, result=first.result)))

    rows = [stop(row) if row.turns[0].result is PASSED else row for row in TWO_PROBLEMS]
    loaded = load_runs([evaluated(tmp_path / "run", rows, options=SAMPLED, early_stop=True)])
    [comparison] = equal_token_comparisons(loaded)
    # a: three samples go on, (10 + 3 * 15) / 4; b: two, (2 * 10 + 2 * 15) / 4
    assert comparison.turns[1].tokens == pytest.approx((55 / 4 + 50 / 4) / 2)
    assert comparison.turns[1].right_last == comparison.turns[1].right_any == 0.625


def test_a_sample_without_a_verdict_is_not_an_attempt(tmp_path):
    failed = trajectory("a", INFRA_FAILURE, FAILED, sample=4)
    loaded = load_runs(
        [
            evaluated(tmp_path / "run", [*TWO_PROBLEMS, failed], options=SAMPLED),
            evaluated(tmp_path / "whole", TWO_PROBLEMS, options=SAMPLED),
        ]
    )
    run, whole = equal_token_comparisons(loaded)
    assert run.turns == whole.turns and run.source.name == "run"


def test_runs_without_independent_first_attempts_or_without_all_tokens_are_left_out(tmp_path):
    resampled = [
        replace(row, turns=(row.turns[0], replace(row.turns[1], is_resampled=True))) for row in TWO_PROBLEMS
    ]
    counted = [trajectory("a", PASSED, sample=sample) for sample in range(4)]  # one turn
    uncounted = [played("a", sample, (True, 0), (True, 0)) for sample in range(4)]
    single = [played("a", 0, (False, 10), (True, 5))]
    folders = [
        evaluated(tmp_path / "greedy", TWO_PROBLEMS, options={"temperature": [0.0, 0.8]}),
        evaluated(tmp_path / "given", TWO_PROBLEMS, options=SAMPLED, answers=["buggy"]),
        evaluated(tmp_path / "resampled", resampled, options=SAMPLED),
        evaluated(tmp_path / "one-turn", counted, options=SAMPLED),
        evaluated(tmp_path / "uncounted", uncounted, options=SAMPLED),
        evaluated(tmp_path / "single", single, options=SAMPLED),
    ]
    for folder in folders:
        assert equal_token_comparisons(load_runs([folder])) == []
    # nor do first attempts at other problems, or from other prompts
    few = [row for row in TWO_PROBLEMS if row.problem.task_id == "b"]
    others = [
        evaluated(tmp_path / "few", few, options=SAMPLED),
        evaluated(tmp_path / "prompts", TWO_PROBLEMS, options=SAMPLED | {"protocol": "chat"}),
        evaluated(tmp_path / "without-tests", TWO_PROBLEMS, options=SAMPLED | {"prompt_tests": 0}),
    ]
    compared = equal_token_comparisons(load_runs([folders[-1], *others]))
    assert {comparison.run.name for comparison in compared} == {"few", "prompts", "without-tests"}


@pytest.mark.processes
def test_a_sampled_evaluation_of_the_laboratory_reports_edits_and_equal_tokens(tmp_path):
    done = succeed(
        *(sys.executable, "test.py", "--config", "configs/toy/eval.yaml", "--model_name_or_path"),
        *("data/toy/base", "--limit", 12, "--num_samples", 4, "--temperature", 0.8),
        *("--output_dir", tmp_path / "base"),
    )
    metrics = load_runs([tmp_path / "base"])[0].metrics
    speed = metrics["speed"]
    assert speed["played"] == 48 and 0 < speed["generation_s"] < speed["wall_s"] < 600
    rows = load_runs([tmp_path / "base"])[0].rows
    turns = [turn for row in rows for turn in row["turns"]]
    assert speed["prompt_tokens"] == sum(turn["num_prompt_tokens"] for turn in turns) > 0
    assert speed["prompt_tokens_per_problem"] == round(speed["prompt_tokens"] / 48, 1)
    repeated = [row["turns"][0]["code"] == row["turns"][1]["code"] for row in rows]
    assert metrics["metrics"]["repeated_t1_t2"]["value"] == pytest.approx(sum(repeated) / 48)
    for heading in ("Edits, % [95 % interval]", "Turns and first attempts at equal tokens, %"):
        assert heading in done.stdout and heading in (tmp_path / "base/report.html").read_text(
            encoding="utf-8"
        )
