"""Messages for asserts without one. A message says what was expected and what the program returned.

Used for tests that `assert_split` does not split. Adding messages does not change which tests pass:

    assert f(1) == 2

becomes

    assert (_got_ := (f(1))) == (_expected_ := (2)), f'expected {_expected_!r}, got {_got_!r}'
"""

import ast
from collections.abc import Iterable

_CONDITION_CHARS = 200


def add_assert_messages(test: str, nodes: Iterable[ast.AST]) -> str:
    """Return the test's source with a message for every assert that has none.

    Text is inserted at the positions that the parser gives. To change the tree and unparse it would take ten
    times as long, which matters for tests of thousands of asserts.

    Args:
        test: The test's source.
        nodes: Every node of its tree.

    """
    lines = test.encode().splitlines(keepends=True)
    # Per line, what to insert and at which byte. Texts for one position are in order.
    insertions: dict[int, list[tuple[int, str]]] = {}

    def insert(line: int | None, column: int | None, text: str) -> None:
        assert line is not None and column is not None  # positions in a parsed tree are complete
        insertions.setdefault(line - 1, []).append((column, text))

    for node in nodes:
        if not isinstance(node, ast.Assert) or node.msg is not None:
            continue
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                # Store both values for the message: evaluating a side again could give another value.
                for name, side in (("_got_", left), ("_expected_", right)):
                    insert(side.lineno, side.col_offset, f"({name} := (")
                    insert(side.end_lineno, side.end_col_offset, "))")
                message = "f'expected {_expected_!r}, got {_got_!r}'"
            case condition:
                is_one_line = condition.lineno == condition.end_lineno
                end_column = condition.end_col_offset if is_one_line else None
                text = lines[condition.lineno - 1][condition.col_offset : end_column].decode()
                message = repr(f"false: {text.strip()[:_CONDITION_CHARS]}")
        insert(node.end_lineno, node.end_col_offset, f", {message}")
    for number, texts in insertions.items():
        parts, end = [], len(lines[number])
        for column, text in reversed(sorted(texts, key=lambda insertion: insertion[0])):
            parts += [lines[number][column:end], text.encode()]
            end = column
        lines[number] = lines[number][:end] + b"".join(reversed(parts))
    return b"".join(lines).decode()
