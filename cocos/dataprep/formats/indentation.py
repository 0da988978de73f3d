"""Tabs out of programs, their meaning kept: what a model reads and writes is indented one way.

Strings keep theirs, and nothing changes unless the syntax tree stays the same. Line ends are the reader's
business (`cocos.problems`): Python itself takes CRLF for LF.
"""

import ast
import io
import tokenize

from cocos.syntax import parse


def without_tabs(code: str) -> str:
    """The program with spaces for tabs; unchanged where that would change what it does.

    In indentation a tab is four spaces where tabs are all there is, else it reaches the next multiple of
    eight, as Python counts; elsewhere it is one space. Lines that begin in a string stay as they are.
    """
    if "\t" not in code:
        return code
    meaning = _tree(code)
    if meaning is None:
        return code
    inside, touched = _lines_of_strings(code)
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    only_tabs = not any(" " in indent for indent in indents)
    for width in (4, 8) if only_tabs else (8,):
        spaced = "\n".join(
            line
            if number in inside
            else indent.expandtabs(width)
            + line[len(indent) :].replace("\t", "\t" if number in touched else " ")
            for number, (line, indent) in enumerate(zip(lines, indents, strict=True), start=1)
        )
        if _tree(spaced) == meaning:
            return spaced
    return code


def _tree(code: str) -> str | None:
    """What the program means, as text, or None where it is no Python."""
    try:
        return ast.dump(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lines_of_strings(code: str) -> tuple[set[int], set[int]]:
    """Numbers of the lines that begin inside a string, and of those that hold a part of one."""
    inside: set[int] = set()
    touched: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if tokenize.tok_name[token.type] in ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END"):
                touched |= set(range(token.start[0], token.end[0] + 1))
                inside |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # then the comparison of trees decides
    return inside, touched
