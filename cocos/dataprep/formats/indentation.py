"""Replacement of tabs by spaces in programs, so that a model reads and writes one kind of indentation.

Tabs inside strings stay. A program changes only if its syntax tree stays the same.
"""

import ast
import io
import tokenize

from cocos.python_parser import parse

# Python 3.12 splits an f-string into several tokens.
STRING_TOKENS = ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")


def tabs_to_spaces(code: str) -> str:
    """Return the program with spaces for tabs, or unchanged if that would change its syntax tree.

    A tab in the indentation becomes four spaces if the program indents with tabs only. Otherwise it reaches
    the next multiple of eight, as in Python's tokenizer. Other tabs become one space. Lines that begin inside
    a string stay as they are. Text that is not valid Python is returned unchanged.
    """
    if "\t" not in code:
        return code
    tree = _dump_tree(code)
    if tree is None:
        return code
    begins_in_string, touches_string = _string_lines(code)
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines]
    width = 8 if any(" " in indent for indent in indents) else 4
    spaced = "\n".join(
        line
        if number in begins_in_string
        else indent.expandtabs(width)
        + line[len(indent) :].replace("\t", "\t" if number in touches_string else " ")
        for number, (line, indent) in enumerate(zip(lines, indents, strict=True), start=1)
    )
    # The replacement is wrong for rare layouts, such as a form feed before the indentation.
    return spaced if _dump_tree(spaced) == tree else code


def _dump_tree(code: str) -> str | None:
    """Return the syntax tree as text, or None if the program does not parse."""
    try:
        return ast.dump(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _string_lines(code: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that begin inside a string, and of those that contain part of one."""
    begins_in_string: set[int] = set()
    touches_string: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if tokenize.tok_name[token.type] in STRING_TOKENS:
                touches_string |= set(range(token.start[0], token.end[0] + 1))
                begins_in_string |= set(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        pass  # the comparison of syntax trees rejects a wrong replacement
    return begins_in_string, touches_string
