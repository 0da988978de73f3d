"""Overlap of problems among themselves and with benchmarks.

Besides duplicates it finds what a problem shares with a benchmark although text and code differ: eight words
in a row of the text, the name of the function under test, or an assert. This is conservative: names and
phrases that everybody uses are found, too.
"""

import ast
from collections.abc import Iterable, Iterator

from cocos.dataprep.checks.duplicates import DuplicateIndex, Finding, digest, normalize_text
from cocos.dataprep.checks.reference_checks import functions_under_test
from cocos.problems import Problem
from cocos.python_parser import parse

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
        self._ngrams: dict[bytes, str] = {}
        self._names: dict[str, str] = {}
        self._asserts: dict[bytes, str] = {}

    def add(self, name: str, problem: Problem) -> None:
        """Add a problem of the benchmark of this name."""
        task = f"{name}/{problem.task_id}"
        for ngram in _ngrams(problem):
            self._ngrams.setdefault(digest(ngram), task)
        for function in functions_under_test(problem):
            self._names.setdefault(function, task)
        for test in _asserts(problem):
            self._asserts.setdefault(digest(test), task)

    def findings(self, split: str, problem: Problem) -> Iterator[Finding]:
        """Yield at most one finding of each kind about a problem."""
        if self._ngrams and (found := next((n for n in _ngrams(problem) if digest(n) in self._ngrams), None)):
            yield Finding("shared_text", split, problem.task_id, found, self._ngrams[digest(found)])
        names = functions_under_test(problem) & self._names.keys() if self._names else ()
        if names:
            yield Finding("shared_name", split, problem.task_id, min(names), self._names[min(names)])
        if self._asserts and (
            found := next((test for test in _asserts(problem) if digest(test) in self._asserts), None)
        ):
            yield Finding("shared_assert", split, problem.task_id, found[:300], self._asserts[digest(found)])


def _ngrams(problem: Problem) -> Iterator[str]:
    words = normalize_text(problem.text).split()
    for start in range(len(words) - TEXT_WORDS + 1):
        yield " ".join(words[start : start + TEXT_WORDS])


def _asserts(problem: Problem) -> Iterator[str]:
    """Yield the asserts of a problem's tests in one layout."""
    for test in (*problem.scored_tests, *problem.challenge_test_list):
        for node in ast.walk(parse(test)):
            if isinstance(node, ast.Assert):
                yield ast.unparse(ast.Assert(node.test))
