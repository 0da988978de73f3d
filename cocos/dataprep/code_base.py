"""Problems from a folder of Python code: functions and classes with doctests or test files.

    prepare_data.py repository --input FOLDER --output_dir OUT

A problem is a function or class of the top level. Its text is the docstring without the examples, its
reference the definition with all that it needs from the folder, and its tests are the asserts of the doctests
and of the test files. A function from which no problem can be made gives a row with the reason. Nothing is
executed or imported: the checks execute the references in the sandbox.
"""

import ast
import copy
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path, PurePosixPath

from cocos.dataprep.checks.reference_checks import asserts
from cocos.dataprep.formats.conversion import Converted, from_mbpp
from cocos.dataprep.formats.doctests import description, split_docstring
from cocos.dataprep.formats.humaneval import group_by_assert
from cocos.dataprep.formats.pytest_files import split_test_module
from cocos.dataprep.formats.shown_tests import divide_tests
from cocos.dataprep.formats.source_edits import defined_names, global_reads
from cocos.dataprep.module_index import CodeBase, Module, Origin
from cocos.dataprep.readers import RawRow
from cocos.dataprep.sources import NOT_STATED, Source
from cocos.files.json_lines import DataError, Place
from cocos.files.python_parser import parse

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SKIPPED_FOLDERS = re.compile(r"\..*|__pycache__|node_modules|site-packages|.*\.egg-info|venv|build|dist")
TEST_FILE = re.compile(r"(^|/)((test_[^/]*|[^/]*_tests?|tests?)\.py$|tests?/)")

LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# Words of a licence, in lower case and without commas, and its name; the first match counts.
LICENCES = (
    ("gnu affero general public license", "AGPL"),
    ("gnu lesser general public license", "LGPL"),
    ("gnu general public license", "GPL"),
    ("mozilla public license version 2.0", "MPL-2.0"),
    ("apache license version 2.0", "Apache-2.0"),
    ("permission is hereby granted free of charge", "MIT"),
    ("neither the name", "BSD-3-Clause"),
    ("redistributions of source code must retain", "BSD-2-Clause"),
)

REPOSITORY = "repository"  # the SOURCE of a folder of code
DROPPED = ("malformed", "failing", "flaky", "untested", "constant")  # findings for which its rows are dropped


def code_base_source(folder: Path | None, licence: str, packages: tuple[str, ...] = ()) -> Source:
    """Return the source for a folder of code.

    Args:
        folder: Root of the code.
        licence: Licence of all rows; "" for those that the folder states.
        packages: Third-party packages that programs may import.

    """
    found = licence or (folder_licence(folder) if folder and folder.is_dir() else "")
    convert = partial(from_code_base, licence=licence)
    read = partial(read_code_base, packages=packages)
    return Source(REPOSITORY, convert, "Code base", found or NOT_STATED, "", read=read)


def read_code_base(folder: Path, packages: tuple[str, ...] = ()) -> Iterator[RawRow]:
    """Yield a row per problem, and a DataError per file, function or class that gives none.

    Args:
        folder: Root of the code.
        packages: Third-party packages that programs may import.

    Raises:
        DataError: The folder does not exist, or contains no Python file.

    """
    files = []
    for path in python_files(folder):
        if path.isprintable():
            files.append(path)
        else:
            yield _refused(ascii(path)[1:-1], 1, "the file has a name that is not UTF-8")
    code_base = CodeBase(folder, files, packages)
    tests: dict[Origin, list[str]] = defaultdict(list)
    for path in files:
        if TEST_FILE.search(path):
            yield from _read_test_file(code_base, path, tests)
    for path in files:
        if not TEST_FILE.search(path):
            yield from _read_module(code_base, path, tests)


def from_code_base(row: dict, place: Place, licence: str | None = None) -> Converted:
    """Convert a row of `read_code_base`; a licence that is given counts, and not that of the row."""
    left_out = row.pop("left_out")
    converted = from_mbpp(row | ({"licence": licence} if licence else {}), place)
    return converted._replace(left_out=tuple(left_out))


def python_files(folder: Path) -> list[str]:
    """Return the relative paths of a folder's Python files, sorted; raise DataError if there is none."""
    if not folder.is_dir():
        what = "is a file, not a folder; unpack it" if folder.exists() else "no such folder"
        raise DataError(f"{folder}: {what}; --input is the folder of the code")
    found = []
    for parent, folders, names in os.walk(folder):  # does not follow links to folders
        folders[:] = [name for name in folders if not SKIPPED_FOLDERS.fullmatch(name)]
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        paths = [Path(parent, name) for name in names if name.endswith(".py")]
        found += [path.relative_to(folder).as_posix() for path in paths if not _is_alias(path, folder)]
    if not found:
        raise DataError(f"{folder}: contains no Python file; give the folder of the code")
    return sorted(found)


def _is_alias(path: Path, folder: Path) -> bool:
    """Return whether a path is a link to a file of the folder, which is read by its own name."""
    return path.is_symlink() and path.exists() and path.resolve().is_relative_to(folder.resolve())


def _read_module(code_base: CodeBase, path: str, tests: dict[Origin, list[str]]) -> Iterator[RawRow]:
    try:
        module = code_base.module(path)
    except ValueError as error:
        yield _refused(path, 1, f"the file {error}")
        return
    licences = (folder_licence(code_base.root / parent) for parent in PurePosixPath(path).parents)
    licence = next(filter(None, licences), "")
    for name, [*_, node] in module.definitions.items():
        if not isinstance(node, Definition) or node.name != name:
            continue
        of_files = tests.pop((path, name), [])
        if of_files or any(">>>" in text for text in _docstrings(node).values()):
            try:
                row = _problem(code_base, path, module, node, of_files) | {"licence": licence}
                yield RawRow(Place(path, node.lineno), None, row)
            except ValueError as reason:
                yield _refused(path, node.lineno, f"{name} {reason}")


def _refused(path: str, line: int, reason: str) -> RawRow:
    place = Place(path, line)
    return RawRow(place, None, DataError(f"{place}: {' '.join(reason.split())}"[:500]))


def _problem(
    code_base: CodeBase, path: str, module: Module, node: Definition, of_files: list[str]
) -> dict[str, object]:
    """Return the row of a function or class; raise ValueError if it gives no problem."""
    if isinstance(node, ast.AsyncFunctionDef):
        raise ValueError("is asynchronous")
    reference = code_base.program([(path, node.name)])
    docstrings = _docstrings(node)
    text = _text(node, docstrings, ast.get_docstring(module.tree) or "")
    tests, left_out, helpers = _doctests(code_base, (path, node.name), docstrings.values())
    tests = [test for test in (*tests, *of_files) if node.name in global_reads(test)]
    if not tests:
        raise ValueError("; ".join(["has no test that calls it", *left_out[:1]]))
    visible, hidden, surplus = divide_tests(tests)
    return {
        "task_id": f"{path}:{node.name}",
        "text": text,
        "code": reference.source,
        "test_list": list(visible),
        "hidden_test_list": list(hidden),
        "test_setup_code": code_base.program(sorted(helpers)).source.strip(),
        "entry_point": node.name,
        "left_out": left_out + surplus,
    }


def _doctests(
    code_base: CodeBase, origin: Origin, docstrings: Iterable[str]
) -> tuple[list[str], list[str], set[Origin]]:
    """Return the tests of docstrings, why others are left out, and the definitions that the tests need."""
    tests: list[str] = []
    left_out: list[str] = []
    helpers: set[Origin] = set()
    path, name = origin
    for docstring in docstrings:
        extracted = split_docstring(docstring)
        left_out += extracted.left_out
        for test in extracted.tests:
            tree = parse(test)
            imports = code_base.inlined_imports(path, tree)
            test = ast.unparse(imports.visit(tree))
            used = _origins(code_base, path, test, imports.used) - {origin}
            try:
                if origin in code_base.program(used).definitions:
                    raise ValueError(f"needs {', '.join(sorted(n for _, n in used))}, which need {name}")
            except ValueError as reason:
                left_out.append(f"{test[:60]!r}: {reason}")
            else:
                tests.append(test)
                helpers |= used
    return tests, left_out, helpers


def _docstrings(node: Definition) -> dict[str, str]:
    """Return the docstrings of a definition and, for a class, of its methods, by their headings."""
    nodes = [node, *(node.body if isinstance(node, ast.ClassDef) else ())]
    return {_heading(n): ast.get_docstring(n) or "" for n in nodes if isinstance(n, Definition)}


def _heading(node: Definition) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}({', '.join(map(ast.unparse, node.bases))})".removesuffix("()")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def _text(node: Definition, docstrings: dict[str, str], module_docstring: str) -> str:
    """Return the task: what to write, with its signature and the description of the docstring.

    The module's docstring stands in for one that contains no description.
    """
    (heading, docstring), *methods = docstrings.items()
    said = description(docstring)
    if not any(map(description, docstrings.values())) and not (said := description(module_docstring)):
        raise ValueError("has no description besides the examples" if docstring else "has no docstring")
    text = f"Write a {'' if isinstance(node, ast.ClassDef) else 'function '}{heading}. {said}".rstrip()
    public = [(h, description(d)) for h, d in methods if not h.startswith("_") or h.startswith("__init__")]
    if not public:
        return text
    lines = [f"- {h}{': ' + said if said else ''}" for h, said in public]
    return "\n".join([text, "", "Its methods:", "", *lines])


def _origins(code_base: CodeBase, path: str, test: str, imported: set[Origin]) -> set[Origin]:
    """Return the definitions of the folder that a test in a file reads, directly or as an inlined import."""
    free = global_reads(test) - set().union(*map(defined_names, parse(test).body))
    # What is imported and not defined anywhere stands for itself: the test cannot run without it.
    found = {code_base.resolve(*origin) or origin for origin in imported if origin[1] in free}
    return found | {origin for name in free if (origin := code_base.resolve(path, name))}


def _read_test_file(code_base: CodeBase, path: str, tests: dict[Origin, list[str]]) -> Iterator[RawRow]:
    """Add each test of a file to the function that it tests; yield a row for each that gives no problem."""
    try:
        tree = copy.deepcopy(code_base.module(path).tree)
        imports = code_base.inlined_imports(path, tree)
        extracted = split_test_module(imports.visit(tree))
    except (ValueError, RecursionError) as error:
        if "has no test function" not in str(error):
            yield _refused(path, 1, f"the file {error}")
        return
    for reason in extracted.left_out:
        yield _refused(path, 1, f"a test needs pytest: {reason}")
    for part in [part for test in extracted.tests for part in _split(test)]:
        found = list(_origins(code_base, path, part, imports.used))
        if not asserts(part):
            yield _refused(path, 1, f"a test asserts nothing: {part[:60]!r}")
        elif len(found) == 1 and code_base.resolve(*found[0]) and not TEST_FILE.search(found[0][0]):
            tests[found[0]].append(part)
        else:
            what = "several functions" if len(found) > 1 else "no function"
            described = ", ".join(sorted(name for _, name in found))
            yield _refused(path, 1, f"a test of {what}: {described} {part[:60]!r}")


def _split(test: str) -> list[str]:
    """Return the asserts of a test as tests of their own, if none depends on another; else the test."""
    body = parse(test).body
    match body[-2:]:
        case [ast.FunctionDef(name=name) as function, ast.Expr(ast.Call(ast.Name(called), []))] if (
            name == called and not function.args.args
        ):
            kinds = (ast.Return, ast.Yield, ast.Global, ast.Nonlocal)
            if not any(isinstance(node, kinds) for node in ast.walk(function)):
                body = [*body[:-2], *function.body]
    groups = group_by_assert(body)
    return ["\n".join(map(ast.unparse, group)) for group in groups] or [test]


@cache
def folder_licence(folder: Path) -> str:
    """Return the licence whose text is in a folder; "" if none is known there."""
    for path in sorted(folder.glob("*")):
        if LICENCE_FILE.fullmatch(path.name) and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace").lower()
            text = " ".join(text.replace(",", "").split())
            for words, name in LICENCES:
                if words in text:
                    return name
    return ""
