"""Replacement of tabs: a program does the same before and after it."""

import ast
import contextlib
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.formats.conversion import tabs_to_spaces


def outcome(code: str) -> object:
    """Return what a program prints, and its variable `s`."""
    space: dict[str, object] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, space)
    return out.getvalue(), space.get("s")


BLOCKS = st.recursive(
    st.sampled_from(
        [
            "print(1)",
            "s = 'a\\tb'",
            "s = '''x\n\ty\n  \tz'''",
            "t = [1,\n\t\t2,\n   3]",
            "# \t note",
            "u = 1\t+ 2\t",
            "s = '\t' +\t'x'",
        ]
    ),
    lambda inner: st.tuples(
        st.sampled_from(["if True:", "for i in range(2):", "while True:"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


def written(block, indent: str, step: str) -> str:
    if isinstance(block, str):
        return indent + block + "\n"
    head, body = block
    stop = f"{indent}{step}break\n" if head.startswith("while") else ""
    inner = "".join(written(one, indent + step, step) for one in body)
    return f"{indent}{head}\n{inner}{indent}{step}pass\n{stop}"


@settings(max_examples=150, deadline=None, database=None)
@given(st.lists(BLOCKS, min_size=1, max_size=3), st.sampled_from(["\t", "\t\t", " \t", "  "]))
def test_tabs_in_the_indentation_are_replaced_and_nothing_else_changes(blocks, step):
    code = "".join(written(block, "", step) for block in blocks)
    spaced = tabs_to_spaces(code)
    assert ast.dump(ast.parse(spaced)) == ast.dump(ast.parse(code)) and outcome(spaced) == outcome(code)
    assert tabs_to_spaces(spaced) == spaced


def test_tabs_become_four_spaces_if_only_tabs_indent_and_eight_if_both_do():
    assert tabs_to_spaces("def f():\n\treturn 1") == "def f():\n    return 1"
    assert tabs_to_spaces("if 1:\n  \tif 1:\n  \t\tx = 1") == "if 1:\n        if 1:\n                x = 1"
    assert (
        tabs_to_spaces("if 1:\n    x = 1\n\ty = 1") == "if 1:\n    x = 1\n\ty = 1"
    )  # not valid Python: unchanged
