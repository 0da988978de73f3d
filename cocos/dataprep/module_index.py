"""Modules of a folder of Python code: what they define, and the program that a definition needs.

Reads and parses source only; no module is imported or executed.
"""

import ast
import copy
import re
import stat
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cocos.dataprep.formats.pytest_files import decorator_name
from cocos.dataprep.formats.source_edits import (
    InlinedImports,
    defined_names,
    global_reads,
    parse_source,
    remove_docstrings,
)

Origin = tuple[str, str]  # file and name of a definition
MAX_SOURCE_BYTES = 1 << 20  # generated code and tables; no file that people write is that long
CACHED_MODULES = 256  # a syntax tree takes about 100 times the memory of its source


class Module:
    """Syntax tree of a module, and an index of its top-level statements.

    Attributes:
        definitions: Name -> the statements that bind it; an import statement has one name only.
        stars: Statements `from ... import *`.
        imports: The other import statements, with one name each.
        futures: Texts of the statements `from __future__ import ...`.

    """

    def __init__(self, source: str) -> None:
        self.tree = parse_source(source)
        self.definitions: dict[str, list[ast.stmt]] = defaultdict(list)
        self.stars: list[ast.ImportFrom] = []
        self.imports: list[ast.stmt] = []
        self.futures: set[str] = set()
        for node in self.tree.body:
            body = node.body if isinstance(node, ast.Try) else []
            # Of a `try` that imports a module beside this one, the body counts.
            is_local = any(isinstance(inner, ast.ImportFrom) and inner.level for inner in body)
            for statement in body if is_local else [node]:
                self._add(statement)

    def _add(self, node: ast.stmt) -> None:
        match node:
            case ast.ImportFrom(module="__future__"):
                self.futures.add(ast.unparse(node))
            case ast.ImportFrom(names=[ast.alias("*")]):
                self.stars.append(node)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    single = copy.copy(node)
                    single.names = [alias]
                    self.imports.append(single)
                    self.definitions[(alias.asname or alias.name).partition(".")[0]].append(single)
            case ast.If(test=test) if re.search("__name__|TYPE_CHECKING", ast.unparse(test)):
                pass  # it does not run at import
            case ast.FunctionDef(decorator_list=[*_, last]) if decorator_name(last) == "overload":
                pass
            case _:
                for name in defined_names(node):
                    self.definitions[name].append(node)


class SourceProgram(NamedTuple):
    """Source of a program, and the (file, name) pairs that it defines."""

    source: str
    definitions: set[Origin]


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
            with tokenize.open(file) as source:  # in the encoding that the file names, as Python reads it
                return Module(source.read())
        except OSError as error:
            raise ValueError(f"cannot be read ({error.strerror})") from None
        except (UnicodeDecodeError, SyntaxError):
            raise ValueError("is not UTF-8") from None

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

    def inlined_imports(self, path: str, tree: ast.AST) -> InlinedImports:
        """Return the transformer of a part of a file, for the imports in a tree."""
        return InlinedImports(tree, partial(self.find, path))

    def resolve(self, path: str, name: str, seen: set[Origin] | None = None) -> Origin | None:
        """Return the file and name of the definition of a module's global name; None if there is none.

        Args:
            seen: What was searched already: modules may import all names from each other.

        """
        seen = set() if seen is None else seen
        if (path, name) in seen:
            return None
        seen.add((path, name))
        try:
            module = self.module(path)
        except ValueError:
            return None
        sources = [(star, name) for star in module.stars]
        match module.definitions.get(name):
            case [*_, ast.ImportFrom(names=[alias]) as node] if self.find(
                path, node.module or "", node.level
            ):
                sources = [(node, alias.name)]
            case [*_]:
                return path, name
        files = [(self.find(path, node.module or "", node.level), origin) for node, origin in sources]
        return next(filter(None, (self.resolve(file, origin, seen) for file, origin in files if file)), None)

    def program(self, origins: Iterable[Origin]) -> SourceProgram:
        """Return the program of definitions, each as file and name, with all that they need.

        Raises:
            ValueError: The program needs a package, or modules whose names collide.

        """
        result = _Slice(self)
        try:
            for path, name in origins:
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
        self.added: set[Origin] = set()
        self._nodes: set[ast.stmt] = set()  # a statement may define several names
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
            if node not in self._nodes:
                self._nodes.add(node)
                self._add_statement(path, module, node)

    def _add_statement(self, path: str, module: Module, node: ast.stmt) -> None:
        imports = self.code_base.inlined_imports(path, ast.Module([*module.imports, node], []))
        tree = imports.visit(ast.Module([remove_docstrings(copy.deepcopy(node))], []))
        if not tree.body and not imports.used:
            raise ValueError(f"uses the module {ast.unparse(node).split()[-1]} as a value")
        self._require_packages(tree)
        text = ast.unparse(tree)
        for name in set().union(*map(defined_names, tree.body)):
            known_path, known_text = self._origins.setdefault(name, (path, text))
            if known_path != path and known_text != text:
                raise ValueError(f"needs two definitions of {name}")
        for origin in [*sorted(imports.used), *((path, name) for name in sorted(global_reads(text)))]:
            self.add(*origin)
        self.futures |= module.futures
        self.parts |= {text: None} if text else {}

    def _require_packages(self, tree: ast.AST) -> None:
        available = {*sys.stdlib_module_names, *self.code_base.packages}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                first = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                root = "." * getattr(node, "level", 0) + (first or "").partition(".")[0]
                if root not in available:
                    raise ValueError(f"needs the package {root} (--program_packages)")
