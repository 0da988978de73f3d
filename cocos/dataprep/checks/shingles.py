"""Words of a text and tokens of a program, and digests of their n-grams, which overlaps are searched by.

An n-gram's digest is a polynomial in the digests of its tokens, modulo 2^64, so that numpy computes those of
a whole text at once.
"""

import ast
import hashlib
import re
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cocos.python_parser import parse

Digests = npt.NDArray[np.uint64]
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no token of an n-gram is lost
# Nodes whose first statement may be a docstring.
_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


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
    parts: list[str] = []
    try:
        tree = shared_tree(code)
        _add_parts(tree, parts)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    text = "".join(parts)
    return text.replace("(", " ( ").replace(")", " ) ").replace(",", " ").split() if tree.body else []


def _add_parts(node: object, parts: list[str]) -> None:
    """Append the text of a node: its type, and its fields in brackets."""
    if isinstance(node, ast.AST):
        parts.append(f"{type(node).__name__}(")
        for name in node._fields:
            child: Any = getattr(node, name, None)
            if (
                name == "body"
                and isinstance(node, _DOCUMENTED)
                and ast.get_docstring(node, False) is not None
            ):
                child = child[1:] or [ast.Pass()]
            if child is not None:
                _add_parts(child, parts)
                parts.append(" ")
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _add_parts(item, parts)
            parts.append(" ")
        parts.append("]")
    else:
        parts.append(repr(node))


def digest(text: str) -> bytes:
    """Return an 8-byte digest. A collision among a million contents has a probability below 1e-7."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


@lru_cache(1 << 18)  # some 30 MB
def _token_digest(token: str) -> int:
    return int.from_bytes(digest(token))


def ngram_digests(tokens: list[str], n: int) -> Digests:
    """Return the digests of the n-grams in their order; none if there are fewer than n tokens."""
    digests = np.fromiter(map(_token_digest, tokens), np.uint64, len(tokens))
    count = max(0, len(tokens) - n + 1)
    result = np.zeros(count, np.uint64)
    for offset in range(n):
        result = result * MULTIPLIER + digests[offset : offset + count]
    return result
