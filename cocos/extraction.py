"""Extraction of the program from a completion. Does not know how the completion was asked for or is run."""

import re

from cocos.files.python_parser import parse
from cocos.prompts import BEGIN, CORRECT, DONE

# A fenced block. The closing fence may be missing, because completions are truncated.
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
# Lines with which bare code starts; prose rarely starts a line like this.
_CODE_START = re.compile(
    r"^(?:def |class |import |from |@|async def |if |for |while |try:|with |\w[\w., ]* ?=)"
)
# A line of a program that does not parse may also be indented, or end a block.
_LOOKS_LIKE_CODE = re.compile(
    rf"^\s*(?:{_CODE_START.pattern[1:]}|return\b|yield\b|print\b|else:|elif |except\b)", re.MULTILINE
)
_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)\s", re.MULTILINE)


def extract_code(completion: str) -> str:
    """Return the program in a completion, or "" if there is none.

    Stops at the first [DONE], drops an echoed [BEGIN] or [CORRECT], prefers the last fenced block that
    defines a function or class, and drops prose before and after bare code. A program that does not parse is
    returned unchanged, so that its verdict names the syntax error; a text in which no line looks like code is
    no program.
    """
    text = _after_echo(completion.replace("\r\n", "\n").split(DONE)[0]).strip("\n").rstrip()
    if _parses(text):  # backticks inside a docstring are not a fence
        return text
    blocks = _FENCE.findall(text)
    # Chat models often show an example or a draft first, so the last block that defines something counts.
    defining = [block for block in blocks if _DEFINITION.search(block)]
    if defining:
        text = defining[-1]
    elif blocks and not _DEFINITION.search(text):  # otherwise a lone closing fence follows bare code
        text = blocks[0]
    text = text.strip("\n").rstrip()
    if _parses(text):
        return text
    return _without_prose(text) if _LOOKS_LIKE_CODE.search(text) else ""


def _after_echo(text: str) -> str:
    """Return the text after an echoed opening marker, or the text before a marker that follows a program."""
    for marker in (BEGIN, CORRECT):
        before, found, after = text.partition(marker)
        if found:
            text = before if _DEFINITION.search(before) else _after_echo(after)
    return text


def _without_prose(text: str) -> str:
    """Return the longest run of lines that parses, starting at a line that looks like code.

    Returns the whole text if there is no such run, or if the run is only a fragment of a broken program:
    executing the fragment would hide the error.
    """
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _CODE_START.match(line)]
    # Longest run first, so that a program is not cut at a line after which it happens to parse.
    for start in starts:
        for end in range(len(lines), start, -1):
            block = "\n".join(lines[start:end])
            if _parses(block):
                rest = [line for line in lines[end:] if line.strip()]
                # An indented rest belongs to a body that does not parse; the run is not the whole program.
                is_cut_inside = bool(rest) and rest[0][0] in " \t"
                lacks_its_definition = not _DEFINITION.search(block) and any(map(_DEFINITION.match, rest))
                return text if is_cut_inside or lacks_its_definition else block.rstrip()
    return text


def _parses(text: str) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
