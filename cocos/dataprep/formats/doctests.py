"""Conversion of a docstring to a description and tests: an assert per example with the printed value.

Examples that state something else than a value are left out, and reported with a reason: an exception, an
abbreviated value, or output of a loop. Nothing is executed.
"""

import ast
import doctest
import re
from typing import NamedTuple

from cocos.dataprep.formats.humaneval import ExtractedTests
from cocos.dataprep.formats.input_tests import equality
from cocos.dataprep.formats.source_edits import bound_names, read_names
from cocos.files.python_parser import parse

# Lines that only announce the examples, with the underline of a section.
_HEADINGS = re.compile(
    r"^[ \t*>#]*(?:\w+ )?(?:doc ?tests?|examples?|usage|test ?cases?|tests?)\b[^\n.]{0,20}[:.]*[ \t*]*$"
    r"(?:\n[ \t]*[-=~]{3,}[ \t]*$)?",
    re.IGNORECASE | re.MULTILINE,
)


class _Example(NamedTuple):
    """Parsed example of a docstring."""

    node: ast.stmt
    want: str  # the printed text, without the spaces around it; "" if nothing is printed
    reason: str  # why it gives no test; "" if it gives one


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
    examples: list[_Example] = []
    for source in doctest.DocTestParser().get_examples(docstring):
        if not source.options.get(doctest.SKIP):
            examples += _parse(source)
    local_names = set().union(*(bound_names(example.node) for example in examples))
    tests: list[str] = []
    left_out: list[str] = []
    for index, example in enumerate(examples):
        if not example.want:
            continue
        try:
            test = _assert(example)
        except ValueError as reason:
            left_out.append(f"example {ast.unparse(example.node)[:60]!r}: {reason}")
            continue
        needed, chosen = read_names(parse(test)) & local_names, []
        # Backwards, so that the names that a chosen example needs are known before the ones above it.
        for earlier in reversed(examples[:index]):
            if (bound_names(earlier.node) | read_names(earlier.node)) & needed:
                chosen.append(ast.unparse(earlier.node))
                needed |= read_names(earlier.node) & local_names
        tests.append("\n".join([*reversed(chosen), test]))
    return ExtractedTests(tuple(dict.fromkeys(tests)), tuple(left_out))


def _parse(example: doctest.Example) -> list[_Example]:
    """Return the statements of an example, the last of which prints; raise ValueError if it has none."""
    try:
        *others, last = parse(example.source).body
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"has an example that does not parse ({error})") from None
    except ValueError:
        return []  # only a comment
    want, reason = example.want.strip("\n"), ""
    if example.exc_msg is not None:
        reason = "expects an exception"
    elif "..." in want:
        reason = "has an abbreviated value"
    elif not isinstance(last, ast.Expr):
        reason = "prints within a statement"
    elif re.search(r"0x[0-9a-fA-F]{6}", want):
        reason = "prints an address"
    return [*(_Example(node, "", "") for node in others), _Example(last, want, reason if want else "")]


def _assert(example: _Example) -> str:
    """Return the assert that an example's value has the printed form; raise ValueError if it has none."""
    if example.reason:
        raise ValueError(example.reason)
    assert isinstance(example.node, ast.Expr)
    value, want = example.node.value, example.want
    source = ast.unparse(value)
    match value:
        case ast.Call(ast.Name("print"), [printed], []) if not isinstance(printed, ast.Starred):
            return f"assert str({ast.unparse(printed)}) == {want.replace('<BLANKLINE>', '')!r}"
        case ast.Call(func=ast.Name("print")):
            raise ValueError("prints several values")
    if isinstance(value, ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.NamedExpr | ast.UnaryOp):
        source = f"({source})"
    try:
        return equality(source, ast.literal_eval(want.strip()), atol=0)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        [node] = parse(want.strip()).body  # such as Counter({'a': 1})
    except (SyntaxError, ValueError, RecursionError):
        return f"assert repr({source}) == {want.strip()!r}"
    if not isinstance(node, ast.Expr):
        raise ValueError("prints within a statement")
    return f"assert {source} == {ast.unparse(node)}"
