"""Tabs out of programs, their meaning kept: what a model reads and writes is indented one way.

Only indentation changes, and only where the syntax tree stays the same, strings included. Line ends are the reader's business
(`cocos.problems`): Python itself takes CRLF for LF.
"""

import ast
import io
import tokenize
import warnings


def without_tabs(code: str) -> str:
    """The program with tabs of its indentation as spaces; unchanged where that would change what it does.

    A tab is four spaces where tabs are all there is, else reaches the next multiple of eight, as Python counts them.
    """
    if "\t" not in code:
        return code
    meaning = _tree(code)
    if meaning is None:
        return code
    inside = _lines_inside_strings(code)
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    only_tabs = not any(" " in indent for indent in indents)
    for width in (4, 8) if only_tabs else (8,):
        spaced = "\n".join(
            line if number in inside else indent.expandtabs(width) + line[len(indent) :]
            for number, (line, indent) in enumerate(zip(lines, indents, strict=True), start=1)
        )
        if _tree(spaced) == meaning:
            return spaced
    return code


def _tree(code: str) -> str | None:
    """What the program means, as text, or None where it is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _lines_inside_strings(code: str) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    lines: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.start[0] != token.end[0] and token.type != tokenize.NEWLINE:
                lines |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # then the comparison of trees decides
    return lines
