"""Wrong programs with a known small repair: bugs that are planted in right programs, one in each.

A small model's own wrong programs are mostly beyond it: what repairs them is another program. A planted bug
is repaired by a small edit. Does not know problems or models.
"""

import ast
import io
import keyword
import random
import tokenize
from collections.abc import Callable, Iterable, Iterator

OPERATORS = {
    "<": ("<=", ">"),
    ">": (">=", "<"),
    "<=": ("<", ">="),
    ">=": (">", "<="),
    "==": ("!=", "="),
    "!=": ("==",),
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("+", "**"),
    "/": ("//", "*"),
    "//": ("/", "%"),
    "%": ("//",),
    "+=": ("-=", "="),
    "-=": ("+=", "="),
    "**": ("*",),
}
WORDS = {"and": "or", "or": "and", "True": "False", "False": "True", "min": "max", "max": "min"}
NEEDED = frozenset("()[]{}:")  # a program without one of them does not parse

Edit = tuple[int, int, str]  # replace characters start to end by a text


def plant_bugs(code: str, count: int, rng: random.Random) -> list[str]:
    """Return at most `count` different programs, each of which is `code` with one edit.

    Kinds of edits are equally frequent: another operator or word, a constant that is one off, another name
    of the program, a misspelt name, a missing bracket, colon or quote, a missing statement, and a line at
    another depth. An edit may be harmless; execute the programs to find out.
    """
    try:
        kinds = [edits for kind in KINDS if (edits := list(kind(code)))]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return []
    planted: dict[str, None] = {}  # a dict as an ordered set
    for _ in range(20 * count):
        if len(planted) == count or not kinds:
            break
        start, end, text = rng.choice(rng.choice(kinds))
        planted[code[:start] + text + code[end:]] = None
    return [program for program in planted if program != code]


def _tokens(code: str) -> Iterator[tuple[tokenize.TokenInfo, str, int, int]]:
    """Yield each token with the text of the one before, and its start and end in the program."""
    starts = _line_starts(code)
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        (row, column), (last_row, last_column) = token.start, token.end
        yield token, before, starts[row - 1] + column, starts[last_row - 1] + last_column
        before = token.string


def _line_starts(code: str) -> list[int]:
    """Return where each line starts, and the end; lines as the tokenizer counts them."""
    starts = [0]
    for line in code.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return [min(start, len(code)) for start in [*starts, len(code)]]


def _names(code: str, *before: str) -> Iterator[tuple[str, int, int]]:
    """Yield each name with its start and end, but those of functions and classes and those after `before`."""
    for token, previous, start, end in _tokens(code):
        is_name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
        if is_name and previous not in ("def", "class", *before):
            yield token.string, start, end


def _other_operators(code: str) -> Iterable[Edit]:
    for token, _, start, end in _tokens(code):
        for other in OPERATORS.get(token.string, ()):
            yield start, end, other
        if token.type == tokenize.NAME and token.string in WORDS:
            yield start, end, WORDS[token.string]


def _other_constants(code: str) -> Iterable[Edit]:
    for token, _, start, end in _tokens(code):
        if token.type == tokenize.NUMBER and token.string.isdigit():
            for other in sorted({int(token.string) + 1, max(int(token.string) - 1, 0)}):
                yield start, end, str(other)


def _other_names(code: str) -> Iterable[Edit]:
    uses = list(_names(code, "import", "from", "as", "."))
    others = sorted({name for name, _, _ in uses})
    for name, start, end in uses:
        for other in others:
            if other != name:
                yield start, end, other


def _misspelt_names(code: str) -> Iterable[Edit]:
    for name, start, end in _names(code):
        yield start, end, name + name[-1]
        if len(name) > 3:
            yield start, end, name[:-1]


def _missing_marks(code: str) -> Iterable[Edit]:
    for token, _, start, end in _tokens(code):
        if token.string in NEEDED:
            yield start, end, ""
        elif token.type == tokenize.STRING:
            yield end - 1, end, ""


def _missing_statements(code: str) -> Iterable[Edit]:
    starts = _line_starts(code)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue)):
            assert node.end_lineno is not None
            yield starts[node.lineno - 1], starts[node.end_lineno], ""


def _other_depths(code: str) -> Iterable[Edit]:
    starts = _line_starts(code)
    for number, line in enumerate(code.split("\n")):
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth:
            for other in (depth // 2, depth + 4):
                yield starts[number], starts[number] + depth, " " * other


KINDS: tuple[Callable[[str], Iterable[Edit]], ...] = (
    _other_operators,
    _other_constants,
    _other_names,
    _misspelt_names,
    _missing_marks,
    _missing_statements,
    _other_depths,
)
