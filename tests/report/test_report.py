"""Tables, charts, and the command that compares evaluations."""

import json
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from PIL import Image

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.intervals import wilson
from cocos.problems import Problem
from cocos.report.chart_style import LEGEND_LINE, RIGHT, STYLE
from cocos.report.charts import (
    draw_accuracy,
    draw_changes,
    draw_costs,
    draw_errors,
    draw_problems,
    save_overview,
)
from cocos.report.comparisons import compare_runs
from cocos.report.contents import Report
from cocos.report.finished_runs import load_runs
from cocos.report.report_files import markdown_report, print_tables, save_report
from cocos.report.tables import NO_INTERVAL_NOTE
from cocos.trajectories import Trajectory
from tests.support.commands import command
from tests.support.paths import ROOT
from tests.support.report import (
    FAILED,
    INFRA_FAILURE,
    MARKED,
    PASSED,
    TYPE_ERROR,
    evaluated,
    numbered,
    page_of,
    sampled,
    trajectory,
    turn,
)

# 10 problems: 4 right and kept, 1 spoilt, 3 repaired, 2 never right. acc@1 5/10, acc@2 7/10.
TWO_TURNS = numbered(
    *[(PASSED, PASSED)] * 4, (PASSED, FAILED), *[(TYPE_ERROR, PASSED)] * 3, *[(FAILED, FAILED)] * 2
)
# The last problem's second program repeats the first.
ONE_REPEATED = [*TWO_TURNS[:9], replace(TWO_TURNS[9], turns=(TWO_TURNS[9].turns[0],) * 2)]
# Compared with TWO_TURNS, turn 1 gains no problem and loses 3 and 4; turn 2 gains 4, 8 and 9 and loses 0.
OTHER = numbered(
    (PASSED, FAILED), *[(PASSED, PASSED)] * 2, *[(FAILED, PASSED)] * 2, *[(TYPE_ERROR, PASSED)] * 5
)
ONE_TURN = numbered(*[(PASSED,)] * 2, *[(FAILED,)] * 2)
THREE_TURNS = numbered((FAILED, PASSED, FAILED), (PASSED, PASSED, PASSED))


def runs(tmp_path, **evaluations):
    return load_runs([evaluated(tmp_path / name, rows) for name, rows in evaluations.items()])


def rows_of(text, heading):
    """Return the cells of the Markdown table below a heading, the header first and without the rule."""
    lines = text.splitlines()
    table = lines[lines.index(heading) + 2 :]
    table = table[: table.index("")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if "---" not in line]


def test_the_table_has_the_numbers(tmp_path):
    # delta: 0.2 -+ 1.96 * sqrt((0.4 - 0.04) / 10) = 0.2 -+ 0.3719
    text = markdown_report(Report(runs(tmp_path, cocos=TWO_TURNS)))
    assert rows_of(text, "## Self-correction, % [95 % interval]") == [
        ["model", "n", "turns", "acc@1", "acc@2", "delta", "i→c", "c→i"],
        [
            *("cocos", "10", "1 to 2", "50.0 [23.7, 76.3]", "70.0 [39.7, 89.2]", "20.0 [-17.2, 57.2]"),
            *("30.0 [10.8, 60.3]", "10.0 [1.8, 40.4]"),
        ],
    ]


def test_the_errors_of_each_turn_and_their_repairs_are_a_table(tmp_path):
    lines = markdown_report(
        Report(runs(tmp_path, cocos=TWO_TURNS, perfect=numbered((PASSED, PASSED))))
    ).splitlines()
    assert lines[lines.index("## Errors") + 2 :] == [
        "| model | first failing test | turn 1 | turn 2 |",
        "| --- | --- | --- | --- |",
        "| cocos | AssertionError | 2 (0 repaired) | 3 |",
        "| cocos | TypeError | 3 (3 repaired) | 0 |",
    ]
    perfect = markdown_report(Report(runs(tmp_path, right=numbered((PASSED, PASSED)))))
    assert perfect.endswith("## Errors\n\nnone\n")


def test_an_exceptions_name_cannot_add_lines(tmp_path):
    forged = ExecutionResult((Verdict(Status.ERROR, "E\n# 100 %\n" + "x" * 200),))
    text = markdown_report(Report(runs(tmp_path, cocos=numbered((forged, PASSED)))))
    assert "| cocos | E?# 100 %?xxxxxxxxxxxxxxxxxxx… | 1 (1 repaired) | 0 |\n" in text


def test_one_turn_has_one_row_and_three_turns_have_a_row_per_pair_and_one_from_the_first_to_the_last(
    tmp_path,
):
    text = markdown_report(Report(runs(tmp_path, a=ONE_TURN, b=THREE_TURNS * 6)))
    header, *rows = rows_of(text, "## Self-correction, % [95 % interval]")
    assert header == ["model", "n", "turns", "acc before", "acc after", "delta", "i→c", "c→i"]
    assert rows[0] == ["a", "4", "1", "50.0 [15.0, 85.0]", "", "", "", ""]
    # THREE_TURNS: one problem is wrong, right, wrong; the other always right
    shown = [[row[0], row[2], *(cell.split()[0] for cell in row[3:])] for row in rows[1:]]
    assert shown == [
        ["b", "1 to 2", "50.0", "100.0", "50.0", "50.0", "0.0"],
        ["b", "2 to 3", "100.0", "50.0", "-50.0", "0.0", "50.0"],
        ["b", "1 to 3", "50.0", "50.0", "0.0", "0.0", "0.0"],
    ]


def test_right_programs_that_rest_on_in_child_verdicts_are_counted_with_a_note_only_if_there_are_any(
    tmp_path, capsys
):
    loaded = runs(tmp_path, a=numbered((FAILED, MARKED), (MARKED, MARKED), (PASSED, PASSED)), b=OTHER)
    text = markdown_report(Report(loaded))
    header, *rows = rows_of(text, "## Self-correction, % [95 % interval]")
    assert header[-1] == "in_child" and [row[-1] for row in rows] == ["1 → 2", "0 → 0"]
    assert text.count("in_child: right programs with a test whose verdict") == 1
    print_tables(Report(loaded))
    assert "could have forged it; samples.jsonl gives the reason" in capsys.readouterr().out
    page = page_of(loaded)
    assert "right<br>in_child" in page and page.count("in_child: right programs with a test") == 1
    page = page_of(loaded[1:])
    assert "in_child" not in markdown_report(Report(loaded[1:])) and "in_child" not in page


def test_every_pass_at_k_is_listed(tmp_path):
    # 16 samples, c right: pass@2 = 1 - C(16-c, 2) / C(16, 2): 1/8 for c = 1, 1 - 28/120 for c = 8
    text = markdown_report(Report(runs(tmp_path, a=sampled(1, 8), b=ONE_TURN)))
    header, row = rows_of(text, "## pass@k, and best@k: the program of k that the visible tests choose, %")
    assert header == ["model", "turn", "chosen by", "k = 1", "k = 2", "k = 4", "k = 8", "k = 16"]
    assert row[:5] == ["a", "1", "all tests", "28.1", f"{100 * (1 / 8 + 1 - 28 / 120) / 2:.1f}"]
    assert row[-1] == "100.0"
    assert "pass@k" not in markdown_report(Report(load_runs([tmp_path / "b"])))


def with_hidden(trajectory):
    """The same with two verdicts: the visible test passes, the hidden one decides."""
    problem = Problem(trajectory.problem.task_id, "t", ("assert True",), hidden_test_list=("assert f()",))
    seen = [
        replace(t, result=ExecutionResult((Verdict(Status.PASSED), *t.result.verdicts)))
        for t in trajectory.turns
    ]
    return replace(trajectory, problem=problem, turns=tuple(seen))


def test_greedy_and_sampled_programs_of_one_evaluation_are_paired_by_problem(tmp_path):
    """Four samples at turn 2, the greedy program at turn 1. Right samples of twelve problems, before and after."""
    before, after = [0, 1, 2, 4] * 3, [1, 1, 4, 4] * 3
    for name, counts in (("a", before), ("b", after)):
        rows = [
            with_hidden(
                trajectory(str(i), PASSED if right > 1 else FAILED, PASSED if k < right else FAILED, sample=k)
            )
            for i, right in enumerate(counts)
            for k in range(4)
        ]
        evaluated(tmp_path / name, rows, options={"carry": "nothing", "temperature": [0, 0.8]})
    runs = load_runs([tmp_path / "a", tmp_path / "b"])
    text = markdown_report(Report(runs, compare_runs(runs)))
    shown = {
        (row[0].split()[0], row[1]): row[2]
        for row in rows_of(text, "## Greedy and sampled programs, % [95 % interval]")
    }
    assert shown["a", "greedy"].startswith("50.0 [") and shown["b", "greedy"].startswith("50.0 [")
    assert shown["a", "pass@1"].startswith("43.8 [")  # (0 + 1 + 2 + 4) / 16
    assert shown["a", "pass@3"].startswith("68.8 [")  # 0, 1 - C(3,3) / C(4,3) = 3/4, 1, 1
    # Every sample passes the visible test, so that any of the three is chosen: the mean share of right ones.
    assert shown["a", "best@3"] == shown["a", "pass@1"]
    assert shown["a", "pass@4"].startswith("75.0 [")
    heading = "## Greedy and sampled programs against the baseline, points [95 % interval]"
    header, *rows = rows_of(text, heading)
    assert header == ["model", "against", "programs", "difference", "smallest difference"]
    assert [row[2] for row in rows] == ["greedy", "pass@1", "pass@3", "best@3", "pass@4"]
    # pass@1: 1/4, 0, 1/2, 0, mean 0.1875; variance of the mean: (0.25^2 + 0.5^2) / 4 / 12 - 0.1875^2 / 12
    error = math.sqrt(((0.25**2 + 0.5**2) / 4 - 0.1875**2) / 12)
    low, high = 18.75 - 195.9964 * error, 18.75 + 195.9964 * error
    assert rows[1][3:] == [f"18.8 [{low:.1f}, {high:.1f}]", f"{280.1585 * error:.1f}"]
    assert rows[0][3:] == ["0.0 (no interval)", "-"]
    assert "80 % of such evaluations tell it from 0" in text
    assert heading[3:].split(",")[0] in page_of(runs, compare_runs(runs))


def test_turns_that_are_no_samples_of_the_task_have_no_such_table(tmp_path):
    for name, options, conditions in (
        ("transcript", {"temperature": [0, 0.8]}, {}),
        ("greedy", {"carry": "nothing"}, {}),
        ("stopped", {"carry": "nothing", "temperature": [0, 0.8]}, {"early_stop": True}),
    ):
        rows = [trajectory(str(i), FAILED, PASSED, sample=k) for i in range(12) for k in range(2)]
        evaluated(tmp_path / name, rows, options=options, **conditions)
        assert "Greedy and sampled" not in markdown_report(Report(load_runs([tmp_path / name]))), name


def test_repeated_programs_and_edits_are_listed_per_pair_of_turns(tmp_path):
    # "x = 1" -> "x = 2": 2 edits / 10 characters = 20 %, and one program of ten is repeated: 18 %;
    # it is one of the five that were wrong at turn 1
    text = markdown_report(Report(runs(tmp_path, a=ONE_REPEATED, b=ONE_TURN, c=THREE_TURNS)))
    # 0.18 -+ 1.96 * sqrt((9 * 0.02^2 + 0.18^2) / 100) = 0.18 -+ 1.96 * 0.018974
    assert rows_of(text, "## Edits, % [95 % interval]") == [
        ["model", "turns", "repeated programs", "wrong ones repeated", "edit ratio"],
        ["a", "1 to 2", "10.0 [1.8, 40.4]", "20.0 [3.6, 62.4]", "18.0 [14.3, 21.7]"],
        ["c", "1 to 2", "0.0 [0.0, 65.8]", "0.0 [0.0, 79.3]", "20.0 (no interval)"],
        ["c", "2 to 3", "0.0 [0.0, 65.8]", "-", "20.0 (no interval)"],
    ]
    assert "## Edits" not in markdown_report(Report(load_runs([tmp_path / "b"])))


def test_seconds_and_tokens_are_listed(tmp_path):
    speed = {"seconds_per_problem": 0.0424, "tokens_per_problem": 1234.56, "prompt_tokens_per_problem": 98765}
    speed |= {"generation_s": 12.4, "completion_tokens": 24680, "prompt_tokens": 1975300}
    text = markdown_report(Report(load_runs([evaluated(tmp_path / "a", TWO_TURNS, speed=speed)])))
    assert rows_of(text, "## Seconds and tokens") == [
        ["model", "trajectories", "seconds of generation", "sampled tokens", "prompt tokens"],
        ["a", "mean", "0.0424", "1234.6", "98765.0"],
        ["a", "total", "12", "24680", "1975300"],
    ]


def test_a_difference_over_few_problems_has_no_interval_anywhere(tmp_path, capsys):
    three = numbered((FAILED, FAILED), (PASSED, PASSED), (FAILED, FAILED))
    both = runs(tmp_path, a=three, b=three)
    stored = json.loads((tmp_path / "a/metrics.json").read_text())["metrics"]
    assert stored["delta_t1_t2"] == {"value": 0.0, "low": None, "high": None}
    comparisons = compare_runs(both)
    text = markdown_report(Report(both, comparisons))
    [_, row, _] = rows_of(text, "## Self-correction, % [95 % interval]")
    assert row[3] == "33.3 [6.1, 79.2]" and row[5] == "0.0 (no interval)"  # Wilson's needs no minimum
    assert [row[5] for row in rows_of(text, "## Against the baseline, % [95 % interval]")[1:]] == [
        "0.0 (no interval)"
    ] * 2
    assert text.count(NO_INTERVAL_NOTE) == 1
    print_tables(Report(both, comparisons))
    shown = capsys.readouterr().out
    # two changes, each twice, and two differences; 20.0 of each run's edits
    assert len(re.findall(r" 0\.0 \(no interval\)", shown)) == 6 and shown.count(NO_INTERVAL_NOTE) == 1
    page = page_of(both, comparisons)
    assert page.count(NO_INTERVAL_NOTE) > 1  # at the top, and at each cell
    assert "[+0.0, +0.0]" not in page and ">(no interval)</small>" in page
    assert NO_INTERVAL_NOTE not in markdown_report(Report(runs(tmp_path, c=ONE_REPEATED)))


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_has_the_names_above_and_the_intervals_below(tmp_path, capsys, monkeypatch, width):
    name = "a-name-that-is-as-long-as-those-of-checkpoints-with-all-their-options"
    both = runs(tmp_path, **{name: TWO_TURNS, "cocos": OTHER})
    monkeypatch.setenv("COLUMNS", str(width))
    print_tables(Report(both, compare_runs(both)))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    start = lines.index(f"model: {name}", lines.index("Self-correction, % [95 % interval]"))
    assert lines[start + 1].split() == ["10", "1", "to", "2", "50.0", "70.0", "20.0", "30.0", "10.0"]
    assert lines[start + 2].split("  ")[-1] == "[1.8, 40.4]" and "[-17.2, 57.2]" in lines[start + 2]
    assert f"against: {name}" in lines


# -- comparisons --


def test_runs_are_compared_with_the_first_run_at_the_first_and_at_the_last_turn(tmp_path):
    [comparison] = compare_runs(runs(tmp_path, base=TWO_TURNS, cocos=OTHER))
    assert (comparison.baseline.name, comparison.other.name) == ("base", "cocos")
    first, last = comparison.first_turn, comparison.last_turn
    assert (first.gained, first.lost, first.p_value) == ((), ("3", "4"), 0.5)
    assert (last.gained, last.lost) == (("4", "8", "9"), ("0",))
    assert last.p_value == pytest.approx(2 * (1 + 4) / 2**4)
    assert last.difference.value == pytest.approx(0.2)


def test_another_baseline_can_be_named(tmp_path):
    three = runs(tmp_path, a=TWO_TURNS, b=OTHER, c=TWO_TURNS)
    comparisons = compare_runs(three, baseline="b")
    assert [(c.other.name, c.baseline.name) for c in comparisons] == [("a", "b"), ("c", "b")]
    assert comparisons[0].last_turn.gained == ("0",) and comparisons[0].last_turn.lost == ("4", "8", "9")
    with pytest.raises(ValueError, match="--baseline d is not the name of a run; give one of a, b, c"):
        compare_runs(three, baseline="d")


def test_the_markdown_lists_the_problems_gained_and_lost(tmp_path):
    both = runs(tmp_path, base=TWO_TURNS, cocos=OTHER)
    text = markdown_report(Report(both, compare_runs(both)))
    last = rows_of(text, "## Against the baseline, % [95 % interval]")[-1]
    assert last[:5] == ["cocos", "base", "10", "last", "70.0 → 90.0"] and last[6:] == ["0.62", "3", "1"]
    assert re.fullmatch(r"20\.0 \[.*\]", last[5])
    assert "- cocos gained at its last turn (3): 4, 8, 9\n- cocos lost at its last turn (1): 0\n" in text


def test_a_problem_with_an_infrastructure_failure_is_left_out_and_named(tmp_path):
    broken = [*OTHER[:9], trajectory("9", PASSED, INFRA_FAILURE)]
    both = runs(tmp_path, base=TWO_TURNS, cocos=broken)
    comparisons = compare_runs(both)
    assert comparisons[0].last_turn.num_problems == 9 and comparisons[0].last_turn.gained == ("4", "8")
    assert "cocos against base excludes the problems that only base has scored: 9." in markdown_report(
        Report(both, comparisons)
    )


def test_runs_in_which_one_task_id_names_two_problems_cannot_be_compared(tmp_path):
    changed = [*OTHER[:9], trajectory("9", PASSED, PASSED, text="another task")]
    with pytest.raises(ValueError, match="problem 9 has another text or other tests in cocos than in base"):
        compare_runs(runs(tmp_path, base=TWO_TURNS, cocos=changed))


def test_runs_with_oracle_feedback_have_their_own_table_and_are_never_compared_with_plain_runs(tmp_path):
    folders = [
        evaluated(tmp_path / "oracle", OTHER, feedback="error"),
        evaluated(tmp_path / "plain", TWO_TURNS),
        evaluated(tmp_path / "oracle2", TWO_TURNS, feedback="error"),
    ]
    loaded = load_runs(folders)
    comparisons = compare_runs(loaded)
    assert [(c.other.name, c.baseline.name) for c in comparisons] == [("oracle2", "oracle")]
    text = markdown_report(Report(loaded, comparisons))
    assert (
        "Not paired by problem, because what the model is told, or when a problem ends, differs: plain "
        "(self-correction without test results); oracle, oracle2 (error feedback)."
    ) in text
    text = text[text.index("## Self-correction, ") :]
    plain, oracle = 0, text.index("## Correction with error feedback, ")
    assert plain < text.index("| plain ") < oracle < text.index("| oracle ")
    # The visible tests choose in all runs of the table of tokens.
    assert "| plain " not in text[oracle:].split("## Accuracy against tokens")[0]
    page = page_of(loaded, comparisons)
    accuracies = page[page.index('id="accuracy"') : page.index("Further numbers")]
    tables = re.findall(r'<table class="numbers">.*?</table>', accuracies, re.DOTALL)
    assert sum(">plain " in table for table in tables) == 1
    assert not any(">plain " in table and ">oracle " in table for table in tables)


def test_early_stop_and_given_answers_are_conditions_too(tmp_path):
    loaded = load_runs(
        [
            evaluated(tmp_path / "plain", TWO_TURNS),
            evaluated(tmp_path / "stopped", OTHER, feedback="verdict", early_stop=True),
            evaluated(tmp_path / "golden", TWO_TURNS, answers=["references"]),
        ]
    )
    assert compare_runs(loaded) == []
    headings = [
        line[3:].split(",")[0]
        for line in markdown_report(Report(loaded)).splitlines()
        if line.startswith("## ")
    ]
    assert headings == [
        "First and last turn",
        "Self-correction",
        "Correction with given answers (references)",
        "Correction with verdict feedback and early stop on the visible tests",
        "Accuracy against tokens",
        "Edits",
        "Seconds and tokens",
        "Errors",
    ]


def test_one_turn_has_no_feedback_whatever_the_options_say(tmp_path):
    loaded = load_runs([evaluated(tmp_path / "one", numbered((PASSED,), (FAILED,)), feedback="error")])
    assert "## Self-correction, " in markdown_report(Report(loaded))
    assert "feedback" not in loaded[0].label


# -- what speaks against the numbers --


def answered(task_id, *codes, is_truncated=False):
    """Return a trajectory of wrong programs; a code is "" if the completion has none."""
    turns = tuple(turn(FAILED, code, is_truncated) for code in codes)
    return Trajectory(Problem(task_id, "t", ("assert True",)), 0, turns)


def test_completions_that_are_cut_off_or_empty_are_told_below_the_first_numbers(tmp_path, capsys):
    rows = [answered("1", "x = 1", "", is_truncated=True), answered("2", "x = 1", "x = 2")]
    [run] = load_runs([evaluated(tmp_path / "a", rows, options={"max_completion_length": 64})])
    cut, empty = Report([run]).caveats
    assert cut.startswith("a: 2 of 4 completions were cut off at 64 tokens")
    assert empty.startswith("a: 1 of 4 completions contain no program")
    page = page_of([run])
    assert page.index(cut) < page.index(empty) < page.index('id="accuracy"')
    assert f"\n\n**Caution.** {cut}\n\n**Caution.** {empty}\n\n## Self-correction" in markdown_report(
        Report([run])
    )
    print_tables(Report([run]))
    assert f"\ncaution: {cut}\ncaution: {empty}\n\nSelf-correction" in capsys.readouterr().out


def test_cautions_of_several_runs_that_differ_in_figures_only_are_one_line(tmp_path):
    """Of both programs of each run, a and b have two and one without code; c is as a; d is cut off, too."""
    rows = {
        "a": [answered("1", "", "")],
        "b": [answered("1", "", "x = 1")],
        "c": [answered("1", "", "")],
        "d": [answered("1", "", "", is_truncated=True)],
    }
    text = "completions contain no program; read some, and check --protocol and --max_completion_length."
    cut = "2 of 2 completions were cut off, so programs may lack their end; raise --max_completion_length."
    assert Report(runs(tmp_path, **rows)).caveats == [
        f"a: 2 of 2, b: 1 of 2, c: 2 of 2, d: 2 of 2 {text}",
        f"d: {cut}",
    ]
    equal = load_runs([tmp_path / "a", tmp_path / "c"])
    assert Report(equal).caveats == [f"a, c: 2 of 2 {text}"]


def test_runs_in_which_every_answer_was_given_are_compared_whatever_file_it_is_from(tmp_path):
    def scored(name, *results):
        played = [
            replace(one, turns=tuple(replace(turn, is_given=True) for turn in one.turns))
            for one in numbered(*((result,) for result in results))
        ]
        return evaluated(tmp_path / name, played, answers=[f"{name}.jsonl"], options={"answers": [name]})

    loaded = load_runs([scored("right", PASSED, PASSED, FAILED), scored("wrong", PASSED, FAILED, FAILED)])
    [comparison] = compare_runs(loaded)
    assert (comparison.baseline.name, comparison.other.name) == ("right", "wrong")
    report = Report(loaded, [comparison])
    assert "## Correction with given answers, %" in markdown_report(report) and report.caveats == []


def test_few_repairs_are_a_caution_if_there_are_wrong_programs_enough(tmp_path):
    def cautions(name, wrong, repaired):
        rows = [trajectory(str(n), FAILED, PASSED if n < repaired else FAILED) for n in range(wrong)]
        rows += [trajectory(f"right {n}", PASSED, PASSED) for n in range(20)]
        return Report(load_runs([evaluated(tmp_path / name, rows)])).caveats

    [few] = cautions("a", wrong=30, repaired=1)
    assert few.startswith("a: 3.3 % of the wrong programs are repaired.") and "--carry counterexamples" in few
    assert cautions("b", wrong=29, repaired=0) == cautions("c", wrong=30, repaired=2) == []


@pytest.mark.parametrize(
    "options", [{"carry": "nothing"}, {"agent": "reflect"}, {"answers": ["buggy"]}, {"num_turns": 1}]
)
def test_few_repairs_are_a_caution_of_the_transcript_alone(tmp_path, options):
    turns = options.get("num_turns", 2)
    rows = [trajectory(str(number), *[FAILED] * turns) for number in range(30)]
    conditions = {name: value for name, value in options.items() if name in ("agent", "answers")}
    [run] = load_runs([evaluated(tmp_path / "a", rows, options=options, **conditions)])
    assert not any("are repaired" in sentence for sentence in Report([run]).caveats)


def test_answers_are_counted_by_how_their_program_was_found_and_why_there_is_none(tmp_path):
    def run(name, *sources):
        turns = tuple(replace(turn(FAILED, "" if s == "prose" else "x = 1"), source=s) for s in sources)
        problem = Problem("1", "t", ("assert True",))
        return evaluated(tmp_path / name, [Trajectory(problem, 0, turns)])

    text = markdown_report(Report(load_runs([run("a", "block", "prose"), run("b", "block", "answer")])))
    assert rows_of(text, "## Where programs were found, answers") == [
        ["model", "answer", "block", "prose"],
        ["a", "0", "1", "1"],
        ["b", "1", "1", "0"],
    ]
    assert "a: 1 of 2 completions contain no program (prose: 1); read some" in text
    assert "Where programs" not in markdown_report(Report(load_runs([run("c", "answer", "answer")])))


def test_thoughts_that_reach_the_limit_are_a_caution_and_their_tokens_a_column(tmp_path):
    thinking = Completion((1,) * 8, "", True, thought="<think>Hm", num_thought_tokens=8)
    turns = (replace(turn(FAILED, ""), completion=thinking), turn(PASSED))
    path = evaluated(tmp_path / "a", [Trajectory(Problem("1", "t", ("assert True",)), 0, turns)])
    text = markdown_report(Report(load_runs([path])))
    assert (
        "a: 1 of 2 completions are thoughts without an answer, because the thought reached the length" in text
    )
    assert rows_of(text, "## Seconds and tokens")[0][-1] == "thought tokens"
    assert [row[-1] for row in rows_of(text, "## Seconds and tokens")[1:]] == ["8", "8"]


def test_one_in_200_is_no_caveat_and_given_answers_are_not_the_models(tmp_path):
    rows = [answered(str(n), "x = 1", is_truncated=n == 0) for n in range(200)]
    given = [replace(t, turns=tuple(replace(one, is_given=True, code="") for one in t.turns)) for t in rows]
    loaded = load_runs([evaluated(tmp_path / "a", rows), evaluated(tmp_path / "b", given)])
    assert Report(loaded).caveats == []


def test_options_that_differ_between_compared_runs_are_told_and_those_without_effect_are_not(tmp_path):
    def measured(name, **options):
        return evaluated(tmp_path / name, TWO_TURNS, options=options)

    loaded = load_runs(
        [
            measured(
                "greedy", temperature=None, seed=1, batch_size=4, output_dir="a", max_completion_length=64
            ),
            measured(
                "same", temperature=[0.0], seed=2, batch_size=8, output_dir="b", max_completion_length=64
            ),
            measured(
                "sampled",
                temperature=[0.8, 0.2],
                seed=1,
                max_completion_length=96,
                few_shot_data="solved.jsonl",
            ),
        ]
    )
    oracle, sentence = Report(loaded, compare_runs(loaded)).caveats
    assert oracle.startswith("greedy, same, sampled: every test is visible")
    assert sentence == (
        "greedy and sampled were measured with different options: --temperature 0.0 and 0.8 0.2, "
        "--max_completion_length 64 and 96. Their difference may come from these."
    )


def test_the_interval_of_a_repair_rate_has_problems_as_clusters(tmp_path):
    # 12 problems x 8 samples: all samples of a problem are repaired, or none is.
    rows = [
        replace(trajectory(str(n), TYPE_ERROR, PASSED if n % 2 else FAILED), sample=sample)
        for n in range(12)
        for sample in range(8)
    ]
    [run] = load_runs([evaluated(tmp_path / "a", rows)])
    repaired = run.statistics.repaired("TypeError")
    assert repaired.value == 0.5
    assert repaired[1:] == pytest.approx(wilson(6, 12)[1:])  # as many as problems, not 96
    assert wilson(48, 96).low > repaired.low + 0.1
    assert run.statistics.repaired("NameError") is None


# -- files --


def test_the_report_consists_of_a_page_a_markdown_file_and_a_picture(tmp_path):
    loaded = runs(tmp_path, base=TWO_TURNS, single=ONE_TURN, cocos=THREE_TURNS, sampled=sampled(3, 5))
    out = tmp_path / "new" / "folder"
    assert save_report(Report(loaded), out) == "report.html report.md report.png"
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "report.png"}
    assert (out / "report.md").read_text(encoding="utf-8") == markdown_report(Report(loaded))
    with Image.open(out / "report.png") as picture:
        # 10 x 12 inches at 150 dpi, and a line of the legends of curves, of runs and of errors
        assert picture.format == "PNG" and picture.size == (1500, int(150 * (12 + 3 * LEGEND_LINE)))
        assert len(picture.convert("RGB").getcolors(maxcolors=2**20)) > 10  # lines and bars, not a blank page
    page = (out / "report.html").read_text(encoding="utf-8")
    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert len(labels) == page.count("<svg") == 1 + 1 + 4 + 2 + 4 + 3
    assert (
        labels[0]
        == "Accuracy after each turn: base 50.0, 70.0 %; single 50.0 %; cocos 50.0, 100.0, 50.0 %; sampled 25.0 %."
    )
    kinds = [label.partition(": ")[2][:6] for label in labels if label.startswith("sampled: ")]
    assert kinds == ["Wrong ", "Tokens", "pass@k"]  # a run of one turn has no flow


def test_the_chart_of_problems_shows_each_one_after_each_turn(tmp_path):
    # Of five problems, the second and the third are solved first, then the fourth too.
    rows = numbered(
        *[(FAILED, FAILED), (PASSED, PASSED), (PASSED, PASSED), (FAILED, PASSED), (FAILED, FAILED)]
    )
    [run] = runs(tmp_path, agent=rows)
    axes = Figure().subplots()
    draw_problems(axes, run)
    [solved] = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
    assert solved.get_facecolor()[:3] == to_rgb(RIGHT)
    boxes = {tuple(path.get_extents().extents) for path in polygons(solved.get_path())}
    assert boxes == {(1, 0.6, 3, 1.4), (1, 1.6, 4, 2.4)}


def polygons(path):
    """Return the closed parts of a compound path."""
    starts = [*np.flatnonzero(path.codes == Path.MOVETO), len(path.codes)]
    return [Path(path.vertices[start:end]) for start, end in pairwise(starts)]


def test_the_chart_of_errors_has_a_bar_per_turn_or_the_last_turn_of_each_run(tmp_path):
    rows = numbered((TYPE_ERROR, PASSED), (FAILED, TYPE_ERROR), (FAILED, FAILED), (PASSED, PASSED))
    one, other = runs(tmp_path, one=rows, other=rows[:2])

    def drawn(*runs):
        axes = Figure(figsize=(5, 4)).subplots()
        draw_errors(axes, runs, ["TypeError"])
        shares = {c.get_label(): [bar.get_width() for bar in c.patches] for c in axes.containers}
        return [label.get_text() for label in axes.get_yticklabels()], shares

    assert drawn(one) == (
        ["turn 1", "turn 2"],
        {"right": [0.25, 0.5], "TypeError": [0.25, 0.25], "other": [0.5, 0.25]},
    )
    assert drawn(one, other) == (
        ["one", "other"],
        {"right": [0.5, 0.5], "TypeError": [0.25, 0.5], "other": [0.25, 0.0]},
    )


LONG = "Qwen2.5-Coder-1.5B-Instruct-cocos-lr1e-6-beta0.01-seed{}-checkpoint-1200"


@pytest.mark.parametrize(
    "names", [["a", "b", "c", "d"], [f"run{i}" for i in range(9)], [LONG.format(i) for i in range(3)]]
)
def test_no_legend_covers_a_curve_and_no_axes_are_squeezed(tmp_path, names):
    five = numbered(
        *[(FAILED, PASSED, PASSED, FAILED, PASSED)] * 4, *[(PASSED,) * 5] * 4, *[(FAILED,) * 5] * 4
    )
    loaded = runs(tmp_path, **dict.fromkeys(names, five))
    with rc_context(STYLE):
        figure = Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_accuracy(left, loaded)
        draw_changes(right, loaded)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    legend = left.get_legend()
    frame = legend.get_window_extent()
    assert frame.x0 >= 0 and frame.y0 >= 0 and frame.x1 <= right.get_tightbbox().x0
    assert frame.y1 <= left.xaxis.get_tightbbox().y0
    for axes in (left, right):
        # Of 100 per inch
        assert axes.get_window_extent().height > 300 and axes.get_window_extent().width > 350
    colours = {tuple(line.get_color()) for line, *_ in (c.lines for c in left.containers)}
    assert len(colours) == len(names)
    labels = [label.get_text().replace("\n", "") for label in legend.get_texts()]
    assert labels == names  # whole, on several lines
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["1 to 2", "2 to 3", "3 to 4", "4 to 5"]
    assert len(right.patches) == 2 * 4 * len(names)


def test_runs_of_one_turn_have_no_empty_chart_of_changes(tmp_path):
    save_overview(Report(runs(tmp_path, a=ONE_TURN)), tmp_path / "report.svg")
    texts = (tmp_path / "report.svg").read_text(encoding="utf-8")
    assert "tokens and seconds of each problem" in texts and "repaired" not in texts


def test_a_chart_without_changes_says_so_and_shows_an_exceptions_name_as_plain_text(tmp_path):
    forged = ExecutionResult((Verdict(Status.ERROR, "$x^{$ <script>"),))
    save_overview(
        Report(runs(tmp_path, a=numbered((PASSED, PASSED), (forged, forged)))), tmp_path / "report.svg"
    )
    texts = [element.text for element in ElementTree.parse(tmp_path / "report.svg").iter()]
    assert "no program was repaired or spoilt" in texts and "$x^{$ <script>" in texts


# -- the command --


def report(*arguments: object) -> subprocess.CompletedProcess:
    return command(sys.executable, "-m", "cocos", "report", *arguments)


@pytest.mark.processes
def test_the_command_prints_the_tables_and_writes_the_report(tmp_path):
    base, cocos = evaluated(tmp_path / "base", TWO_TURNS), evaluated(tmp_path / "cocos", OTHER)
    run = report(base, cocos, "--baseline", "cocos", "--output_dir", tmp_path / "report")
    assert run.returncode == 0, run.stderr
    assert "20.0 [-17.2, 57.2]" in run.stdout and "90.0 → 70.0" in run.stdout
    assert run.stdout.endswith(f"written to {tmp_path}/report: report.html report.md report.png\n")
    assert report(base).stdout.endswith("give --output_dir FOLDER for report.html\n")
    loaded = load_runs([base, cocos])
    text = (tmp_path / "report/report.md").read_text(encoding="utf-8")
    assert text == markdown_report(Report(loaded, compare_runs(loaded, "cocos")))
    assert "<!doctype html>" in (tmp_path / "report/report.html").read_text(encoding="utf-8")


def complaint(*arguments: object) -> str:
    """Return the one line of a command that must fail."""
    run = report(*arguments)
    assert run.returncode == 2, run.stderr
    [line] = run.stderr.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.processes
def test_a_wrong_option_is_one_line(tmp_path):
    base = evaluated(tmp_path / "base", TWO_TURNS)
    assert "EVALUATION" in complaint()
    assert "unknown option: --outputdir; did you mean --output_dir?" in complaint(base, "--outputdir", "x")
    assert "unknown option: --base; did you mean --baseline?" in complaint("--base=base", base)
    assert "--output_dir: expected one argument" in complaint(base, "--output_dir")
    assert "--baseline x is not the name of a run; give one of base" in complaint(base, "--baseline", "x")
    assert "base is given twice" in complaint(base, tmp_path / "base/../base")


@pytest.mark.processes
def test_a_folder_without_a_whole_evaluation_is_one_line_that_names_the_file(tmp_path):
    whole = evaluated(tmp_path / "whole", TWO_TURNS)
    (tmp_path / "loop").symlink_to("loop")
    for name in ("no", "loop"):
        assert f"{tmp_path}/{name}: no such folder" in complaint(whole, tmp_path / name)
    assert f"{tmp_path} has no metrics.json, so it is not a finished evaluation" in complaint(whole, tmp_path)
    cut = evaluated(tmp_path / "cut", TWO_TURNS)

    def complaint_about(file, content):
        before = (cut / file).read_text()
        (cut / file).write_text(content)
        line = complaint(whole, cut)
        (cut / file).write_text(before)
        return line

    rows = (cut / "samples.jsonl").read_text().splitlines(keepends=True)
    assert f"{cut}/metrics.json:2: not valid JSON" in complaint_about("metrics.json", '{\n"metrics": ')
    assert f"{cut}/metrics.json has no key num_problems" in complaint_about("metrics.json", "[]")
    assert f"{cut}/run.json has no key versions" in complaint_about("run.json", '{"options": {}}')
    assert f"{cut}/samples.jsonl:3: not valid JSON" in complaint_about(
        "samples.jsonl", "".join([*rows[:2], rows[2][:40] + "\n", *rows[3:]])
    )
    assert f"{cut}/samples.jsonl has 9 rows, but metrics.json counts 10" in complaint_about(
        "samples.jsonl", "".join(rows[:9])
    )
    others = evaluated(tmp_path / "others", [trajectory("x", PASSED, PASSED)])
    assert "whole and others: no problem is in both runs" in complaint(whole, others)


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_is_one_line_that_names_the_option(tmp_path):
    base = evaluated(tmp_path / "base", TWO_TURNS)
    (tmp_path / "file").touch()
    save_report(Report(load_runs([base])), tmp_path / "full")
    (tmp_path / "full/report.md").unlink()
    (tmp_path / "full/report.md").symlink_to("/dev/full")
    for folder, reason in (
        (tmp_path / "file", " is a file; give a folder"),
        (tmp_path / "file/below", f": {tmp_path}/file is a file; choose another folder"),
        (tmp_path / "full", ": no report can be written there (No space left on device)"),
    ):
        assert f"--output_dir {folder}{reason}" in complaint(base, "--output_dir", folder)


def test_the_folder_of_another_kind_of_run_is_named_also_if_an_evaluation_was_there(tmp_path):
    folder = evaluated(tmp_path / "a", TWO_TURNS)
    for options, reason in (
        ({"dev_data": None}, "a contains a CoCoS run, not an evaluation; give output folders"),
        ({"lab": "first"}, "a contains a demo, not an evaluation"),
        ({}, r"run\.json does not record an evaluation; score the rows again"),
    ):
        (folder / "run.json").write_text(json.dumps({"options": options, "versions": {}}))
        with pytest.raises(ValueError, match=reason):
            load_runs([folder])


def test_errors_in_options_do_not_wait_for_matplotlib():
    script = "import sys, cocos.commands.report; print({'matplotlib', 'numpy', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "set()\n", run.stderr


def test_folders_of_the_same_name_are_distinguished_by_their_paths(tmp_path):
    a, b = evaluated(tmp_path / "a/eval", TWO_TURNS), evaluated(tmp_path / "b/eval", OTHER)
    assert [run.name for run in load_runs([a, b])] == [str(a), str(b)]


def test_a_row_of_another_format_is_an_error_with_its_line(tmp_path):
    a, b = evaluated(tmp_path / "a", TWO_TURNS), evaluated(tmp_path / "b", TWO_TURNS)
    with open(b / "samples.jsonl", "a") as file:
        file.write(json.dumps({"task_id": "x"}) + "\n")
    with pytest.raises(ValueError, match=r"samples\.jsonl:11: not a row of samples\.jsonl"):
        load_runs([a, b])


def test_a_report_begins_with_a_sentence_and_the_main_numbers_of_each_run(tmp_path, capsys):
    """5 of 10 right become 7, 40 % more: 3 are repaired, 1 is spoilt. Of no right program there is no share."""
    [one] = runs(tmp_path, a=TWO_TURNS)
    sentence = (
        "base answers 10 problems of test.jsonl, each in 2 turns (self-correction without test results, cocos "
        "prompts). 50.0 % of the programs are right at turn 1 and 70.0 % at turn 2: +20.0 points [-17.2, 57.2], "
        "may be chance."
    )
    assert markdown_report(Report([one])).startswith(f"{sentence}\n\n## First and last turn")
    assert page_of([one]).split("<main>")[1].index(sentence) < 200
    print_tables(Report([one]))
    assert capsys.readouterr().out.startswith(f"{sentence}\n\nFirst and last turn")
    both = [one, *runs(tmp_path, never=numbered((FAILED, PASSED)))]
    text = markdown_report(Report(both))
    assert text.startswith("In 2 runs, base answers 1 to 10 problems of test.jsonl, each in 2 turns (")
    assert [
        [cell.split()[0] for cell in row]
        for row in rows_of(text, "## First and last turn, % [95 % interval]")
    ] == [
        ["model", "n", "turn", "turns", "last", "change", "rel.", "repaired", "spoilt"],
        ["a", "10", "50.0", "2", "70.0", "20.0", "+40.0", "3", "1"],
        ["never", "1", "0.0", "2", "100.0", "100.0", "-", "1", "0"],
    ]


def test_a_comparison_is_a_sentence_before_the_tables(tmp_path):
    """On 100 problems, a gain of 40 and a loss of none; on 10, three gains and a loss."""
    many = runs(tmp_path, a=TWO_TURNS * 1, b=OTHER)
    text = markdown_report(Report(many, compare_runs(many)))
    said = "At the last turn b has 90.0 % and a 70.0 %: +20.0 points ["
    assert said in text.partition("## Self-correction")[0]
    assert text.partition(said)[2].partition("\n")[0].endswith("], may be chance; 10 problems.")
    clear = runs(
        tmp_path,
        c=numbered(*[(FAILED, FAILED)] * 20),
        d=numbered(*[(FAILED, PASSED)] * 15, *[(FAILED, FAILED)] * 5),
    )
    assert "], hardly chance; 20 problems." in markdown_report(Report(clear, compare_runs(clear)))


def test_rows_alone_give_the_report_of_their_evaluation(tmp_path):
    folder = evaluated(tmp_path / "base", TWO_TURNS, feedback="verdict")
    alone = tmp_path / "mine.jsonl"
    alone.write_bytes((folder / "samples.jsonl").read_bytes())
    [whole, rows] = load_runs([folder, alone])
    assert (whole.name, rows.name) == ("base", "mine")
    assert {name: rows.metrics[name] for name in whole.metrics} == whole.metrics
    assert rows.metrics["speed"]["completion_tokens"] == 60  # 10 problems of 2 turns of 3 tokens
    done = report(alone, "--output_dir", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "50.0 [23.7, 76.3]" in (tmp_path / "out/report.md").read_text()
    assert load_runs([folder / "samples.jsonl"])[0].name == "base"
    line = (folder / "samples.jsonl").read_text().splitlines()[0]
    alone.write_text(line + "\n" + line.replace('"feedback": "verdict"', '"feedback": "error"', 1) + "\n")
    with pytest.raises(ValueError, match="were made with different options; give the rows of one"):
        load_runs([alone])
    alone.write_text("")
    with pytest.raises(ValueError, match="no rows"):
        load_runs([alone])


def test_the_chart_of_costs_has_the_tokens_and_seconds_of_each_problem_of_each_run(tmp_path):
    loaded = runs(tmp_path, a=sampled(3, 5), b=TWO_TURNS)
    # 16 samples of one turn of 3 tokens and 0.25 s.
    assert loaded[0].statistics.costs_K == {"0": (48, 4.0), "1": (48, 4.0)}
    axes = Figure().add_subplot()
    assert draw_costs(axes, loaded).startswith(
        "a: Tokens and seconds of each problem, median: 48 tokens, 4 s;"
    )
    assert [patch.get_data().values.tolist() for patch in axes.patches] == [[48, 48], [6] * 10]
    points = axes.figure.axes[1].lines
    assert [line.get_ydata().tolist() for line in points] == [[4.0, 4.0], [0.5] * 10]


def test_rows_that_were_parsed_before_are_not_read_again(tmp_path):
    [run] = runs(tmp_path, a=TWO_TURNS)
    (tmp_path / "a/samples.jsonl").unlink()
    [again] = load_runs([tmp_path / "a"], {tmp_path / "a": run.rows})
    assert markdown_report(Report([again])) == markdown_report(Report([run]))
