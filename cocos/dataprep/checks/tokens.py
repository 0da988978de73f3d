"""Words of a text, and tokens and syntax tree of a program, by which texts and programs are compared."""

import ast
import hashlib
import re
from functools import lru_cache

from cocos.dataprep.formats.source_edits import remove_docstrings
from cocos.files.python_parser import parse


def normalize_text(text: str) -> str:
    """Return a text without case, punctuation and extra spaces.

    Brackets and operators stay: they can be the only difference between two tasks.
    """
    return " ".join(text_words(text))


@lru_cache(8)  # the same row's text is compared in two ways
def text_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation; the list is shared."""
    return re.findall(r"\w+|[^\w\s.,;:!?'\"`]", text.lower())


@lru_cache(8)  # the same row's programs are compared in several ways
def shared_tree(source: str) -> ast.Module:
    """Return the syntax tree of a program, which nobody may change; raise as `parse` does."""
    return parse(source)


def code_tokens(code: str) -> list[str]:
    """Return a program's syntax tree without docstrings as tokens; none if it does not parse or is empty."""
    try:
        tree = remove_docstrings(parse(code))
        text = ast.dump(tree, annotate_fields=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return text.replace("(", " ( ").replace(")", " ) ").replace(",", " ").split() if tree.body else []


def digest(text: str) -> bytes:
    """Return an 8-byte digest. A collision among a million contents has a probability below 1e-7."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
