"""Extraction of the program from a completion. Does not know how the completion was asked for or is run.

The program is what defines a name that the problem's tests call (`Problem.called_names`); without such names
it is what defines a function or a class. The rules, in order; the first that finds a program decides:

1. The answer ends at [DONE]; an echoed [BEGIN] or [CORRECT] is dropped.
2. An answer that parses and defines the program is taken as it stands.
3. Of the fenced Python blocks that parse, the last one that defines a called name, with the blocks that it
   needs: for names that it uses and called names that it lacks. Without such a block, the same for runs of
   lines outside fences, of which the first one counts: base models go on with a task of their own.
4. A thought (`<think>`, channels) is no answer, unless its tag stands inside the program found. An unfinished
   thought has no program.
5. A block is read as it stands if it parses. If not, these are dropped: the indentation or quote marks of
   its fence; prompts of an interactive session; terminal codes, special tokens, U+FEFF and other invisible
   characters outside strings and comments.
6. Of a block or of lines, the end that is certain to fail is left out: module-level lines after the
   definitions from the first one that reads input, or uses a name that nothing defines. Everything else
   stays, an assert too: a program that contradicts its own assert is wrong.
7. Otherwise the text is returned as it is, so that the verdict names its error: the last block with a
   definition, or the lines that parse. A text in which no line looks like code is no program.
"""

import ast
import builtins
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from cocos.files.python_parser import parse
from cocos.prompts import BEGIN, CORRECT, DONE

EXTRACTION_VERSION = 2  # of the rules above; results record it

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


class _Piece(NamedTuple):
    """A block, or a run of lines, that parses."""

    code: str
    tree: ast.Module
    is_cleaned: bool


def extract_code(completion: str, names: Collection[str] = ()) -> str:
    """Return the program in a completion, or "" if there is none; see `extract`."""
    return extract(completion, names).code


def extract(completion: str, names: Collection[str] = (), is_cut_off: bool = False) -> Extraction:
    """Find the program in a completion.

    Args:
        names: Names that the problem's tests call; empty if they are not known.
        is_cut_off: The completion reached the length limit, and what is whole in it counts: an unfinished
            last statement is dropped, if what remains defines a called name.

    """
    text = _after_echo(completion.replace("\r\n", "\n").split(DONE)[0]).strip("\n").rstrip()
    if (tree := _tree(text)) and _defines(tree, names):
        return Extraction(text, "answer")
    found = _search(text, names, is_cut_off)
    while (tag := _THOUGHT.search(text)) and not (found and tag[0] in found.code):
        text = _after_thought(text)
        if not text:
            return Extraction("", "thought")
        found = _search(text, names, is_cut_off)
    if found:
        return Extraction(_without_failing_end(found.code, names), found.source)
    code = _as_it_is(text)
    return Extraction(code, "broken" if code else "prose" if text else "no answer")


def _after_echo(text: str) -> str:
    """Return the text after an echoed opening marker, or the text before a marker that follows a program."""
    for marker in (BEGIN, CORRECT):
        before, found, after = text.partition(marker)
        if found:
            text = before if _DEFINITION.search(before) else _after_echo(after)
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


# -- definitions and uses --

_DEFINITION = re.compile(r"^[ \t]*(?:async def|def|class)\s", re.MULTILINE)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KNOWN = {*dir(builtins), "__name__", "__file__", "__doc__"}


def _tree(text: str) -> ast.Module | None:
    try:
        return parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _bound(node: ast.AST, is_deep: bool = False) -> Iterator[str]:
    """Yield the names that a module binds; with `is_deep`, those that its functions bind, too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child.name
        elif isinstance(child, ast.alias):
            yield child.asname or child.name.partition(".")[0]
        elif isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            yield child.id
        elif isinstance(child, ast.arg):
            yield child.arg
        elif isinstance(child, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and child.name:
            yield child.name
        if is_deep or not isinstance(child, (*_FUNCTIONS, ast.Lambda)):
            yield from _bound(child, is_deep)


def _defines(tree: ast.Module, names: Collection[str]) -> bool:
    if not names:
        return any(isinstance(node, _FUNCTIONS) for node in tree.body)
    return not set(names).isdisjoint(_bound(tree))


def _undefined(node: ast.AST, defined: Collection[str] = ()) -> set[str]:
    """Return the names that a program, or a statement of it, uses and does not define."""
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    bound = {*_bound(node, is_deep=True), *defined}
    return set() if "*" in bound else used - bound - _KNOWN


# -- search --


def _search(text: str, names: Collection[str], is_cut_off: bool) -> Extraction | None:
    """Return the program that some blocks or lines of a text define; None if there is none."""
    blocks = list(_blocks(text, is_cut_off))
    if defining := [i for i, block in enumerate(blocks) if _defines(block.tree, names)]:
        # Chat models often show an example or a draft first, so the last block counts.
        return _assemble(blocks, defining[-1], names, "block")
    for form in (text, _without_quotes(text), _visible(text), _without_prompts(text)):
        runs = list(_runs(form, is_cut_off))
        if defining := [i for i, run in enumerate(runs) if _defines(run.tree, names)]:
            if form != text:
                runs = [run._replace(is_cleaned=True) for run in runs]
            return _assemble(runs, defining[0], names, "lines")
    return None


def _assemble(pieces: Sequence[_Piece], index: int, names: Collection[str], source: Source) -> Extraction:
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


# A fence opens after quote marks, list marks or a few words. Its language and code may share its line.
_OPENING = re.compile(r"^(?P<before>.*?)(?:`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)(?P<code>.*)$")
_CONTAINER = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?")
_CLOSING_LINE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})")
_TRIPLE_QUOTE = re.compile("\"\"\"|'''")
MAX_FENCES = 8  # in one string of a program; answers that repeat themselves have hundreds
_CLOSING_END = re.compile(r"^(?P<code>.*?\S)[ \t]*(?:`{3,}|~{3,})[ \t]*$")


def _blocks(text: str, is_cut_off: bool) -> list[_Piece]:
    """Return the fenced Python blocks that parse. The last closing fence may be missing."""
    lines, blocks, i = text.split("\n"), list[_Piece](), 0
    while i < len(lines):
        opening = _OPENING.match(lines[i])
        i += 1
        if opening is None or not (_CONTAINER.fullmatch(opening["before"]) or opening["language"]):
            continue
        ends, piece = _ends(lines, i), None
        end, content = ends[0]
        if not opening["language"] or "py" in opening["language"].lower():
            container = _CONTAINER.match(opening["before"])[0]  # type: ignore[index]
            for possible in (ends, _odd_ends(lines, i, opening["code"])):
                if piece is None and (found := _first_that_parses([c for _, c in possible], container)):
                    piece, (end, content) = found[0], possible[found[1]]
        if end == len(lines) and not _CLOSING_LINE.match(lines[-1]):
            if piece is None and is_cut_off:
                piece = _whole_statements(content)
            if piece and any(block.code.startswith(piece.code) for block in blocks):
                piece = None  # a repetition that is cut off
        if piece:
            blocks.append(piece)
        # A closing fence with a language opens the next block: its own is missing.
        has_language = re.match(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\w", lines[end - 1])
        i = end - 1 if end > i and has_language else end
    return blocks


def _ends(lines: Sequence[str], start: int) -> list[tuple[int, Sequence[str]]]:
    """Return the possible ends of a block, and its lines up to them.

    A fence in a docstring does not close a block: what is before it does not parse.

    Args:
        start: Number of the line after the opening fence.

    """
    closings = [k for k in range(start, len(lines)) if _CLOSING_LINE.match(lines[k])][:MAX_FENCES]
    if closings and not _TRIPLE_QUOTE.search("\n".join(lines[start : closings[0]])):
        del closings[1:]
    if lines[start : start + 1] and lines[start].strip().lower() in ("python", "python3", "py"):
        start += 1  # the language stands on a line of its own
    return [*((k + 1, lines[start:k]) for k in closings), (len(lines), lines[start:])]


def _odd_ends(lines: Sequence[str], start: int, code: str) -> list[tuple[int, Sequence[str]]]:
    """Return the ends of a block whose fences share a line with code; `code` follows the opening fence."""
    if closing := _CLOSING_END.match(code):
        return [(start, [closing["code"].strip()])]
    ends = [
        (k + 1, [*lines[start:k], closing["code"]])
        for k in range(start, len(lines))
        if (closing := _CLOSING_END.match(lines[k]))
    ]
    end, content = _ends(lines, start)[0]
    return [*ends[:MAX_FENCES], (end, [code.strip(), *content])]


def _first_that_parses(contents: Sequence[Sequence[str]], container: str) -> tuple[_Piece, int] | None:
    """Return the block in the first form in which one of its possible contents parses, and which one."""
    for number, forms in enumerate(zip(*(_forms(lines, container) for lines in contents), strict=True)):
        for index, form in enumerate(forms):
            if (tree := _tree(form)) and tree.body:
                return _Piece(form.strip("\n").rstrip(), tree, is_cleaned=number > 0), index
    return None


_PROMPT = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")
_LITERAL = r"'''(?s:.)*?'''|\"\"\"(?s:.)*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*"
_INVISIBLE = re.compile(
    rf"(?P<literal>{_LITERAL})|(?P<blank>[\u00a0\u2000-\u200a\u202f\u3000])|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|<\|[^|<>\s]*\|>|<｜[^｜<>]*｜>|</?s>|<eos>|<(?:start|end)_of_turn>|[\0\u00ad\u200b-\u200f\u2060\ufeff]"
)


def _forms(lines: Sequence[str], container: str) -> Iterator[str]:
    """Yield a block as it stands, and then without what answers add to programs.

    Args:
        container: What precedes the opening fence: quote marks, a list mark, indentation.

    """
    text = "\n".join(lines)
    yield text
    text = _without_quotes(text) if ">" in container else text
    indent = len(container.rpartition(">")[2])
    text = "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))
    yield text
    for form in (text, _without_prompts(text)):
        yield textwrap.dedent(form)
        yield textwrap.dedent(_visible(form)).strip("\n")


def _without_quotes(text: str) -> str:
    return re.sub(r"^[ \t]*> ?", "", text, flags=re.MULTILINE)


def _without_prompts(text: str) -> str:
    """Return the input of an interactive session; a text without prompts stays as it is."""
    lines = [line.lstrip() for line in text.split("\n")]
    return "\n".join(line[4:] for line in lines if _PROMPT.match(line)) if ">>>" in text else text


def _visible(text: str) -> str:
    """Return a text without terminal codes, special tokens and invisible characters outside strings."""
    return _INVISIBLE.sub(lambda found: found["literal"] or (" " if found["blank"] else ""), text)


# Lines with which bare code starts; prose rarely starts a line like this.
_CODE_START = re.compile(
    r"^(?:def |class |import |from |@|async def |if |for |while |try:|with |\w[\w., ]* ?=)"
)
# A line of a program that does not parse may also be indented, or end a block.
_LOOKS_LIKE_CODE = re.compile(
    rf"^\s*(?:{_CODE_START.pattern[1:]}|return\b|yield\b|print\b|else:|elif |except\b)", re.MULTILINE
)


def _runs(text: str, is_cut_off: bool) -> Iterator[_Piece]:
    """Yield the longest runs of lines that parse, dedented, each from a line that looks like code.

    A run that continues with an indented line is a part of a broken program: executing it would hide the
    error.
    """
    lines, i = text.split("\n"), 0
    while i < len(lines):
        start, i = i, i + 1
        indent = len(lines[start]) - len(lines[start].lstrip(" \t"))
        if not _CODE_START.match(lines[start][indent:]):
            continue
        before = "\n".join(lines[:start]).rstrip().rpartition("\n")[2]
        is_inside = before[:indent].isspace() or _LOOKS_LIKE_CODE.match(before)
        if indent and (not before or is_inside):
            continue  # inside a program that does not parse
        dedented = [line.lstrip() if line[:indent].strip() else line[indent:] for line in lines[start:]]
        if not (run := _longest_run(dedented)):
            continue
        i = start + len(run)
        code = "\n".join(run)
        if not _is_cut_inside(dedented[len(run) :]) and (tree := _tree(code)):
            yield _Piece(code.rstrip(), tree, is_cleaned=indent > 0)
        elif is_cut_off and (piece := _whole_statements(run)):
            yield piece


def _longest_run(lines: Sequence[str]) -> Sequence[str]:
    """Return the longest beginning of the lines that parses; [] if none does."""
    end = len(lines)
    while end > 0:
        try:
            parse("\n".join(lines[:end]))
        except SyntaxError as error:
            # Everything that contains the line of the error fails like this; f-strings count their own lines.
            line = error.lineno or end
            end = end - 1 if "f-string" in str(error.msg) else min(end, line) - 1
        except (ValueError, MemoryError, RecursionError):
            end -= 1
        else:
            return lines[:end]
    return []


def _is_cut_inside(rest: Sequence[str]) -> bool:
    """Return whether the lines after a run belong to a body that does not parse: they are indented."""
    return next((line for line in rest if line.strip()), "")[:1] in (" ", "\t")


def _whole_statements(lines: Sequence[str]) -> _Piece | None:
    """Return the lines before the last module-level statement, which is not finished."""
    for end in range(len(lines) - 1, 0, -1):
        begins_statement = lines[end][:1].strip() and not re.match(
            r"(?:else|elif|except|finally)\b", lines[end]
        )
        code = "\n".join(lines[:end]).strip("\n").rstrip()
        if begins_statement and (tree := _tree(code)) and tree.body:
            return _Piece(code, tree, is_cleaned=False)
    return None


# -- the end of a program --


def _without_failing_end(code: str, names: Collection[str]) -> str:
    """Return the program without the module-level lines at its end that are certain to fail (rule 6)."""
    tree = parse(code)
    statements = tree.body
    first = 1 + max(
        i
        for i, node in enumerate(statements)
        if isinstance(node, (*_FUNCTIONS, ast.Import, ast.ImportFrom))
        or not {*names}.isdisjoint(_bound(ast.Module([node], [])))
    )
    defined = {*_bound(tree, is_deep=True)}
    for i, node in enumerate(statements[first:], start=first):
        if _reads_input(node) or _undefined(node, defined):
            left_out = {name for later in statements[i:] for name in _bound(ast.Module([later], []))}
            kept = ast.Module(statements[:i], [])
            if left_out & _undefined(kept) or node.col_offset:
                return code  # functions use a name that these lines define
            return "\n".join(code.split("\n")[: node.lineno - 1]).rstrip()
    return code


def _reads_input(node: ast.stmt) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id == "input") or (isinstance(n, ast.Attribute) and n.attr == "stdin")
        for n in ast.walk(node)
    )


# -- a text without a program that parses --


def _as_it_is(text: str) -> str:
    """Return the code in a text that defines nothing that is called; "" if no line looks like code."""
    blocks = re.findall(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", text, re.DOTALL | re.MULTILINE)
    if _tree(text):
        return text
    if defining := [block for block in blocks if _DEFINITION.search(block)]:
        text = defining[-1]
    elif blocks and not _DEFINITION.search(text):  # otherwise a lone closing fence follows bare code
        text = blocks[0]
    text = text.strip("\n").rstrip()
    if _tree(text):
        return text
    return _without_prose(text) if _LOOKS_LIKE_CODE.search(text) else ""


def _without_prose(text: str) -> str:
    """Return the longest run of lines that parses; the whole text if it is a fragment of a broken program."""
    lines = text.split("\n")
    for start, line in enumerate(lines):
        if _CODE_START.match(line) and (run := _longest_run(lines[start:])):
            rest, code = lines[start + len(run) :], "\n".join(run)
            lacks_its_definition = not _DEFINITION.search(code) and any(map(_DEFINITION.match, rest))
            return text if _is_cut_inside(rest) or lacks_its_definition else code.rstrip()
    return text
