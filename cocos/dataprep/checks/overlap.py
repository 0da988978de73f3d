"""Overlap of problems among themselves and with benchmarks.

Besides duplicates it finds what a problem shares with a benchmark although text and code differ: eight words
in a row of the text, the name of the function under test, or an assert. This is conservative: names and
phrases that everybody uses are found, too.
"""

import ast
from collections.abc import Iterable, Iterator

from cocos.dataprep.checks.duplicates import DuplicateIndex
from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.checks.ngrams import ngram_digests
from cocos.dataprep.checks.reference_checks import functions_under_test
from cocos.dataprep.checks.tokens import digest, shared_tree, text_words
from cocos.problems import Problem

TEXT_WORDS = 8


def find_overlap(
    problems: Iterable[tuple[str, Problem]],
    benchmarks: Iterable[tuple[str, Problem]],
    index: DuplicateIndex | None = None,
) -> Iterator[Finding]:
    """Yield what problems share with benchmarks, problem by problem, and then the duplicates.

    Args:
        problems: (split, problem) pairs; they are read once.
        benchmarks: (name, problem) pairs.
        index: An empty index; None for one with the usual similarity.

    """
    contents, index = BenchmarkContents(), index or DuplicateIndex()
    for name, problem in benchmarks:
        index.add(name, problem, is_benchmark=True)
        contents.add(name, problem)
    for split, problem in problems:
        index.add(split, problem)
        yield from contents.findings(split, problem)
    yield from index.findings()


class BenchmarkContents:
    """Index of the texts, function names and asserts of benchmarks, each with its first problem."""

    def __init__(self) -> None:
        self._ngrams: dict[int, str] = {}
        self._names: dict[str, str] = {}
        self._asserts: dict[bytes, str] = {}

    def add(self, name: str, problem: Problem) -> None:
        """Add a problem of the benchmark of this name."""
        task = f"{name}/{problem.task_id}"
        for ngram in ngram_digests(text_words(problem.text), TEXT_WORDS).tolist():
            self._ngrams.setdefault(ngram, task)
        for function in functions_under_test(problem):
            self._names.setdefault(function, task)
        for test in _asserts(problem):
            self._asserts.setdefault(_assert_digest(test), task)

    def findings(self, split: str, problem: Problem) -> Iterator[Finding]:
        """Yield at most one finding of each kind about a problem."""
        if not self._names and not self._ngrams:
            return  # without benchmarks
        words = text_words(problem.text)
        for start, ngram in enumerate(ngram_digests(words, TEXT_WORDS).tolist()):
            if ngram in self._ngrams:
                found = " ".join(words[start : start + TEXT_WORDS])
                yield Finding("shared_text", split, problem.task_id, found, self._ngrams[ngram])
                break
        if names := functions_under_test(problem) & self._names.keys():
            yield Finding("shared_name", split, problem.task_id, min(names), self._names[min(names)])
        for test in _asserts(problem):
            if task := self._asserts.get(_assert_digest(test)):
                layout = ast.unparse(ast.Assert(test.test))[:300]
                yield Finding("shared_assert", split, problem.task_id, layout, task)
                break


def _asserts(problem: Problem) -> Iterator[ast.Assert]:
    """Yield the asserts of a problem's tests."""
    for test in (*problem.scored_tests, *problem.challenge_test_list):
        for node in ast.walk(shared_tree(test)):
            if isinstance(node, ast.Assert):
                yield node


def _assert_digest(node: ast.Assert) -> bytes:
    """Return the digest of what an assert tests, whatever its layout and its message."""
    return digest(ast.dump(node.test, annotate_fields=False))
