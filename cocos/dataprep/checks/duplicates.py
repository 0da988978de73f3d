"""Search for problems that occur twice: within a split, across splits, or in a benchmark.

Exact duplicates have the same words, ignoring case and punctuation, or the same syntax tree, ignoring layout,
comments and docstrings. For near duplicates, the Jaccard similarity of their word 3-grams, or of the 5-grams
of their code's syntax tree, reaches a threshold. MinHash (Broder 1997) with locality-sensitive hashing
proposes pairs, as Lee et al. (arXiv 2107.06499) do for training text. The exact similarity of a proposed pair
decides.
"""

import ast
import hashlib
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cocos.dataprep.formats.source_edits import remove_docstrings
from cocos.problems import Problem
from cocos.python_parser import parse

# The option --drop accepts these names, except test_left_out.
FINDING_KINDS = {
    "malformed": "the row cannot be read as a problem",
    "test_left_out": "a test needs pytest, passes for any program, or is too large; the row keeps the others",
    "failing": "the reference does not pass the tests",
    "flaky": "the reference passes under one random seed and fails under another",
    "slow": "the reference takes long",
    "in_child": "only the program's own process can judge a test, so training does not reward it",
    "untested": "no test asserts anything when it runs",
    "constant": "a function that always returns one constant passes every test",
    "duplicate": "the same text or code occurs earlier in the split",
    "leak": "the same text or code occurs in another split",
    "contaminated": "the same text or code occurs in a named benchmark",
    "shared_text": "eight words in a row of the text occur in the text of a named benchmark",
    "shared_name": "a function of a named benchmark has the name of the function under test",
    "shared_assert": "an assert occurs in a named benchmark",
    "near_duplicate": "nearly the same text or code occurs earlier in the split",
    "near_leak": "nearly the same text or code occurs in another split",
    "near_contaminated": "nearly the same text or code occurs in a named benchmark",
}


@dataclass(frozen=True)
class Finding:
    """Finding about a row."""

    kind: str  # one of `FINDING_KINDS`
    split: str  # split of the row
    task_id: str  # id of the row within the split
    detail: str  # description; it is the same in every run
    other: str = ""  # `split/task_id` of the row that this row repeats, or ""


# Of two equal rows, the one whose split comes first here is kept: test sets must stay as they were published.
PRECEDENCE = ("test", "validation", "prompt", "train")
TEXT_NGRAM = 3
CODE_NGRAM = 5
MIN_NGRAMS = 4  # shorter texts and programs are similar by chance
SIMILARITY = 0.8  # Jaccard similarity from which two texts or programs are near duplicates
# 128 hash functions (datasketch's default) estimate a similarity with a standard error below
# 0.5 / sqrt(128) = 0.044. LSH searches 0.1 below the threshold, so that it rarely misses a pair.
NUM_HASHES = 128
LSH_MARGIN = 0.1


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
        self._ngrams: dict[str, dict[int, array]] = {"text": {}, "code": {}}  # field -> number -> digests
        self._content: dict[tuple[str, int], bytes] = {}  # (field, number) -> digest of the whole content

    def add(self, split: str, problem: Problem, is_benchmark: bool = False) -> None:
        """Add a problem; if it is in a benchmark, `split` is the benchmark's name."""
        position = PRECEDENCE.index(split) if split in PRECEDENCE else len(PRECEDENCE)
        rank = 0 if is_benchmark else 1 + position
        member = _Member(rank, len(self._members), split, problem.task_id)
        self._members.append(member)
        text, code = normalize_text(problem.text), normalize_code(problem.code)
        for field, tokens, n in (("text", text.split(), TEXT_NGRAM), ("code", code.split(), CODE_NGRAM)):
            if tokens:
                content = self._content[field, member.number] = digest(" ".join(tokens))
                self._by_content[field, content].append(member)
            ngrams = sorted({digest(" ".join(tokens[i : i + n])) for i in range(len(tokens) - n + 1)})
            if len(ngrams) >= MIN_NGRAMS:
                self._ngrams[field][member.number] = array("Q", b"".join(ngrams))

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
        from datasketch import MinHash, MinHashLSH  # imports scipy, which takes most of a second

        for field, ngrams in self._ngrams.items():
            lsh = MinHashLSH(threshold=max(0.1, self.similarity - LSH_MARGIN), num_perm=NUM_HASHES)
            # The n-grams are 64-bit digests already, so that MinHash need not hash them again. Its copies
            # share the permutations.
            empty = MinHash(num_perm=NUM_HASHES, hashfunc=int, scheme="affine64")
            for number in sorted(ngrams, key=lambda n: self._members[n]):
                minhash = empty.copy()
                minhash.update_batch(ngrams[number])
                own, found = set(ngrams[number]), []
                for other in lsh.query(minhash):  # many: programs of one kind are alike
                    num_other = len(ngrams[other])
                    if min(len(own), num_other) < self.similarity * max(len(own), num_other):
                        continue
                    num_common = len(own.intersection(ngrams[other]))
                    similarity = num_common / (len(own) + num_other - num_common)
                    if similarity >= self.similarity and not self._is_exact(number, other):
                        found.append((self._members[other], similarity))
                for member, similarity in sorted(found):
                    yield _Pair(field, True, member, self._members[number], similarity)
                lsh.insert(number, minhash)

    def _is_exact(self, number: int, other: int) -> bool:
        """Return whether two problems have the same text or the same code."""
        return any(
            (field, number) in self._content
            and self._content[field, number] == self._content.get((field, other))
            for field in ("text", "code")
        )


def normalize_text(text: str) -> str:
    """Return a text without case, punctuation and extra spaces.

    Brackets and operators stay: they can be the only difference between two tasks.
    """
    return " ".join(re.findall(r"\w+|[^\w\s.,;:!?'\"`]", text.lower()))


def normalize_code(code: str) -> str:
    """Return a program's syntax tree, without docstrings, as tokens; "" if it is empty or does not parse."""
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    dump = ast.dump(remove_docstrings(tree), annotate_fields=False)
    return dump.replace("(", " ( ").replace(")", " ) ").replace(",", " ") if tree.body else ""


def digest(text: str) -> bytes:
    """Return an 8-byte digest. A collision among a million contents has a probability below 1e-7."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
