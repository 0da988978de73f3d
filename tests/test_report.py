"""Tables, the plot, and the command that compares evaluations."""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.metrics import summary
from cocos.problems import Problem
from cocos.report import markdown, plot, save_report, show
from cocos.rollout import Trajectory, Turn

ROOT = Path(__file__).resolve().parent.parent
PASSED = ExecutionResult((Verdict(Status.PASSED),))
FAILED = ExecutionResult((Verdict(Status.FAILED, "AssertionError"),))
TYPE_ERROR = ExecutionResult((Verdict(Status.ERROR, "TypeError"),))


def evaluation(*rows: tuple[ExecutionResult, ...]) -> dict:
    """What metrics.json holds for these results, as it comes back from the file."""
    trajectories = [
        Trajectory(
            Problem(str(i), "t", ("assert True",)), 0, tuple(Turn((), Completion((), ""), "", r) for r in row)
        )
        for i, row in enumerate(rows)
    ]
    return json.loads(json.dumps(summary(trajectories)))


# 10 problems: 4 right and kept, 1 spoilt, 3 repaired, 2 never right. acc@1 5/10, acc@2 7/10.
TWO_TURNS = evaluation(
    *[(PASSED, PASSED)] * 4, (PASSED, FAILED), *[(TYPE_ERROR, PASSED)] * 3, *[(FAILED, FAILED)] * 2
)
ONE_TURN = evaluation(*[(PASSED,)] * 2, *[(FAILED,)] * 2)
THREE_TURNS = evaluation((FAILED, PASSED, FAILED), (PASSED, PASSED, PASSED))


def test_the_table_has_the_numbers():
    # delta: 0.2 -+ 1.96 * sqrt((0.4 - 0.04) / 10) = 0.2 -+ 0.3719
    lines = markdown({"cocos": TWO_TURNS}).splitlines()
    assert "| model | n | turns | acc@1 | acc@2 | delta | i→c | c→i |" in lines
    assert lines[lines.index("| --- | --- | --- | --- | --- | --- | --- | --- |") + 1] == (
        "| cocos | 10 | 1 to 2 | 50.0 [23.7, 76.3] | 70.0 [39.7, 89.2] | 20.0 [-17.2, 57.2] "
        "| 30.0 [10.8, 60.3] | 10.0 [1.8, 40.4] |"
    )


def test_errors_stand_below_the_table_by_turn():
    lines = markdown({"cocos": TWO_TURNS, "perfect": evaluation((PASSED, PASSED))}).splitlines()
    assert lines[lines.index("## Errors") + 2 :] == [
        "- cocos, turn 1: TypeError 3, AssertionError 2",
        "- cocos, turn 2: AssertionError 3",
        "- perfect, turn 1: none",
        "- perfect, turn 2: none",
    ]


def test_a_single_turn_makes_one_row_and_three_turns_two():
    rows = [
        line.split(" | ")
        for line in markdown({"a": ONE_TURN, "b": THREE_TURNS}).splitlines()
        if " to " in line
    ]
    assert [(row[0], row[2], row[3][:5], row[4][:5]) for row in rows] == [
        ("| b", "1 to 2", "50.0 ", "100.0"),
        ("| b", "2 to 3", "100.0", "50.0 "),
    ]
    text = markdown({"a": ONE_TURN, "b": THREE_TURNS})
    assert "| acc@t | acc@t+1 |" in text
    assert "| a | 4 | 1 | 50.0 [15.0, 85.0] |  |  |  |  |" in text


def test_the_terminal_table_shows_the_same_numbers(capsys):
    show({"base": TWO_TURNS, "cocos": THREE_TURNS})
    shown = capsys.readouterr().out
    for number in ("50.0 [23.7, 76.3]", "20.0 [-17.2, 57.2]", "2 to 3"):
        assert number in shown


def test_the_report_is_a_markdown_file_and_a_real_picture(tmp_path):
    evaluations = {"base": TWO_TURNS, "single": ONE_TURN, "cocos": THREE_TURNS}
    save_report(evaluations, tmp_path / "new" / "folder")
    assert (tmp_path / "new" / "folder" / "report.md").read_text(encoding="utf-8") == markdown(evaluations)
    with Image.open(tmp_path / "new" / "folder" / "report.png") as picture:
        assert picture.format == "PNG" and picture.size == (1200, 480)  # 10 x 4 inches at 120 dpi
        assert len(picture.convert("RGB").getcolors(maxcolors=2**20)) > 10  # lines and bars, not a blank page


def test_a_picture_of_single_turns_has_nothing_to_compare_and_is_still_made(tmp_path):
    plot({"base": ONE_TURN}, tmp_path / "one.png")
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.format == "PNG"


def report(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "cocos.report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def folder(path: Path, metrics: dict) -> Path:
    path.mkdir(parents=True)
    (path / "metrics.json").write_text(json.dumps(metrics))
    return path


def test_the_command_prints_the_table_and_writes_the_report(tmp_path):
    base, cocos = folder(tmp_path / "base", TWO_TURNS), folder(tmp_path / "cocos", THREE_TURNS)
    run = report(base, cocos, "--output_dir", tmp_path / "report")
    assert run.returncode == 0, run.stderr
    assert "20.0 [-17.2, 57.2]" in run.stdout and "2 to 3" in run.stdout
    assert (tmp_path / "report" / "report.md").read_text(encoding="utf-8") == markdown(
        {"base": TWO_TURNS, "cocos": THREE_TURNS}
    )
    assert (tmp_path / "report" / "report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_folders_of_the_same_name_are_told_apart(tmp_path):
    a, b = folder(tmp_path / "a" / "eval", TWO_TURNS), folder(tmp_path / "b" / "eval", THREE_TURNS)
    run = report(a, b, "--output_dir", tmp_path)
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert f"| {a} | 10 | 1 to 2 |" in text and f"| {b} | 2 | 1 to 2 |" in text


def test_a_folder_without_usable_metrics_is_refused_in_one_line_with_the_remedy(tmp_path):
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "metrics.json").write_text('{"metrics": ')
    for name in ("absent", "cut"):
        run = report(tmp_path / name)
        assert run.returncode == 1 and run.stdout == ""
        [line] = run.stderr.splitlines()
        assert line.startswith(f"error: {tmp_path / name}: no readable metrics.json")
        assert line.endswith(f"run test.py --output_dir {tmp_path / name}")
