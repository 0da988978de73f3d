"""Extraction of the program from a completion. Does not know how the completion was asked for or is run.

The program is what defines a name that the problem's tests call (`Problem.called_names`); without such names
it is what defines a function or a class. The rules, in order; the first that finds a program decides:

1. The answer ends at [DONE]; an echoed [BEGIN] or [CORRECT] is dropped.
2. An answer that parses and defines the program is the program.
3. Of the fenced Python blocks that parse, the last one that defines a called name, with the blocks that it
   needs: for names that it uses and called names that it lacks. Without such a block, the same for runs of
   lines outside fences, of which the first one counts: base models go on with a task of their own.
4. A thought (`<think>`, channels) is no answer, unless its tag stands inside the program found. An unfinished
   thought has no program.
5. A block is read as it stands if it parses. If not, these are dropped: the indentation or quote marks of
   its fence; prompts of an interactive session; terminal codes, special tokens, U+FEFF and other invisible
   characters outside strings and comments.
6. Of the program found, module-level lines that its tests do not need are left out, if they do more than
   define something: asserts, prints, calls, test suites (`cocos.program_slice`). So a program that
   contradicts its own assert is not wrong for that.
7. Otherwise the text is returned as it is, so that the verdict names its error: the last block with a
   definition, or the lines that parse. A text in which no line looks like code is no program.
"""

import ast
import builtins
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from cocos.code_blocks import (
    CODE_START,
    LOOKS_LIKE_CODE,
    Piece,
    blocks_of,
    is_cut_inside,
    line_forms,
    longest_run,
    runs_of,
)
from cocos.files.python_parser import tree_of
from cocos.program_slice import slice_of
from cocos.prompts import BEGIN, CORRECT, DONE

EXTRACTION_VERSION = 3  # of the rules above; results record it

# Where the program was found, or why there is none.
Source = Literal[
    "answer",  # the whole answer
    "block",  # one fenced block
    "blocks",  # several blocks that need each other
    "lines",  # lines outside fences
    "cleaned",  # a block or lines from which something was dropped
    "broken",  # a text that does not parse, or defines nothing that the tests call
    "no answer",
    "prose",
    "thought",  # the answer is a thought, finished or not
    "cut off",  # at the length limit, in training
]

NO_PROGRAM: tuple[Source, ...] = ("no answer", "prose", "thought", "cut off")


class Extraction(NamedTuple):
    """The program in a completion."""

    code: str  # "" if there is none
    source: Source | None = None  # None for a program that was not in the completion's text


def extract_code(completion: str, names: Collection[str] = (), used_names: Collection[str] = ()) -> str:
    """Return the program in a completion, or "" if there is none; see `extract`."""
    return extract(completion, names, used_names).code


def extract(
    completion: str, names: Collection[str] = (), used_names: Collection[str] = (), is_truncated: bool = False
) -> Extraction:
    """Find the program in a completion.

    Args:
        names: Names that the problem's tests call; empty if they are not known.
        used_names: All names that the tests use and do not define.
        is_truncated: The completion reached the length limit, and what is whole in it counts: an unfinished
            last statement is dropped, if what remains defines a called name.

    """
    text = _after_echo(completion.replace("\r\n", "\n").split(DONE)[0]).strip("\n").rstrip()
    if (tree := tree_of(text)) and _defines(tree, names):
        return Extraction(slice_of(text, names, used_names), "answer")
    found = _search(text, names, is_truncated)
    while (tag := _THOUGHT.search(text)) and not (found and tag[0] in found.code):
        text = _after_thought(text)
        if not text:
            return Extraction("", "thought")
        found = _search(text, names, is_truncated)
    if found:
        return found._replace(code=slice_of(found.code, names, used_names))
    code = _as_it_is(text)
    return Extraction(code, "broken" if code else "prose" if text else "no answer")


_MARKER = re.compile(f"{re.escape(BEGIN)}|{re.escape(CORRECT)}")


def _after_echo(text: str) -> str:
    """Return the text after echoed opening markers, or the text before a marker that follows a program."""
    while marker := _MARKER.search(text):
        if _DEFINITION.search(before := text[: marker.start()]):
            return before
        text = text[marker.end() :]
    return text


# -- thoughts --

_TAGS = "think|thinking|thought|reasoning"
_THOUGHT_END = re.compile(
    rf"</(?:{_TAGS})>|\[/THINK\]|◁/think▷|<\|channel\|>final<\|message\|>|\bassistantfinal", re.IGNORECASE
)
_THOUGHT = re.compile(
    rf"<(?:{_TAGS})>|\[THINK\]|◁think▷|<\|channel\|>analysis|{_THOUGHT_END.pattern}", re.IGNORECASE
)


def _after_thought(text: str) -> str:
    """Return what follows the first thought, or what precedes one that is not finished."""
    thought, *answer = _THOUGHT_END.split(text, maxsplit=1)
    return (answer or _THOUGHT.split(thought, maxsplit=1))[0].strip("\n").rstrip()


def split_thought(completion: str, code: str) -> tuple[str, str]:
    """Split a completion into its thought, "" if there is none, and the answer.

    Args:
        code: Program found in the completion. A tag that it contains is its own.

    """
    ends = [tag.end() for tag in _THOUGHT_END.finditer(completion) if tag[0] not in code]
    is_unfinished = not ends and not code and _THOUGHT.match(completion.lstrip())
    end = len(completion) if is_unfinished else max(ends, default=0)
    return completion[:end], completion[end:]


# -- definitions and uses --

_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)\s", re.MULTILINE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KNOWN = {*dir(builtins), "__name__", "__file__", "__doc__"}


def _bound(node: ast.AST, is_deep: bool = False) -> Iterator[str]:
    """Yield the names that a module binds; with `is_deep`, those that its functions bind, too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child.name
        elif isinstance(child, ast.alias):
            yield child.asname or child.name.partition(".")[0]
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif isinstance(child, ast.arg):
            yield child.arg
        elif isinstance(child, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and child.name:
            yield child.name
        if is_deep or not isinstance(child, (*_FUNCTIONS, ast.Lambda)):
            yield from _bound(child, is_deep)


def _defines(tree: ast.Module, names: Collection[str]) -> bool:
    if not names:  # perhaps the program is judged by what it prints
        reads = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree)}
        return any(isinstance(node, _FUNCTIONS) for node in tree.body) or bool(reads & {"input", "stdin"})
    return not set(names).isdisjoint(_bound(tree))


def _only_imports(tree: ast.Module, names: Collection[str]) -> bool:
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    others = [node for node in tree.body if node not in imports]
    return bool(names) and not _defines(ast.Module(others, []), names)


def _undefined(node: ast.AST, defined: Collection[str] = ()) -> set[str]:
    """Return the names that a program, or a statement of it, uses and does not define."""
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {*_bound(node, is_deep=True), *defined}
    return set() if "*" in bound else used - bound - _KNOWN


# -- search --


def _search(text: str, names: Collection[str], is_truncated: bool) -> Extraction | None:
    """Return the program that some blocks or lines of a text define; None if there is none."""
    blocks = blocks_of(text, is_truncated)
    defining = [i for i, block in enumerate(blocks) if _defines(block.tree, names)]
    # A block with tests may import the solution from a module that does not exist.
    if defining := [i for i in defining if not _only_imports(blocks[i].tree, names)] or defining:
        # Chat models often show an example or a draft first, so the last block counts.
        return _assemble(blocks, defining[-1], names, "block")
    for form in line_forms(text):
        runs = list(runs_of(form, is_truncated))
        if defining := [i for i, run in enumerate(runs) if _defines(run.tree, names)]:
            if form != text:
                runs = [run._replace(is_cleaned=True) for run in runs]
            return _assemble(runs, defining[0], names, "lines")
    return None


def _assemble(pieces: Sequence[Piece], index: int, names: Collection[str], source: Source) -> Extraction:
    """Return the program of a piece and of the other pieces that it needs, in the order of the text."""
    chosen = {index}
    others = [*range(index - 1, -1, -1), *range(index + 1, len(pieces))]  # the nearest earlier one first
    while True:
        defined = {name for i in chosen for name in _bound(pieces[i].tree)}
        needed = {name for i in chosen for name in _undefined(pieces[i].tree, defined)} | {*names} - defined
        for i in others:
            bound = set(_bound(pieces[i].tree))
            # A later piece must not replace what is defined: it may be another version of the program.
            if i not in chosen and bound & needed and (i < index or bound.isdisjoint(defined)):
                chosen.add(i)
                break
        else:
            break
    parts = [pieces[i] for i in sorted(chosen)]
    if any(part.is_cleaned for part in parts):
        source = "cleaned"
    elif source == "block" and len(parts) > 1:
        source = "blocks"
    return Extraction("\n\n".join(part.code for part in parts), source)


# -- a text without a program that parses --


def _as_it_is(text: str) -> str:
    """Return the code in a text that defines nothing that is called; "" if no line looks like code."""
    blocks = re.findall(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", text, re.DOTALL | re.MULTILINE)
    if tree_of(text):
        return text
    if defining := [block for block in blocks if _DEFINITION.search(block)]:
        text = defining[-1]
    elif blocks and not _DEFINITION.search(text):  # otherwise a lone closing fence follows bare code
        text = blocks[0]
    text = text.strip("\n").rstrip()
    if tree_of(text):
        return text
    return _without_prose(text) if LOOKS_LIKE_CODE.search(text) else ""


def _without_prose(text: str) -> str:
    """Return the longest run of lines that parses; the whole text if it is a fragment of a broken program."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if CODE_START.match(line) and (run := longest_run(lines[start:])):
            rest, code = lines[start + len(run) :], "\n".join(run)
            lacks_its_definition = not _DEFINITION.search(code) and any(map(_DEFINITION.match, rest))
            return text if is_cut_inside(rest) or lacks_its_definition else code.rstrip()
    return text
