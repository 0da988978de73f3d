"""Search for problems that occur twice: within a split, across splits, or in a benchmark.

Exact duplicates have the same words, ignoring case and punctuation, or the same syntax tree, ignoring layout,
comments and docstrings. For near duplicates, the Jaccard similarity of their word 3-grams, or of the 5-grams
of their code's syntax tree, reaches a threshold.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocos.dataprep.checks.findings import Finding
from cocos.dataprep.checks.ngrams import Halves, earlier_candidates, ngram_digests
from cocos.dataprep.checks.tokens import code_tokens, digest, text_words
from cocos.problems import Problem

# Of two equal rows, the one whose split comes first here is kept: test sets must stay as they were published.
PRECEDENCE = ("test", "validation", "prompt", "train")
TEXT_NGRAM = 3
CODE_NGRAM = 5
MIN_NGRAMS = 4  # shorter texts and programs are similar by chance
SIMILARITY = 0.8  # Jaccard similarity from which two texts or programs are near duplicates


class _Member(NamedTuple):
    """Problem in the index. The smaller of two duplicates is the one to keep."""

    rank: int  # 0: of a benchmark; else 1 + position in PRECEDENCE
    number: int  # order of insertion
    split: str
    task_id: str

    @property
    def name(self) -> str:
        """The problem as findings name it."""
        return f"{self.split}/{self.task_id}"


class _Pair(NamedTuple):
    """Two problems with the same, or nearly the same, text or code."""

    field: str  # "text" or "code"
    is_near: bool
    first: _Member
    second: _Member
    similarity: float


class DuplicateIndex:
    """Index of problems by their text and code, at about 3 KB per problem.

    Args:
        similarity: Jaccard similarity from which two texts or programs are near duplicates, in (0, 1].

    """

    def __init__(self, similarity: float = SIMILARITY) -> None:
        self.similarity = similarity
        self._members: list[_Member] = []
        self._by_content: dict[tuple[str, bytes], list[_Member]] = defaultdict(list)
        self._ngrams: dict[str, dict[int, Halves]] = {"text": {}, "code": {}}  # field -> number -> n-grams
        self._content: dict[tuple[str, int], bytes] = {}  # (field, number) -> digest of the whole content

    def add(self, split: str, problem: Problem, is_benchmark: bool = False) -> None:
        """Add a problem; if it is in a benchmark, `split` is the benchmark's name."""
        position = PRECEDENCE.index(split) if split in PRECEDENCE else len(PRECEDENCE)
        rank = 0 if is_benchmark else 1 + position
        member = _Member(rank, len(self._members), split, problem.task_id)
        self._members.append(member)
        words, tokens = text_words(problem.text), code_tokens(problem.code)
        for field, parts, n in (("text", words, TEXT_NGRAM), ("code", tokens, CODE_NGRAM)):
            if parts:
                content = self._content[field, member.number] = digest(" ".join(parts))
                self._by_content[field, content].append(member)
            # Halves suffice: among the n-grams of two problems, equal ones by chance are one in 10^4 pairs.
            ngrams = np.unique((ngram_digests(parts, n) >> np.uint64(32)).astype(np.uint32))
            if len(ngrams) >= MIN_NGRAMS:
                self._ngrams[field][member.number] = ngrams

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each row that repeats a row of higher precedence, in the order of the rows."""
        grouped: dict[tuple[int, str], tuple[_Member, _Member, list[str]]] = {}
        for pair in [*self._exact_pairs(), *self._near_pairs()]:
            kept, repeated = sorted((pair.first, pair.second))
            if repeated.rank == 0:
                continue  # both are in benchmarks, which are never changed
            kind = (
                "contaminated" if kept.rank == 0 else "duplicate" if kept.split == repeated.split else "leak"
            )
            key = repeated.number, f"near_{kind}" if pair.is_near else kind
            first_kept, _, details = grouped.setdefault(key, (kept, repeated, []))
            if first_kept == kept:
                similarity = f"{pair.field} {pair.similarity:.0%} alike"
                details.append(similarity if pair.is_near else f"same {pair.field}")
        for (_, kind), (kept, repeated, details) in sorted(grouped.items()):
            detail = ", ".join(sorted(details, reverse=True))  # text before code
            yield Finding(kind, repeated.split, repeated.task_id, detail, kept.name)

    def _exact_pairs(self) -> Iterator[_Pair]:
        """Yield each row with the first benchmark row, and the first other row, of the same content."""
        for (field, _), members in self._by_content.items():
            benchmarks = sorted(member for member in members if member.rank == 0)
            rows = sorted(member for member in members if member.rank > 0)
            for kept in (benchmarks[:1], rows[:1]):
                for member in rows:
                    if kept and member != kept[0]:
                        yield _Pair(field, False, kept[0], member, 1.0)

    def _near_pairs(self) -> Iterator[_Pair]:
        for field, ngrams in self._ngrams.items():
            numbers = sorted(ngrams, key=lambda n: self._members[n])
            candidates = earlier_candidates([ngrams[number] for number in numbers], self.similarity)
            for number, earlier in zip(numbers, candidates, strict=True):
                for other in (numbers[index] for index in earlier):
                    similarity = _jaccard(ngrams[number], ngrams[other])
                    if similarity >= self.similarity and not self._is_exact(number, other):
                        yield _Pair(field, True, self._members[other], self._members[number], similarity)

    def _is_exact(self, number: int, other: int) -> bool:
        """Return whether two problems have the same text or the same code."""
        return any(
            (field, number) in self._content
            and self._content[field, number] == self._content.get((field, other))
            for field in ("text", "code")
        )


def _jaccard(first: Halves, second: Halves) -> float:
    """Return the Jaccard similarity of two sets of n-grams, each without repetition."""
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)
