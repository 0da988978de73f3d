"""Fenced blocks, and runs of lines outside fences, that parse as Python.

A block may stand in a list or a quote, and its fences may share a line with code. What answers add to
programs is dropped only from a text that does not parse. Does not know which program is asked for
(`cocos.extraction`).
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cocos.files.python_parser import parse, tree_of


class Piece(NamedTuple):
    """A block, or a run of lines, that parses."""

    code: str
    tree: ast.Module
    is_cleaned: bool


# A fence opens after quote marks, list marks or a few words. Its language and code may share its line.
_OPENING = re.compile(r"^(?P<before>.*?)(?:`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)(?P<code>.*)$")
_CONTAINER = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?")
_CLOSING_LINE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})")
_TRIPLE_QUOTE = re.compile("\"\"\"|'''")
MAX_FENCES = 8  # in one string of a program; answers that repeat themselves have hundreds
_CLOSING_END = re.compile(r"^(?P<code>.*?\S)[ \t]*(?:`{3,}|~{3,})[ \t]*$")


def blocks_of(text: str, is_truncated: bool) -> list[Piece]:
    """Return the fenced Python blocks that parse. The last closing fence may be missing."""
    lines, blocks, i = text.split("\n"), list[Piece](), 0
    while i < len(lines):
        opening = _OPENING.match(lines[i])
        i += 1
        if opening is None or not (_CONTAINER.fullmatch(opening["before"]) or opening["language"]):
            continue
        ends, piece = _ends(lines, i), None
        end, content = ends[0]
        if not opening["language"] or "py" in opening["language"].lower():
            container = _CONTAINER.match(opening["before"])[0]  # type: ignore[index]
            for possible in (ends, _odd_ends(lines, i, opening["code"])):
                if piece is None and (found := _first_that_parses([c for _, c in possible], container)):
                    piece, (end, content) = found[0], possible[found[1]]
        if end == len(lines) and not _CLOSING_LINE.match(lines[-1]):
            if piece is None and is_truncated:
                piece = _whole_statements(content)
            if piece and any(block.code.startswith(piece.code) for block in blocks):
                piece = None  # a repetition that is cut off
        if piece:
            blocks.append(piece)
        # A closing fence with a language opens the next block: its own is missing.
        has_language = re.match(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\w", lines[end - 1])
        i = end - 1 if end > i and has_language else end
    return blocks


def _ends(lines: Sequence[str], start: int) -> list[tuple[int, Sequence[str]]]:
    """Return the possible ends of a block, and its lines up to them.

    A fence in a docstring does not close a block: what is before it does not parse.

    Args:
        start: Number of the line after the opening fence.

    """
    closings = [k for k in range(start, len(lines)) if _CLOSING_LINE.match(lines[k])][:MAX_FENCES]
    if closings and not _TRIPLE_QUOTE.search("\n".join(lines[start : closings[0]])):
        del closings[1:]
    if lines[start : start + 1] and lines[start].strip().lower() in ("python", "python3", "py"):
        start += 1  # the language stands on a line of its own
    return [*((k + 1, lines[start:k]) for k in closings), (len(lines), lines[start:])]


def _odd_ends(lines: Sequence[str], start: int, code: str) -> list[tuple[int, Sequence[str]]]:
    """Return the ends of a block whose fences share a line with code; `code` follows the opening fence."""
    if closing := _CLOSING_END.match(code):
        return [(start, [closing["code"].strip()])]
    ends = [
        (k + 1, [*lines[start:k], closing["code"]])
        for k in range(start, len(lines))
        if (closing := _CLOSING_END.match(lines[k]))
    ]
    end, content = _ends(lines, start)[0]
    return [*ends[:MAX_FENCES], (end, [code.strip(), *content])]


def _first_that_parses(contents: Sequence[Sequence[str]], container: str) -> tuple[Piece, int] | None:
    """Return the block in the first form in which one of its possible contents parses, and which one."""
    for number, forms in enumerate(zip(*(_forms(lines, container) for lines in contents), strict=True)):
        for index, form in enumerate(forms):
            if (tree := tree_of(form)) and tree.body:
                return Piece(form.strip("\n").rstrip(), tree, is_cleaned=number > 0), index
    return None


_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")
_LITERAL = r"'''(?s:.)*?'''|\"\"\"(?s:.)*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*"
_INVISIBLE = re.compile(
    rf"(?P<literal>{_LITERAL})|(?P<blank>[\u00a0\u2000-\u200a\u202f\u3000])|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|<\|[^|<>\s]*\|>|<｜[^｜<>]*｜>|</?s>|<eos>|<(?:start|end)_of_turn>|[\0\u00ad\u200b-\u200f\u2060\ufeff]"
)


def _forms(lines: Sequence[str], container: str) -> Iterator[str]:
    """Yield a block as it stands, and then without what answers add to programs.

    Args:
        container: What precedes the opening fence: quote marks, a list mark, indentation.

    """
    text = "\n".join(lines)
    yield text
    text = _without_quotes(text) if ">" in container else text
    indent = len(container.rpartition(">")[2])
    text = "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))
    yield text
    for form in (text, _without_prompts(text)):
        yield textwrap.dedent(form)
        yield textwrap.dedent(_visible(form)).strip("\n")


def _without_quotes(text: str) -> str:
    return re.sub(r"^[ \t]*> ?", "", text, flags=re.MULTILINE)


def _without_prompts(text: str) -> str:
    """Return the input of an interactive session; a text without prompts stays as it is."""
    lines = [line.lstrip() for line in text.split("\n")]
    return "\n".join(line[4:] for line in lines if _PROMPT.match(line)) if ">>>" in text else text


def _visible(text: str) -> str:
    """Return a text without terminal codes, special tokens and invisible characters outside strings."""
    return _INVISIBLE.sub(lambda found: found["literal"] or (" " if found["blank"] else ""), text)


# Lines with which bare code starts; prose rarely starts a line like this.
CODE_START = re.compile(
    r"^(?:def |class |import |from |@|async def |if |for |while |try:|with |\w[\w., ]* ?=)"
)
# A line of a program that does not parse may also be indented, or end a block.
LOOKS_LIKE_CODE = re.compile(
    rf"^\s*(?:{CODE_START.pattern[1:]}|return\b|yield\b|print\b|else:|elif |except\b)", re.MULTILINE
)


def runs_of(text: str, is_truncated: bool) -> Iterator[Piece]:
    """Yield the longest runs of lines that parse, dedented, each from a line that looks like code.

    A run that continues with an indented line is a part of a broken program: executing it would hide the
    error.
    """
    lines, i = text.split("\n"), 0
    while i < len(lines):
        start, i = i, i + 1
        indent = len(lines[start]) - len(lines[start].lstrip(" \t"))
        if not CODE_START.match(lines[start][indent:]):
            continue
        before = "\n".join(lines[:start]).rstrip().rpartition("\n")[2]
        is_inside = before[:indent].isspace() or LOOKS_LIKE_CODE.match(before)
        if indent and (not before or is_inside):
            continue  # inside a program that does not parse
        dedented = [line.lstrip() if line[:indent].strip() else line[indent:] for line in lines[start:]]
        if not (run := longest_run(dedented)):
            continue
        i = start + len(run)
        code = "\n".join(run)
        if not is_cut_inside(dedented[len(run) :]) and (tree := tree_of(code)):
            yield Piece(code.rstrip(), tree, is_cleaned=indent > 0)
        elif is_truncated and (piece := _whole_statements(run)):
            yield piece


def longest_run(lines: Sequence[str]) -> Sequence[str]:
    """Return the longest beginning of the lines that parses; [] if none does."""
    end = len(lines)
    while end > 0:
        try:
            parse("\n".join(lines[:end]))
        except SyntaxError as error:
            # Everything that contains the line of the error fails like this; f-strings count their own lines.
            line = error.lineno or end
            end = end - 1 if "f-string" in str(error.msg) else min(end, line) - 1
        except (ValueError, MemoryError, RecursionError):
            end -= 1
        else:
            return lines[:end]
    return []


def is_cut_inside(rest: Sequence[str]) -> bool:
    """Return whether the lines after a run belong to a body that does not parse: they are indented."""
    return next((line for line in rest if line.strip()), "")[:1] in (" ", "\t")


def _whole_statements(lines: Sequence[str]) -> Piece | None:
    """Return the lines before the last module-level statement, which is not finished."""
    for end in range(len(lines) - 1, 0, -1):
        begins_statement = lines[end][:1].strip() and not re.match(
            r"(?:else|elif|except|finally)\b", lines[end]
        )
        code = "\n".join(lines[:end]).strip("\n").rstrip()
        if begins_statement and (tree := tree_of(code)) and tree.body:
            return Piece(code, tree, is_cleaned=False)
    return None


def line_forms(text: str) -> tuple[str, ...]:
    """Return a text outside fences as it stands, and then without what answers add to programs."""
    return text, _without_quotes(text), _visible(text), _without_prompts(text)
