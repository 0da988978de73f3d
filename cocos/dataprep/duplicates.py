"""The same problem twice: within a split, across splits, or in a benchmark that the set must not know.

Exact means the same words (case and punctuation aside) or the same syntax tree (layout, comments and
docstrings aside); near means that the sets of word 3-grams, or of code token 5-grams, share at least the
asked-for part (Jaccard). MinHash (datasketch) finds the candidates, the sets themselves decide.
"""

import ast
import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from datasketch import MinHash, MinHashLSH

from cocos.dataprep.checks import Finding
from cocos.dataprep.splits import plain
from cocos.problems import Problem
from cocos.syntax import parse

PRECEDENCE = (
    "test",
    "validation",
    "prompt",
    "train",
)  # of two rows alike, the one in the earlier split is kept
NUM_PERM = 128
LOOSER = 0.1  # MinHash looks this much below the asked-for similarity, so that its error loses nothing
SHORTEST = 4  # n-grams: below that, likeness says nothing


class _Member(NamedTuple):
    rank: int  # 0: a benchmark's; else 1 + the split's precedence
    number: int
    split: str
    task_id: str

    @property
    def name(self) -> str:
        return f"{self.split}/{self.task_id}"


class Overlap:
    """What was seen so far. Memory: some 3 KB per problem.

    Args:
        similarity: Jaccard similarity from which two texts or programs are nearly the same, in (0, 1].

    """

    def __init__(self, similarity: float) -> None:
        self.similarity = similarity
        self._members: list[_Member] = []
        self._exact: dict[tuple[str, bytes], list[_Member]] = defaultdict(list)
        self._grams: dict[str, dict[int, array]] = {"text": {}, "code": {}}
        self._keys: dict[tuple[str, int], bytes] = {}  # what exactly a member says

    def add(self, split: str, problem: Problem, is_benchmark: bool = False) -> None:
        """Take note of a problem of a split, or of a benchmark by that name."""
        known = split in PRECEDENCE
        rank = 0 if is_benchmark else 1 + (PRECEDENCE.index(split) if known else len(PRECEDENCE))
        member = _Member(rank, len(self._members), split, problem.task_id)
        self._members.append(member)
        text, tree = plain(problem.text), meaning(problem.code)
        for what, words, n in (("text", text.split(), 3), ("code", tree.split(), 5)):
            if words:
                key = self._keys[what, member.number] = _digest(" ".join(words))
                self._exact[what, key].append(member)
            grams = sorted({_digest(" ".join(words[i : i + n])) for i in range(len(words) - n + 1)})
            if len(grams) >= SHORTEST:
                self._grams[what][member.number] = array("Q", b"".join(grams))

    def findings(self) -> Iterator[Finding]:
        """One finding per row that repeats an earlier or more precious one, in order of the rows."""
        found: dict[tuple[int, str], tuple[_Member, _Member, list[str]]] = {}
        for what, near, first, second, share in [*self._same(), *self._nearly()]:
            kept, repeated = sorted((first, second))
            if repeated.rank == 0:
                continue  # two benchmarks may overlap as they like
            kind = (
                "contaminated" if kept.rank == 0 else "duplicate" if kept.split == repeated.split else "leak"
            )
            key = repeated.number, f"near_{kind}" if near else kind
            partner, _, details = found.setdefault(key, (kept, repeated, []))
            if partner == kept:
                details.append(f"{what} {share:.0%} alike" if near else f"same {what}")
        for (_, kind), (kept, repeated, details) in sorted(found.items()):
            detail = ", ".join(sorted(details, reverse=True))  # text before code
            yield Finding(kind, repeated.split, repeated.task_id, detail, kept.name)

    def _same(self) -> Iterator[tuple[str, bool, _Member, _Member, float]]:
        for (what, _), members in self._exact.items():
            benchmarks = sorted(member for member in members if member.rank == 0)
            ours = sorted(member for member in members if member.rank > 0)
            for kept in (benchmarks[:1], ours[:1]):
                for member in ours:
                    if kept and member != kept[0]:
                        yield what, False, kept[0], member, 1.0

    def _nearly(self) -> Iterator[tuple[str, bool, _Member, _Member, float]]:
        for what, grams in self._grams.items():
            lsh = MinHashLSH(threshold=max(0.1, self.similarity - LOOSER), num_perm=NUM_PERM)
            for number in sorted(grams, key=lambda n: self._members[n]):
                sketch = MinHash(num_perm=NUM_PERM, hashfunc=int, scheme="affine64")
                sketch.update_batch(grams[number])
                for other in sorted(lsh.query(sketch), key=lambda n: self._members[n]):
                    ours, theirs = set(grams[number]), set(grams[other])
                    share = len(ours & theirs) / len(ours | theirs)
                    if share >= self.similarity and not self._is_same(number, other):
                        yield what, True, self._members[other], self._members[number], share
                lsh.insert(number, sketch)

    def _is_same(self, one: int, other: int) -> bool:
        keys = [(self._keys.get((what, one)), self._keys.get((what, other))) for what in ("text", "code")]
        return any(first is not None and first == second for first, second in keys)


def overlaps(
    problems: Iterable[tuple[str, Problem]],
    benchmarks: Iterable[tuple[str, Problem]],
    similarity: float,
) -> list[Finding]:
    """Every overlap of these problems with each other and with the benchmarks' (name, problem)."""
    index = Overlap(similarity)
    for name, problem in benchmarks:
        index.add(name, problem, is_benchmark=True)
    for split, problem in problems:
        index.add(split, problem)
    return list(index.findings())


def meaning(code: str) -> str:
    """The syntax tree of a program without docstrings, as tokens; "" where there is no program."""
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
                | ast.Module(body=[ast.Expr(value=ast.Constant(value=str())), *rest])
            ):
                node.body = rest or [ast.Pass()]
    dumped = ast.dump(tree, annotate_fields=False)
    return dumped.replace("(", " ( ").replace(")", " ) ").replace(",", " ") if tree.body else ""


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
