"""Tables, charts, and the command that compares evaluations."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from PIL import Image

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.report import compare_runs, load_runs, print_tables, save_report
from cocos.report.tables import markdown_report
from tests.support.paths import ROOT
from tests.support.report import (
    FAILED,
    INFRA_FAILURE,
    PASSED,
    TYPE_ERROR,
    evaluated,
    numbered,
    trajectory,
)

# 10 problems: 4 right and kept, 1 spoilt, 3 repaired, 2 never right. acc@1 5/10, acc@2 7/10.
TWO_TURNS = numbered(
    *[(PASSED, PASSED)] * 4, (PASSED, FAILED), *[(TYPE_ERROR, PASSED)] * 3, *[(FAILED, FAILED)] * 2
)
# Compared with TWO_TURNS, turn 1 gains no problem and loses 3 and 4; turn 2 gains 4, 8 and 9 and loses 0.
OTHER = numbered(
    (PASSED, FAILED), *[(PASSED, PASSED)] * 2, *[(FAILED, PASSED)] * 2, *[(TYPE_ERROR, PASSED)] * 5
)
ONE_TURN = numbered(*[(PASSED,)] * 2, *[(FAILED,)] * 2)
THREE_TURNS = numbered((FAILED, PASSED, FAILED), (PASSED, PASSED, PASSED))


def runs(tmp_path, **evaluations):
    return load_runs([evaluated(tmp_path / name, rows) for name, rows in evaluations.items()])


def test_the_table_has_the_numbers(tmp_path):
    # delta: 0.2 -+ 1.96 * sqrt((0.4 - 0.04) / 10) = 0.2 -+ 0.3719
    lines = markdown_report(runs(tmp_path, cocos=TWO_TURNS)).splitlines()
    assert "| model | n | turns | acc@1 | acc@2 | delta | i→c | c→i |" in lines
    assert lines[lines.index("| --- | --- | --- | --- | --- | --- | --- | --- |") + 1] == (
        "| cocos | 10 | 1 to 2 | 50.0 [23.7, 76.3] | 70.0 [39.7, 89.2] | 20.0 [-17.2, 57.2] "
        "| 30.0 [10.8, 60.3] | 10.0 [1.8, 40.4] |"
    )


def test_the_errors_of_each_turn_are_listed_below_the_table(tmp_path):
    lines = markdown_report(runs(tmp_path, cocos=TWO_TURNS, perfect=numbered((PASSED, PASSED)))).splitlines()
    assert lines[lines.index("## Errors") + 2 :] == [
        "- cocos, turn 1: TypeError 3, AssertionError 2",
        "- cocos, turn 2: AssertionError 3",
        "- perfect, turn 1: none",
        "- perfect, turn 2: none",
    ]


def test_an_exceptions_name_cannot_add_lines(tmp_path):
    forged = ExecutionResult((Verdict(Status.ERROR, "E\n# 100 %\n" + "x" * 200),))
    text = markdown_report(runs(tmp_path, cocos=numbered((forged, PASSED))))
    assert "- cocos, turn 1: E?# 100 %?xxxxxxxxxxxxxxxxxxx… 1\n" in text


def test_a_run_of_one_turn_has_one_row_and_a_run_of_three_turns_has_two(tmp_path):
    text = markdown_report(runs(tmp_path, a=ONE_TURN, b=THREE_TURNS))
    rows = [line.split(" | ") for line in text.splitlines() if " to " in line]
    assert [(row[0], row[2], row[3][:5], row[4][:5]) for row in rows] == [
        ("| b", "1 to 2", "50.0 ", "100.0"),
        ("| b", "2 to 3", "100.0", "50.0 "),
    ]
    assert "| acc@t | acc@t+1 |" in text
    assert "| a | 4 | 1 | 50.0 [15.0, 85.0] |  |  |  |  |" in text


def test_the_terminal_shows_the_same_numbers(tmp_path, capsys):
    both = runs(tmp_path, base=TWO_TURNS, cocos=OTHER)
    print_tables(both, compare_runs(both))
    shown = capsys.readouterr().out
    for number in ("50.0 [23.7, 76.3]", "20.0 [-17.2, 57.2]", "1 to 2", "50.0 → 30.0", "70.0 → 90.0"):
        assert number in shown


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
    text = markdown_report(both, compare_runs(both))
    assert re.search(
        r"\| cocos \| base \| 10 \| last \| 70\.0 → 90\.0 \| 20\.0 \[.*\] \| 0\.62 \| 3 \| 1 \|", text
    )
    assert "- cocos gained at its last turn (3): 4, 8, 9\n- cocos lost at its last turn (1): 0\n" in text


def test_a_problem_with_an_infrastructure_failure_is_left_out_and_named(tmp_path):
    broken = [*OTHER[:9], trajectory("9", PASSED, INFRA_FAILURE)]
    both = runs(tmp_path, base=TWO_TURNS, cocos=broken)
    comparisons = compare_runs(both)
    assert comparisons[0].last_turn.num_problems == 9 and comparisons[0].last_turn.gained == ("4", "8")
    assert "cocos against base excludes the problems that only base has scored: 9." in markdown_report(
        both, comparisons
    )


def test_runs_in_which_one_task_id_names_two_problems_cannot_be_compared(tmp_path):
    changed = [*OTHER[:9], trajectory("9", PASSED, PASSED, text="another task")]
    with pytest.raises(ValueError, match="problem 9 has another text or other tests in cocos than in base"):
        compare_runs(runs(tmp_path, base=TWO_TURNS, cocos=changed))


def test_runs_with_oracle_feedback_have_their_own_table_and_are_never_compared_with_plain_runs(
    tmp_path,
):
    folders = [
        evaluated(tmp_path / "oracle", OTHER, feedback="error"),
        evaluated(tmp_path / "plain", TWO_TURNS),
        evaluated(tmp_path / "oracle2", TWO_TURNS, feedback="error"),
    ]
    loaded = load_runs(folders)
    comparisons = compare_runs(loaded)
    assert [(c.other.name, c.baseline.name) for c in comparisons] == [("oracle2", "oracle")]
    text = markdown_report(loaded, comparisons)
    plain, oracle = (
        text.index("# Self-correction\n"),
        text.index("# Correction with error feedback\n"),
    )
    assert plain < text.index("| plain | 10 |") < oracle < text.index("| oracle | 10 |")
    assert "| plain |" not in text[oracle:]
    save_report(loaded, tmp_path / "report", comparisons)
    page = (tmp_path / "report/report.html").read_text(encoding="utf-8")
    tables = re.findall(r'<table class="numbers">.*?</table>', page, re.DOTALL)
    assert sum(">plain " in table for table in tables) == 1
    assert not any(">plain " in table and ">oracle " in table for table in tables)
    assert (tmp_path / "report/plots/accuracy-error-feedback.svg").exists()


def test_early_stop_and_given_answers_are_conditions_too(tmp_path):
    loaded = load_runs(
        [
            evaluated(tmp_path / "plain", TWO_TURNS),
            evaluated(tmp_path / "stopped", OTHER, feedback="verdict", early_stop=True),
            evaluated(tmp_path / "golden", TWO_TURNS, answers=["references"]),
        ]
    )
    assert compare_runs(loaded) == []
    headings = [line for line in markdown_report(loaded).splitlines() if line.startswith("# ")]
    assert headings == [
        "# Self-correction",
        "# Correction with given answers (references)",
        "# Correction with verdict feedback and early stop on the visible tests",
    ]


# -- files --


def test_the_report_consists_of_a_page_a_markdown_file_and_pictures(tmp_path):
    loaded = runs(tmp_path, base=TWO_TURNS, single=ONE_TURN, cocos=THREE_TURNS)
    out = tmp_path / "new" / "folder"
    save_report(loaded, out)
    assert (out / "report.md").read_text(encoding="utf-8") == markdown_report(loaded)
    with Image.open(out / "report.png") as picture:
        assert picture.format == "PNG" and picture.size == (1500, 600)  # 10 x 4 inches at 150 dpi
        assert len(picture.convert("RGB").getcolors(maxcolors=2**20)) > 10  # lines and bars, not a blank page
    stems = {path.stem for path in (out / "plots").iterdir()}
    assert stems == {
        "accuracy",
        *(f"{chart}-{name}" for name in ("base", "cocos", "single") for chart in ("errors", "tokens")),
        *(f"{chart}-{name}" for name in ("base", "cocos", "single") for chart in ("generation", "execution")),
        *("flow-base", "flow-cocos"),  # a run of one turn has no flow chart
    }
    for stem in stems:
        assert (out / f"plots/{stem}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert ElementTree.parse(out / f"plots/{stem}.svg").getroot().tag.endswith("svg")


def test_pass_at_k_is_drawn_if_problems_have_several_samples(tmp_path):
    rows = [trajectory("a", PASSED, sample=i) for i in range(4)] + [
        trajectory("b", FAILED, sample=i) for i in range(4)
    ]
    save_report(runs(tmp_path, sampled=rows), tmp_path / "report")
    svg = (tmp_path / "report/plots/pass_at_k.svg").read_text(encoding="utf-8")
    assert "pass@k" in svg and "turn 1" in svg


def test_a_chart_shows_an_exceptions_name_as_plain_text(tmp_path):
    forged = ExecutionResult((Verdict(Status.ERROR, "$x^{$ <script>"),))
    save_report(runs(tmp_path, cocos=numbered((forged, PASSED))), tmp_path / "report")
    texts = ElementTree.parse(tmp_path / "report/plots/errors.svg").iter()
    assert "$x^{$ <script>" in [element.text for element in texts]


# -- the command --


def report(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "cocos.report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.processes
def test_the_command_prints_the_tables_and_writes_the_report(tmp_path):
    base, cocos = evaluated(tmp_path / "base", TWO_TURNS), evaluated(tmp_path / "cocos", OTHER)
    run = report(base, cocos, "--baseline", "cocos", "--output_dir", tmp_path / "report")
    assert run.returncode == 0, run.stderr
    assert "20.0 [-17.2, 57.2]" in run.stdout and "90.0 → 70.0" in run.stdout
    loaded = load_runs([base, cocos])
    text = (tmp_path / "report/report.md").read_text(encoding="utf-8")
    assert text == markdown_report(loaded, compare_runs(loaded, "cocos"))
    assert "<!doctype html>" in (tmp_path / "report/report.html").read_text(encoding="utf-8")


def test_folders_of_the_same_name_are_distinguished_by_their_paths(tmp_path):
    a, b = evaluated(tmp_path / "a/eval", TWO_TURNS), evaluated(tmp_path / "b/eval", OTHER)
    assert [run.name for run in load_runs([a, b])] == [str(a), str(b)]
    save_report(load_runs([a, b]), tmp_path / "report")  # paths make file names too
    assert len(list((tmp_path / "report/plots").glob("flow-*.svg"))) == 2


@pytest.mark.parametrize("missing", ["metrics.json", "run.json", "samples.jsonl"])
def test_a_folder_without_a_complete_evaluation_is_an_error_of_one_line(tmp_path, missing):
    whole, cut = evaluated(tmp_path / "whole", TWO_TURNS), evaluated(tmp_path / "cut", TWO_TURNS)
    (cut / missing).write_text('{"metrics": ')
    run = report(whole, cut)
    assert run.returncode == 2 and run.stdout == ""
    [line] = run.stderr.splitlines()
    assert line.startswith("error: ") and missing in line and str(cut) in line


def test_a_row_of_another_format_is_an_error_with_its_line(tmp_path):
    a, b = evaluated(tmp_path / "a", TWO_TURNS), evaluated(tmp_path / "b", TWO_TURNS)
    with open(b / "samples.jsonl", "a") as file:
        file.write(json.dumps({"task_id": "x"}) + "\n")
    with pytest.raises(ValueError, match=r"samples\.jsonl:11: not a row of samples\.jsonl"):
        compare_runs(load_runs([a, b]))
