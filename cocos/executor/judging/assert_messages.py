"""A test of several statements whose asserts say what they demanded and what they got.

Works on the test's text alone; what passes and what fails stays the same. Asserts with a message keep it.
"""

import ast
import copy

_SIDES = ("_got_", "_expected_")
_REPR = ord("r")


def explained(test: str, tree: ast.Module) -> str:
    """The test's text, its silent asserts given a message: evaluated once, and shown only where they fail."""
    try:
        return ast.unparse(ast.fix_missing_locations(_Explainer().visit(copy.deepcopy(tree))))
    except RecursionError:
        return test


class _Explainer(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        if node.msg is not None:
            return node
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is() as operator], comparators=[right]):
                got, expected = (
                    ast.NamedExpr(ast.Name(name, ast.Store()), side)
                    for name, side in zip(_SIDES, (left, right), strict=True)
                )
                node.test = ast.Compare(got, [operator], [expected])
                node.msg = ast.JoinedStr(
                    [
                        ast.Constant("expected "),
                        ast.FormattedValue(ast.Name(_SIDES[1], ast.Load()), _REPR),
                        ast.Constant(", got "),
                        ast.FormattedValue(ast.Name(_SIDES[0], ast.Load()), _REPR),
                    ]
                )
            case condition:
                node.msg = ast.Constant(f"false: {ast.unparse(condition)[:200]}")
        return node
