"""Accuracy against tokens, and what resampling gives for as many."""

import json
import re
import shlex
import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cocos.commands.report import report_parser
from cocos.config.command_line import OptionParser
from cocos.config.eval_config import EvalSuiteConfig
from cocos.config.option import default_values
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.files.run_record import run_record
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.report.caveats import carry_flags, resampling_advice
from cocos.report.charts import draw_token_curves
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import markdown_report
from cocos.report.tables import RESAMPLING_NOTE, TOKENS_TITLE
from cocos.report.token_curves import token_curves, verdict
from cocos.trajectories import Trajectory, Turn
from tests.support.commands import succeed
from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, page_of, trajectory

SAMPLED = {"temperature": [0.8], "num_turns": 1}
AGAIN = {"carry": "nothing"}
# A program passes both tests, the visible one alone, or neither.
RIGHT, SHOWN, WRONG = (
    ExecutionResult(tuple(Verdict(status) for status in statuses))
    for statuses in (
        (Status.PASSED, Status.PASSED),
        (Status.PASSED, Status.FAILED),
        (Status.FAILED, Status.FAILED),
    )
)


def played(
    task_id: str, *turns: tuple[ExecutionResult, int, int], sample: int = 0, request: str = ""
) -> Trajectory:
    """Return a trajectory; each turn has a result, and the tokens of its prompt and of its completion."""
    made = tuple(
        Turn(
            (1,) * prompt,
            Completion((1,) * tokens, f"x = {number}\n[DONE]"),
            f"x = {number}",
            result,
            request=request or f"request {number}",
        )
        for number, (result, prompt, tokens) in enumerate(turns)
    )
    return Trajectory(Problem(task_id, "t", ("assert 1",), hidden_test_list=("assert 2",)), sample, made)


def test_the_visible_tests_choose_and_end_a_problem_and_all_tests_score_it(tmp_path):
    """By hand: in a turn 1 passes what is visible and is wrong; in b turn 2 repairs; in c turn 1 is right."""
    rows = [
        played("a", (SHOWN, 20, 10), (RIGHT, 40, 5)),
        played("b", (WRONG, 20, 10), (RIGHT, 40, 8)),
        played("c", (RIGHT, 20, 10), (WRONG, 40, 9)),
    ]
    [curve] = token_curves(load_runs([evaluated(tmp_path / "run", rows)]))
    first, second = curve.points
    assert (first.programs, first.right_P, first.accuracy) == (1, (0, 0, 1), pytest.approx(1 / 3))
    assert first.tokens == (10, 30, 30)
    assert (second.programs, second.right_P) == (2, (0, 1, 1))
    # b alone goes on: 8 more sampled; a prompt of 40 that begins with 20 + 10 known ones; or the whole of it
    assert second.tokens == pytest.approx((10 + 8 / 3, 30 + 18 / 3, 30 + 48 / 3))
    assert curve.resampling is None and verdict(curve) is None


def test_an_unchanged_prompt_is_computed_once_and_a_changed_one_again(tmp_path):
    turns = ((WRONG, 20, 10), (WRONG, 20, 10), (WRONG, 20, 10))
    folders = [
        evaluated(tmp_path / "same", [played("a", *turns, request="ask")], options=AGAIN),
        evaluated(tmp_path / "other", [played("a", *turns)], options={"carry": "counterexamples"}),
    ]
    same, other = token_curves(load_runs(folders))
    assert same.points[2].tokens == (30, 50, 90)
    assert other.points[2].tokens == (30, 90, 90)


@pytest.mark.parametrize(("temperature", "warns"), [([0.0], True), ([0.0, 0.8], False)])
def test_a_greedy_turn_that_asks_the_same_again_is_a_caution(tmp_path, temperature, warns):
    rows = [played("a", (WRONG, 20, 10), (WRONG, 20, 10), request="ask")]
    run = load_runs([evaluated(tmp_path / "run", rows, options=AGAIN | {"temperature": temperature})])
    said = "run: 100 % of the turns 2 ask greedily what turn 1 asked, so they add nothing"
    assert (said in markdown_report(Report(run))) == warns


def test_samples_are_drawn_until_one_passes_the_visible_tests(tmp_path):
    """Of four samples, one is right and one more passes what is visible."""
    results = (RIGHT, SHOWN, WRONG, WRONG)
    rows = [played("a", (result, 20, 10), sample=sample) for sample, result in enumerate(results)]
    [curve] = token_curves(load_runs([evaluated(tmp_path / "run", rows, options=SAMPLED)]))
    # k = 2: one of the two passes with 1 - C(2,2)/C(4,2) = 5/6, and half of these are right; a second sample
    # is drawn if the first fails, with 1/2. k = 4: the third after two that fail (1/6), a fourth never.
    assert [point.accuracy for point in curve.points] == pytest.approx([1 / 4, 5 / 12, 1 / 2, 1 / 2])
    draws = [1, 1.5, 1.5 + 1 / 6, 1.5 + 1 / 6]
    assert [point.tokens for point in curve.points] == [
        pytest.approx((10 * n, 10 * n + 20, 30 * n)) for n in draws
    ]
    table = Report([curve.run]).token_table
    assert [row[1] for row in table.rows] == ["1", "2", "4"]


def turns_and_resampling(tmp_path, num_problems=2):
    """Two turns that repair all, and asking again that repairs every second problem."""
    ids = [str(number) for number in range(num_problems)]
    repaired = [played(name, (WRONG, 20, 10), (RIGHT, 40, 5)) for name in ids]
    again = [
        played(name, (WRONG, 20, 10), (RIGHT if number % 2 else WRONG, 20, 10))
        for number, name in enumerate(ids)
    ]
    return [evaluated(tmp_path / "turns", repaired), evaluated(tmp_path / "again", again, options=AGAIN)]


def test_turns_are_compared_with_resampling_at_as_many_sampled_tokens(tmp_path):
    turns, again = token_curves(load_runs(turns_and_resampling(tmp_path)))
    assert turns.resampling.run.name == "again" and again.resampling is None
    # 15 tokens are halfway between one program (none right) and two (every second right): 1 - 1/4
    assert turns.difference(turns.points[1]).value == pytest.approx(0.75)
    assert turns.difference(turns.points[0]).value == 0.0
    assert verdict(turns) == (
        "Where the visible tests choose, turns has 100.0 % after 2 programs (15 tokens), and resampling (again) "
        "25.0 % for as many tokens: +75.0 points (no interval), may be chance; 2 problems."
    )


def test_runs_are_paired_by_problem_whatever_the_order_of_their_rows(tmp_path):
    """Resampling solves problem 1 alone, and the turns solve 0 alone: +1 and -1/2 at 15 of 10 and 20 tokens."""
    first = [played("0", (WRONG, 20, 10), (RIGHT, 40, 5)), played("1", (WRONG, 20, 10), (WRONG, 40, 5))]
    second = [played("1", (WRONG, 20, 10), (RIGHT, 20, 10)), played("0", (WRONG, 20, 10), (WRONG, 20, 10))]
    folders = [evaluated(tmp_path / "turns", first), evaluated(tmp_path / "again", second, options=AGAIN)]
    turns, again = token_curves(load_runs(folders))
    assert turns.points[1].right_P == (1, 0) and again.points[1].right_P == (0, 1)
    assert turns.difference(turns.points[1]).value == pytest.approx((1 - 0.5) / 2)


def test_the_interval_of_the_difference_is_paired_by_problem(tmp_path):
    turns, _ = token_curves(load_runs(turns_and_resampling(tmp_path, 20)))
    # half of the problems gain 1, half 1 - 1/2: mean 3/4, each 1/4 from it
    half = 1.959964 * sqrt(20 / 4**2) / 20
    assert turns.difference(turns.points[1]) == pytest.approx((0.75, 0.75 - half, 0.75 + half))
    assert verdict(turns).endswith(": +75.0 points [64.0, 86.0], hardly chance; 20 problems.")


def test_more_tokens_than_resampling_has_give_a_dash_and_not_a_guess(tmp_path):
    folders = turns_and_resampling(tmp_path)
    long = [played(name, (WRONG, 20, 10), (RIGHT, 40, 11)) for name in ("0", "1")]
    runs = load_runs([evaluated(tmp_path / "long", long), *folders])
    curve = token_curves(runs)[0]
    assert curve.difference(curve.points[1]) is None and verdict(curve) is None
    table = Report(runs).token_table
    assert next(row for row in table.rows if row[:2] == ["long", "2"])[-1] == "-"


@pytest.mark.parametrize(
    "options", [{"model_name_or_path": "another"}, {"protocol": "chat"}, {"visible_tests": 1}]
)
def test_another_model_other_words_and_other_judges_are_no_resampling(tmp_path, options):
    turns, again = turns_and_resampling(tmp_path)
    other = evaluated(
        tmp_path / "other", [played("0", (WRONG, 1, 1), (WRONG, 1, 1))], options=AGAIN | options
    )
    assert token_curves(load_runs([turns, other]))[0].resampling is None
    assert token_curves(load_runs([turns, other, again]))[0].resampling.run.name == "again"


def test_blind_resampling_is_compared_with_the_one_that_shows_all_tests(tmp_path):
    turns, again = turns_and_resampling(tmp_path)
    rows = [played(name, (WRONG, 20, 10), (RIGHT, 20, 10)) for name in ("0", "1")]
    blind = evaluated(tmp_path / "blind", rows, options=AGAIN | {"prompt_tests": 0})
    first, second, third = token_curves(load_runs([blind, turns, again]))
    assert [curve.resampling and curve.resampling.run.name for curve in (first, second, third)] == [
        *("again", "again"),
        None,
    ]
    alone = token_curves(load_runs([turns, blind]))[0]
    assert "resampling (blind, which shows fewer tests than are visible) 50.0 %" in verdict(alone)


def test_the_report_says_it_first_and_draws_all_runs_in_one_picture(tmp_path):
    runs = load_runs(turns_and_resampling(tmp_path))
    text, page = markdown_report(Report(runs)), page_of(runs)
    sentence = verdict(token_curves(runs)[0])
    assert text.index("| turns ") < text.index(sentence) < text.index("## Self-correction")
    assert page.index('id="summary"') < page.index(sentence) < page.index('id="tokens"')
    assert page.count(RESAMPLING_NOTE) == 1
    # Both problems are wrong at turn 1 and right at turn 2. The last programs count, here and nowhere else on top.
    row = page[page.index('scope="rowgroup">turns <small>') :].partition("</tbody>")[0]
    assert re.findall(r"<td>(?:<b[^>]*>)?(?:<span[^>]*>)?([^<]*)", row) == ["0.0", "100.0", "+100.0", "2"]
    axes = Figure().subplots()
    drawn = draw_token_curves(axes, token_curves(runs))
    assert [list(line.get_xdata()) for line in axes.lines] == [[10, 15], [10, 20]]
    assert drawn.startswith(
        "Accuracy against sampled tokens: turns 0.0 % for 10 tokens, 100.0 % for 15 tokens;"
    )


def test_one_run_over_several_turns_is_told_how_to_make_a_resampling_run(tmp_path):
    turns, again = turns_and_resampling(tmp_path)
    said = "There is no resampling run to compare with."
    for folders, is_told in (([turns], True), ([again], False), ([turns, again], False)):
        assert (said in markdown_report(Report(load_runs(folders)))) == is_told
    assert said in page_of(load_runs([turns]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"agent": "reflect"},
        {"agent": "tools", "protocol": "chat"},
        {"feedback": "error", "feedback_failures": 3, "early_stop": True},
        {"on_repeat": "tell", "feedback": "verdict"},
        {"carry": "counterexamples", "placebo": "wrong"},
    ],
    ids=str,
)
def test_the_options_that_a_report_advises_are_accepted_by_an_evaluation(tmp_path, options):
    """A person copies the printed command, or adds the printed flags to the command of the run."""
    folder = evaluated(tmp_path / "my runs", [played("a", (WRONG, 20, 10), (WRONG, 20, 10))], options=options)
    needed = {"model_name_or_path": ["m"], "test_data": ["t.jsonl"], "output_dir": str(folder)}
    given = default_values(EvalSuiteConfig) | needed | options
    (folder / "run.json").write_text(json.dumps(run_record(EvalSuiteConfig(**given))))
    [run] = load_runs([folder])
    played_again, compared = re.findall(r": ((?:python|cocos) [^;]*)", resampling_advice(run))
    advised = OptionParser(EvalSuiteConfig).parse(words_after(played_again, "eval"))
    assert (advised.carry, advised.temperature, advised.agent) == ("nothing", [0.0, 0.8], "none")
    assert advised.output_dir == f"{folder}_again" and advised.early_stop == options.get("early_stop", False)
    assert report_parser().parse_args(words_after(compared, "report")).evaluations == [
        folder,
        Path(f"{folder}_again"),
    ]
    flags = carry_flags(run, "counterexamples").split()
    assert OptionParser(EvalSuiteConfig).parse(["--config", f"{folder}/run.json", *flags])


def words_after(command, name):
    words = shlex.split(command)
    assert words[:2] == ["cocos", name]
    return words[2:]


def test_an_agents_rising_temperatures_are_not_called_greedy(tmp_path):
    rows = [played("a", (WRONG, 20, 10), (WRONG, 20, 10), request="ask")]
    options = AGAIN | {"temperature": None, "agent": "reflect"}
    run = load_runs([evaluated(tmp_path / "run", rows, options=options)])
    assert "ask greedily" not in markdown_report(Report(run))


def test_a_run_with_two_accuracies_says_why(tmp_path):
    """The first program passes and is right, the second is not: 100 % where the visible tests choose, then 0 %."""
    runs = load_runs([evaluated(tmp_path / "run", [played("a", (RIGHT, 20, 10), (WRONG, 40, 5))])])
    said = "run has 100.0 % for 10 tokens where the visible tests choose"
    assert said in markdown_report(Report(runs)) and said in page_of(runs)
    assert said not in markdown_report(Report(load_runs(turns_and_resampling(tmp_path))))


def test_choosing_by_all_tests_is_a_caution(tmp_path):
    hidden = [played("a", (result, 20, 10), sample=sample) for sample, result in enumerate((RIGHT, WRONG))]
    shown = [trajectory("a", *result, sample=sample) for sample, result in enumerate(([PASSED], [FAILED]))]
    for name, rows, warns in (("hidden", hidden, False), ("shown", shown, True)):
        text = markdown_report(Report(load_runs([evaluated(tmp_path / name, rows, options=SAMPLED)])))
        assert (f"{name}: every test is visible" in text) == warns


def test_runs_whose_tokens_are_not_all_known_are_left_out(tmp_path):
    rows = [played("a", (WRONG, 20, 10), (RIGHT, 20, 10))]
    resampled = [replace(row, turns=(row.turns[0], replace(row.turns[1], is_resampled=True))) for row in rows]
    folders = [
        evaluated(tmp_path / "given", rows, answers=["buggy"]),
        evaluated(tmp_path / "resampled", resampled),
        evaluated(tmp_path / "uncounted", [played("a", (WRONG, 0, 0), (RIGHT, 0, 0))]),
        evaluated(tmp_path / "one", [played("a", (WRONG, 20, 10))]),
        evaluated(
            tmp_path / "greedy",
            [played("a", (WRONG, 20, 10), sample=sample) for sample in range(2)],
            options={"temperature": [0.0], "num_turns": 1},
        ),
    ]
    assert token_curves(load_runs(folders)) == []


def test_a_sample_without_a_verdict_is_not_drawn(tmp_path):
    failed = trajectory("a", INFRA_FAILURE, sample=2)
    rows = [played("a", (result, 20, 10), sample=sample) for sample, result in enumerate((RIGHT, WRONG))]
    [curve] = token_curves(load_runs([evaluated(tmp_path / "run", [*rows, failed], options=SAMPLED)]))
    assert [point.accuracy for point in curve.points] == [0.5, 1.0]


@pytest.mark.processes
def test_a_sampled_evaluation_of_the_laboratory_reports_edits_and_tokens(tmp_path):
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
    for heading in ("Edits, % [95 % interval]", f"{TOKENS_TITLE}, %"):
        assert heading in done.stdout and heading in (tmp_path / "base/report.html").read_text(
            encoding="utf-8"
        )
