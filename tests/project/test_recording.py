"""The recorder of a command in a terminal: what a screen shows, and the picture."""

import sys

import pytest
from PIL import Image
from record.terminal_gif import LAST_S, TOTAL_S, Frame, screen_lines, select_frames

from tests.support.commands import complaint, succeed


def test_a_carriage_return_overwrites_the_line_and_long_lines_wrap():
    assert screen_lines(b"12345\rab\nnext") == ["ab345", "next"]
    assert screen_lines(b"\x1b[1mbold\x1b[0m\r\n") == ["bold", ""]
    assert screen_lines(b"x" * 103) == ["x" * 100, "xxx"]


def test_waiting_is_left_out_and_the_whole_picture_has_a_largest_length():
    frames = [Frame(60.0 * i, ["line"] * (i + 1)) for i in range(500)]
    kept, durations_s = select_frames(frames)
    assert kept[-1] is frames[-1] and durations_s[-1] == LAST_S
    assert sum(durations_s) == pytest.approx(TOTAL_S)


@pytest.mark.processes
def test_the_picture_has_a_frame_per_pause_and_a_failed_command_has_none(tmp_path):
    words = (
        sys.executable,
        "scripts/record/terminal_gif.py",
        "--output",
        tmp_path / "a.gif",
        "--",
        "sh",
        "-c",
    )
    succeed(*words, "echo one; sleep 0.3; echo two")
    with Image.open(tmp_path / "a.gif") as picture:
        assert picture.n_frames == 3  # the command line, one, two
    line = complaint(*words[:3], tmp_path / "b.gif", *words[4:], "exit 3")
    assert "ended with status 3; no picture is written" in line and not (tmp_path / "b.gif").exists()
