"""Modules of a folder of Python code: what they define, and the program that a definition needs.

Reads and parses source only; no module is imported or executed.
"""

import ast
import copy
import re
import stat
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cocos.dataprep.formats.pytest_idioms import decorator_name
from cocos.dataprep.formats.source_edits import defined_names, global_reads, remove_docstrings
from cocos.files.python_parser import parse

MAX_SOURCE_BYTES = 1 << 20  # generated code and tables; no file that people write is that long
CACHED_MODULES = 256  # a syntax tree takes about 100 times the memory of its source


class Module:
    """Syntax tree of a module, and an index of its top-level statements.

    Attributes:
        definitions: Name -> the statements that bind it; an import statement has one name only.
        stars: Statements `from ... import *`.
        has_future_annotations: The module has `from __future__ import annotations`.

    """

    def __init__(self, source: str) -> None:
        self.tree = parse(source)
        self.definitions: dict[str, list[ast.stmt]] = defaultdict(list)
        self.stars: list[ast.ImportFrom] = []
        self.has_future_annotations = False
        for node in self._statements():
            match node:
                case ast.ImportFrom(module="__future__"):
                    self.has_future_annotations = True
                case ast.ImportFrom(names=[ast.alias("*")]):
                    self.stars.append(node)
                case ast.ImportFrom(module=module, names=names, level=level):
                    self._add(*(ast.ImportFrom(module, [alias], level) for alias in names))
                case ast.Import(names=names):
                    self._add(*(ast.Import([alias]) for alias in names))
                case ast.If(test=test) if re.search("__name__|TYPE_CHECKING", ast.unparse(test)):
                    pass  # it does not run at import
                case ast.FunctionDef(decorator_list=[*_, last]) if decorator_name(last) == "overload":
                    pass
                case _:
                    self._add(node)

    def _statements(self) -> Iterator[ast.stmt]:
        """Yield the top-level statements; of a `try` that imports a module beside this one, its body."""
        for node in self.tree.body:
            body = node.body if isinstance(node, ast.Try) else []
            is_local = any(isinstance(inner, ast.ImportFrom) and inner.level for inner in body)
            yield from body if is_local else [node]

    def _add(self, *nodes: ast.stmt) -> None:
        for node in nodes:
            for name in defined_names(node):
                self.definitions[name].append(node)

    def definition(self, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None:
        """Return the last function or class of this name at the top level, or None."""
        found = self.definitions.get(name, [None])[-1]
        return found if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else None


class SourceProgram(NamedTuple):
    """Source of a program, and the (file, name) pairs that it defines."""

    source: str
    definitions: set[tuple[str, str]]


class CodeBase:
    """Modules of a folder, by their paths relative to it.

    Args:
        files: Relative paths of the Python files, with `/`.
        packages: Third-party packages that programs may import.

    """

    def __init__(self, root: Path, files: Iterable[str], packages: tuple[str, ...] = ()) -> None:
        self.root, self.files, self.packages = root, set(files), packages
        self.module = lru_cache(CACHED_MODULES)(self._parse)

    def _parse(self, path: str) -> Module:
        """Return a module; raise ValueError if it cannot be read or does not parse."""
        file = self.root / path
        try:
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("is a pipe or a device")
            if status.st_size > MAX_SOURCE_BYTES:
                raise ValueError(f"has {status.st_size >> 20} MiB, more than source has")
            return Module(file.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ValueError(f"cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise ValueError("is not UTF-8") from None
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"does not parse ({error})") from None

    def find(self, importer: str, module: str, level: int = 0) -> str | None:
        """Return the file of the module that a file imports; None if it is not in the folder.

        An absolute name is searched as if each folder above the importer, and its `src`, were on `sys.path`.
        """
        if not level and module.partition(".")[0] in sys.stdlib_module_names:
            return None
        parents = list(PurePosixPath(importer).parents)
        parts = module.split(".") if module else []
        bases = parents[level - 1 : level] if level else [b for p in parents for b in (p, p / "src")]
        for base in bases:
            target = base.joinpath(*parts)
            for file in (f"{target}.py", str(target / "__init__.py")):
                if file in self.files:
                    return file
        return None

    def imported_module(self, importer: str, node: ast.stmt) -> str | None:
        """Return the file of the module that an import of one name binds; None if it binds no module."""
        if not isinstance(node, ast.Import | ast.ImportFrom):
            return None
        parts = (getattr(node, "module", None), node.names[0].name)
        return self.find(importer, ".".join(filter(None, parts)), getattr(node, "level", 0))

    def resolve(
        self, path: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[str, str] | None:
        """Return the file and name of the definition of a module's global name; None if there is none.

        Args:
            seen: What was searched already: modules may import all names from each other.

        """
        seen = set() if seen is None else seen
        while (path, name) not in seen:
            seen.add((path, name))
            try:
                module = self.module(path)
            except ValueError:
                return None
            match module.definitions.get(name):
                case [*_, ast.ImportFrom(module=source, names=[alias], level=level)] if target := self.find(
                    path, source or "", level
                ):
                    path, name = target, alias.name
                case None:
                    stars = (self.find(path, star.module or "", star.level) for star in module.stars)
                    found = (self.resolve(target, name, seen) for target in stars if target)
                    return next(filter(None, found), None)
                case _:
                    return path, name
        return None

    def program(self, path: str, names: Iterable[str]) -> SourceProgram:
        """Return the program that defines global names of a module, with all that they need.

        Raises:
            ValueError: The program needs a package, or modules whose names collide.

        """
        result = _Slice(self)
        try:
            for name in names:
                result.add(path, name)
        except RecursionError:
            raise ValueError("needs too many definitions") from None
        return SourceProgram("\n\n".join([*sorted(result.futures), *result.parts]) + "\n", result.added)


class _Slice:
    """Program under construction: each definition follows those that it needs."""

    def __init__(self, code_base: CodeBase) -> None:
        self.code_base = code_base
        self.parts: dict[str, None] = {}  # its statements, each once
        self.futures: set[str] = set()
        self.added: set[tuple[str, str]] = set()
        self._nodes: set[int] = set()  # ids of the statements that were added
        self._origins: dict[str, tuple[str, str]] = {}  # name -> file and text of its definition

    def add(self, path: str, name: str) -> None:
        """Add the definition of a global name, if it is one, after the definitions that it needs."""
        if (path, name) in self.added:
            return
        self.added.add((path, name))
        module = self.code_base.module(path)
        if name not in module.definitions and (origin := self.code_base.resolve(path, name)):
            self.add(*origin)
        for node in module.definitions.get(name, ()):
            match node:
                case ast.ImportFrom(names=[alias]) if target := self.code_base.find(
                    path, node.module or "", node.level
                ):
                    if self.code_base.imported_module(path, node):
                        raise ValueError(f"uses the module {name} as a value")
                    self.add(target, alias.name)
                    if alias.asname not in (None, alias.name):
                        self._claim({name}, path, "")
                        self.parts[f"{alias.asname} = {alias.name}"] = None
                case ast.Import() | ast.ImportFrom():
                    self._require_available(path, node)
                    self._claim({name}, path, ast.unparse(node))
                    self.parts[ast.unparse(node)] = None
                case _:
                    self._add_statement(path, module, node)

    def _add_statement(self, path: str, module: Module, node: ast.stmt) -> None:
        if id(node) in self._nodes:
            return  # it defines several names
        self._nodes.add(id(node))
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._require_available(path, inner)
        aliases = ModuleAliases(self.code_base, path, module)
        text = ast.unparse(aliases.visit(remove_docstrings(copy.deepcopy(node))))
        self._claim(defined_names(node), path, text)
        for target, name in aliases.used:
            self.add(target, name)
        for name in sorted(global_reads(text)):
            self.add(path, name)
        if module.has_future_annotations:
            self.futures.add("from __future__ import annotations")
        self.parts[text] = None

    def _claim(self, names: set[str], path: str, text: str) -> None:
        """Record what defines names; raise ValueError if another module defines one of them otherwise."""
        for name in names:
            known_path, known_text = self._origins.setdefault(name, (path, text))
            if known_path != path and known_text != text:
                raise ValueError(f"needs two definitions of {name}")

    def _require_available(self, path: str, node: ast.Import | ast.ImportFrom) -> None:
        for module in imported_names(node):
            root = module.partition(".")[0]
            if getattr(node, "level", 0) or self.code_base.find(path, module):
                raise ValueError("imports a module of the code base within a statement")
            if root not in sys.stdlib_module_names and root not in self.code_base.packages:
                raise ValueError(f"needs the package {root} (--program_packages)")


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names of the modules that a statement imports, or imports from."""
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


class ModuleAliases(ast.NodeTransformer):
    """Replaces `module.name` by `name` for modules of the code base.

    Args:
        path: File with the imports.

    Attributes:
        used: (file, name) of each replacement.

    """

    def __init__(self, code_base: CodeBase, path: str, module: Module) -> None:
        self._code_base, self._path, self._module = code_base, path, module
        self.used: list[tuple[str, str]] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the attribute's name alone if its value is a module of the code base."""
        dotted = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
        for statement in self._module.definitions.get(dotted.partition(".")[0], ()):
            target = self._code_base.imported_module(self._path, statement)
            [alias] = statement.names if target else [ast.alias("")]  # type: ignore[attr-defined]
            if target and dotted == (alias.asname or alias.name):
                self.used.append((target, node.attr))
                return ast.copy_location(ast.Name(node.attr, node.ctx), node)
        return self.generic_visit(node)
