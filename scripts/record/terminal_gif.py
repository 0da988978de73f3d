"""Animated GIF of a command in a terminal of 100 x 28 characters.

    python scripts/record/terminal_gif.py --output docs/demo.gif -- make demo

The picture leaves waiting out and gives every line time to be read; its clock shows the time that the command
took. The last screen stays for 5 seconds. Needs a POSIX system.
"""

import argparse
import os
import re
import select
import shlex
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont, ImageOps

from cocos.entry_point import run_command

COLUMNS, ROWS, JUMP = 100, 28, 14  # a full screen scrolls by JUMP lines, which is easier to read and smaller
FONT = f"{get_data_path()}/fonts/ttf/DejaVuSansMono.ttf"
FONT_SIZE, CELL, LINE, MARGIN = 14, 8, 18, 14  # pixels; at this size, a character is 8 pixels wide
BACKGROUND, TEXT = 32, 224  # two of the eight shades of grey
CHANGE_S, LINE_S = 0.06, 0.12  # time for a change of a progress bar, and for each new line
LONGEST_S, LAST_S, TOTAL_S = 1.0, 5.0, 25.0
MAX_CHANGES = 60  # frames without a new line
CONTROL = re.compile(r"\x1b\[[0-9;?]*[@-~]")  # ignored; tqdm's bars need none unless they are nested


class Frame(NamedTuple):
    """Everything that the command has printed until some seconds after its start."""

    seconds: float
    lines: list[str]


def screen_lines(output: bytes) -> list[str]:
    """Return what a terminal shows of the output: a carriage return starts to overwrite the line."""
    lines = []
    for line in CONTROL.sub("", output.decode(errors="replace")).replace("\r\n", "\n").split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines += [shown[start : start + COLUMNS] for start in range(0, max(1, len(shown)), COLUMNS)]
    return lines


def record(command: list[str]) -> list[Frame]:
    """Run the command in a pseudo-terminal and return its frames; its output is printed, too."""
    start, output = time.monotonic(), f"$ {shlex.join(command)}\n".encode()
    outputs = [(0.0, output)]
    ours, its = os.openpty()
    termios.tcsetwinsize(its, (ROWS, COLUMNS))
    process = subprocess.Popen(command, stdin=its, stdout=its, stderr=its)
    os.close(its)
    is_open = True
    while is_open:
        # A pause ends a frame, so that a table that is printed line by line is one frame.
        is_ready = bool(select.select([ours], [], [], 0.05)[0])
        if is_ready:
            try:
                new = os.read(ours, 1 << 16)
            except OSError:  # Linux reports the end of a pseudo-terminal as an error
                new = b""
            is_open = new != b""
            output += new
            sys.stdout.buffer.write(new)
            sys.stdout.flush()
        if output != outputs[-1][1] and not (is_ready and is_open):
            outputs.append((time.monotonic() - start, output))
    if status := process.wait():
        raise ValueError(f"{shlex.join(command)} ended with status {status}; no picture is written")
    return [Frame(seconds, screen_lines(output)) for seconds, output in outputs]


def select_frames(frames: list[Frame]) -> tuple[list[Frame], list[float]]:
    """Return the frames with new lines, a limited number of those without, and the seconds to show each."""
    kept, durations_s = [frames[0]], [LONGEST_S]
    for frame in frames[1:]:
        num_new = len(frame.lines) - len(kept[-1].lines)
        is_due = frame.seconds - kept[-1].seconds > frames[-1].seconds / MAX_CHANGES
        if num_new > 0 or is_due or frame is frames[-1]:
            kept.append(frame)
            durations_s.append(min(LONGEST_S, CHANGE_S + LINE_S * max(0, num_new)))
    scale = min(1, (TOTAL_S - LAST_S) / sum(durations_s[:-1]))
    return kept, [*(scale * duration for duration in durations_s[:-1]), LAST_S]


def draw(frame: Frame, jump: int) -> Image.Image:
    """Return a picture of the clock and the last lines, scrolled by a multiple of `jump`."""
    num_hidden = -(-max(0, len(frame.lines) - ROWS) // jump) * jump
    width, height = COLUMNS * CELL + 2 * MARGIN, (ROWS + 1) * LINE + 2 * MARGIN
    picture = Image.new("L", (width, height), BACKGROUND)
    pen = ImageDraw.Draw(picture)
    font = ImageFont.truetype(FONT, FONT_SIZE, layout_engine=ImageFont.Layout.BASIC)
    for row, line in enumerate(frame.lines[num_hidden:]):
        pen.text((MARGIN, MARGIN + LINE * row), line, TEXT, font)
    clock = f"{int(frame.seconds) // 60}:{int(frame.seconds) % 60:02d}"
    pen.text((width - MARGIN, height - MARGIN), clock, TEXT, font, anchor="rs")
    return ImageOps.posterize(picture, 3)


def save(path: Path, pictures: list[Image.Image], durations_s: list[float]) -> None:
    """Write an animated GIF, and print its length and size."""
    first, *others = pictures
    milliseconds = [10 * round(100 * duration) for duration in durations_s]
    # Pillow's `optimize` makes unchanged pixels transparent, which enlarges the file if the picture is text.
    first.save(path, save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=False)
    print(f"{path}: {sum(durations_s):.1f} s, {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Record the command and write the picture."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--output", type=Path, required=True, help="GIF to write")
    parser.add_argument("command", nargs="+", help="command and its arguments, after --")
    options = parser.parse_args()
    frames, durations_s = select_frames(record(options.command))
    save(options.output, [*(draw(frame, JUMP) for frame in frames[:-1]), draw(frames[-1], 1)], durations_s)


if __name__ == "__main__":
    run_command(main)
