"""Messages for asserts without one. A message says what was expected and what the program returned.

Used for tests that `assert_split` does not split. Adding messages does not change which tests pass:

    assert f(1) == 2

becomes

    assert (_got_ := f(1)) == (_expected_ := 2), f'expected {_expected_!r}, got {_got_!r}'
"""

import ast
import copy

_GOT, _EXPECTED = "_got_", "_expected_"
_REPR = ord("r")  # the conversion !r of an f-string
_CONDITION_CHARS = 200


def add_assert_messages(test: str, tree: ast.Module) -> str:
    """Return the test's source with a message for every assert that has none.

    Args:
        test: The test's source; returned unchanged if its tree is nested too deeply.
        tree: The parsed test; left unchanged.

    """
    try:
        return ast.unparse(ast.fix_missing_locations(_MessageAdder().visit(copy.deepcopy(tree))))
    except RecursionError:
        return test


class _MessageAdder(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        if node.msg is not None:
            return node
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() as operator], comparators=[right]):
                # Store both values for the message: evaluating a side again could give another value.
                got = ast.NamedExpr(ast.Name(_GOT, ast.Store()), left)
                expected = ast.NamedExpr(ast.Name(_EXPECTED, ast.Store()), right)
                node.test = ast.Compare(got, [operator], [expected])
                node.msg = ast.JoinedStr(
                    [
                        ast.Constant("expected "),
                        ast.FormattedValue(ast.Name(_EXPECTED, ast.Load()), _REPR),
                        ast.Constant(", got "),
                        ast.FormattedValue(ast.Name(_GOT, ast.Load()), _REPR),
                    ]
                )
            case condition:
                node.msg = ast.Constant(f"false: {ast.unparse(condition)[:_CONDITION_CHARS]}")
        return node
