"""What a test file says in pytest's words, said in the standard library's: programs are executed without
pytest.

`pytest.raises` becomes unittest's assertRaises, `x == pytest.approx(y)` becomes math.isclose with pytest's
tolerances, `pytest.fail` an AssertionError; names of the module under test lose their prefix, since the
candidate's names are simply there.
"""

import ast

from cocos.dataprep.formats.source_edits import Edit, apply, text_of
from cocos.syntax import parse


def in_plain_words(source: str, modules: tuple[str, ...]) -> str:
    """The test file without pytest's calls and without the module under test.

    Args:
        source: A test file that parses.
        modules: Names by which the file imports the module under test.

    Raises:
        ValueError: It uses something of pytest that has no plain counterpart.

    """
    while True:
        tree = parse(source)
        edits = _Words(source, tree, modules).edits()
        if not edits:
            return source
        source = apply(source, edits)


def decorator_name(decorator: ast.expr) -> str:
    """`pytest.mark.parametrize` as "parametrize", however it was imported."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(node).split(".")[-1]


class _Words:
    """The edits of one pass over a file; edits inside edits are left to the next pass."""

    def __init__(self, source: str, tree: ast.Module, modules: tuple[str, ...]) -> None:
        self.source, self.tree, self.modules = source, tree, modules
        self.prefixes: set[str] = set()  # names that stand for the module under test
        self.words: dict[str, str] = {}  # names that stand for something of pytest
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=aliases):
                    self.prefixes |= {a.asname or a.name for a in aliases if a.name in modules}
                case ast.ImportFrom(module="pytest", names=aliases):
                    self.words |= {a.asname or a.name: a.name for a in aliases}
        excepted = [n for n in ast.walk(tree) if isinstance(n, ast.With)]
        self.caught = {
            item.optional_vars.id
            for node in excepted
            for item in node.items
            if isinstance(item.optional_vars, ast.Name) and "assertRaises" in ast.unparse(item.context_expr)
        }

    def edits(self) -> list[Edit]:
        edits = []
        for node in ast.walk(self.tree):
            text = self._plain(node)
            if text is not None:
                edits.append(Edit(node, text))  # type: ignore[arg-type]
        return edits

    def _word(self, node: ast.AST) -> str | None:
        match node:
            case ast.Attribute(value=ast.Name(id="pytest"), attr=name):
                return name
            case ast.Name(id=name):
                return self.words.get(name)
        return None

    def _plain(self, node: ast.AST) -> str | None:
        match node:
            case ast.Attribute(value=value, attr=name) if ast.unparse(value) in self.prefixes:
                return name
            case ast.Attribute(value=ast.Name(id=caught), attr="value") if caught in self.caught:
                return f"{caught}.exception"
            case ast.Call(func=function) if self._word(function) == "raises":
                return self._raises(node)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                for one, other in ((left, right), (right, left)):
                    if isinstance(other, ast.Call) and self._word(other.func) == "approx":
                        return self._isclose(one, other)
            case ast.Expr(value=ast.Call(func=function, args=[value, *_])) if (
                self._word(function) == "approx"
            ):
                return text_of(self.source, value)  # compares nothing, as it stands
            case ast.Expr(value=ast.Call(func=function, args=args)) if self._word(function) == "fail":
                reason = text_of(self.source, args[0]) if args else "'pytest.fail'"
                return f"raise AssertionError({reason})"
        return None

    def _raises(self, call: ast.Call) -> str:
        arguments = ", ".join(text_of(self.source, argument) for argument in call.args)
        match call.keywords:
            case []:
                return f"__import__('unittest').TestCase().assertRaises({arguments})"
            case [ast.keyword(arg="match", value=pattern)]:
                words = text_of(self.source, pattern)
                return f"__import__('unittest').TestCase().assertRaisesRegex({arguments}, {words})"
        raise ValueError(f"uses {ast.unparse(call)}, which has no plain counterpart")

    def _isclose(self, one: ast.expr, approx: ast.Call) -> str:
        tolerance = {k.arg: text_of(self.source, k.value) for k in approx.keywords}
        collections = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
        if (
            len(approx.args) != 1
            or isinstance(approx.args[0], collections)
            or tolerance.keys() - {"rel", "abs"}
        ):
            raise ValueError(f"uses {ast.unparse(approx)[:80]}, which has no plain counterpart")
        default_rel = "0" if "abs" in tolerance else "1e-06"  # as pytest has it
        rel, absolute = tolerance.get("rel", default_rel), tolerance.get("abs", "1e-12")
        sides = f"{text_of(self.source, one)}, {text_of(self.source, approx.args[0])}"
        return f"math.isclose({sides}, rel_tol={rel}, abs_tol={absolute})"
