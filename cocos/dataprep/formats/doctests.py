"""Conversion of a docstring to a description and tests: an assert per example with the printed value.

Examples that state something else than a value are left out, and reported with a reason: an exception, an
abbreviated value, or output of a loop. Nothing is executed.
"""

import ast
import doctest
import re

from cocos.dataprep.formats.humaneval import ExtractedTests
from cocos.dataprep.formats.input_tests import equality
from cocos.dataprep.formats.source_edits import bound_names, needed_before, read_names
from cocos.files.python_parser import parse

# Lines that only announce the examples, with the underline of a section.
_HEADINGS = re.compile(
    r"^[ \t*>#]*(?:\w+ )?(?:doc ?tests?|examples?|usage|test ?cases?|tests?)\b[^\n.]{0,20}[:.]*[ \t*]*$"
    r"(?:\n[ \t]*[-=~]{3,}[ \t]*$)?",
    re.IGNORECASE | re.MULTILINE,
)


def description(docstring: str) -> str:
    """Return a docstring without its examples, without the lines that announce them, and without blank ends.

    Raises:
        ValueError: The docstring's examples are not well-formed.

    """
    parts = doctest.DocTestParser().parse(docstring)
    text = _HEADINGS.sub("", "".join(part for part in parts if isinstance(part, str)))
    lines = [line.rstrip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def split_docstring(docstring: str) -> ExtractedTests:
    """Return a test for each example that prints a value, with the earlier examples that it depends on.

    Raises:
        ValueError: The docstring's examples are not well-formed.

    """
    earlier: list[ast.stmt] = []
    tests: list[str] = []
    left_out: list[str] = []
    for example in doctest.DocTestParser().get_examples(docstring):
        if example.options.get(doctest.SKIP):
            continue
        try:
            *before, last = parse(example.source).body or [ast.Pass()]  # it may be only a comment
        except (SyntaxError, RecursionError) as error:
            raise ValueError(f"has an example that does not parse ({error})") from None
        earlier += before
        bound = set().union(*map(bound_names, earlier))
        if example.want.strip():
            try:
                test = _assert(last, example)
                # A call may change what it reads.
                touched = {node: bound & (bound_names(node) | read_names(node)) for node in earlier}
                chosen = needed_before(parse(test), touched)
                tests.append("\n".join([*map(ast.unparse, chosen), test]))
            except ValueError as reason:
                left_out.append(f"example {ast.unparse(last)[:60]!r}: {reason}")
        earlier.append(last)
    return ExtractedTests(tuple(dict.fromkeys(tests)), tuple(left_out))


def _assert(node: ast.stmt, example: doctest.Example) -> str:
    """Return the assert that an example's value has the printed form; raise ValueError if it has none."""
    want = example.want.strip("\n")
    if example.exc_msg is not None:
        raise ValueError("expects an exception")
    if "..." in want:
        raise ValueError("has an abbreviated value")
    if not isinstance(node, ast.Expr):
        raise ValueError("prints within a statement")
    if re.search(r"0x[0-9a-fA-F]{6}", want):
        raise ValueError("prints an address")
    match node.value:
        case ast.Call(ast.Name("print"), [printed], []) if not isinstance(printed, ast.Starred):
            return f"assert str({ast.unparse(printed)}) == {want.replace('<BLANKLINE>', '')!r}"
        case ast.Call(ast.Name("print")):
            raise ValueError("prints several values")
        case ast.BoolOp() | ast.Compare() | ast.IfExp() | ast.Lambda() | ast.NamedExpr() | ast.UnaryOp():
            source = f"({ast.unparse(node)})"
        case _:
            source = ast.unparse(node)
    try:
        return equality(source, ast.literal_eval(want.strip()), atol=0)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        value = ast.parse(want.strip(), mode="eval")  # such as Counter({'a': 1})
    except (SyntaxError, ValueError, RecursionError):
        return f"assert repr({source}) == {want.strip()!r}"
    return f"assert {source} == {ast.unparse(value)}"
