"""Exact and near duplicates within a set and with benchmarks."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.dataprep.checks.duplicates import DuplicateIndex
from cocos.dataprep.checks.overlap import find_overlap
from cocos.dataprep.checks.tokens import code_tokens
from cocos.problems import Problem

GOOD = Problem("good", "Double.", ("assert f(1) == 2", "assert f(2) == 4"), "def f(x):\n    return 2 * x")
TEXT = "count the words of a long sentence that begin with some letter and end with another one"
WORDS = TEXT.split()


def test_the_same_text_or_code_is_a_leak_across_splits_and_a_duplicate_within_one():
    other = "def f(x):\n    '''Other words.'''\n    return 2*x  # layout"
    problems = [
        ("train", replace(GOOD, task_id="1")),
        ("train", replace(GOOD, task_id="2", text="double", code="def g(): pass")),
        ("test", replace(GOOD, task_id="3", text="Twice.", code=other)),
        ("validation", replace(GOOD, task_id="4", text="Else.", code="def h(): return 1")),
    ]
    benchmark = replace(GOOD, task_id="HE/1", text="ELSE", code="", test_list=("assert other()",))
    results = find_overlap(problems, [("humaneval", benchmark)])
    assert [(f.kind, f.split, f.task_id, f.detail, f.other) for f in results] == [
        ("leak", "train", "1", "same code", "test/3"),
        ("duplicate", "train", "2", "same text", "train/1"),
        ("contaminated", "validation", "4", "same text", "humaneval/HE/1"),
    ]


def test_a_row_that_repeats_a_benchmark_and_another_split_has_both_findings():
    problems = [("train", replace(GOOD, task_id="1")), ("test", replace(GOOD, task_id="2"))]
    results = find_overlap(problems, [("b", replace(GOOD, task_id="3"))])
    assert {(f.kind, f.task_id, f.other) for f in results if not f.kind.startswith("shared_")} == {
        ("leak", "1", "test/2"), ("contaminated", "1", "b/3"), ("contaminated", "2", "b/3"),
    }  # fmt: skip


@settings(max_examples=40, deadline=None, database=None)
@given(st.sets(st.integers(0, len(WORDS) - 1), max_size=3))
def test_near_duplicates_are_found_exactly_from_the_threshold_on(changed):
    text = " ".join("else" if i in changed else word for i, word in enumerate(WORDS))
    one, other = (
        {tuple(t.split()[i : i + 3]) for i in range(len(WORDS) - 2)} for t in (" ".join(WORDS), text)
    )
    share = len(one & other) / len(one | other)
    problems = [
        ("test", Problem("1", " ".join(WORDS), ("assert f()",))),
        ("train", Problem("2", text, ("assert f()",))),
    ]
    results = list(find_overlap(problems, [], DuplicateIndex(similarity=0.6)))
    if not changed:
        assert [(f.kind, f.detail) for f in results] == [("leak", "same text")]
    elif share >= 0.6:
        assert [(f.kind, f.detail, f.task_id) for f in results] == [
            ("near_leak", f"text {share:.0%} alike", "2")
        ]
    else:
        assert results == []


def test_among_many_rows_the_near_duplicates_are_those_that_comparing_all_pairs_finds():
    draw = random.Random(0)
    originals = [[f"w{draw.randrange(900)}" for _ in range(draw.randrange(10, 60))] for _ in range(60)]
    texts = []
    for words in originals:
        for share in (0, 0.01, 0.03, 0.06, 0.1):
            texts.append([f"w{draw.randrange(900)}" if draw.random() < share else word for word in words])
    draw.shuffle(texts)
    ngrams = [{tuple(words[i : i + 3]) for i in range(len(words) - 2)} for words in texts]
    expected = {}
    for number, own in enumerate(ngrams):
        alike = [
            (other, len(own & ngrams[other]) / len(own | ngrams[other]))
            for other in range(number)
            if texts[other] != texts[number]
        ]
        first = next(((other, share) for other, share in alike if share >= 0.8), None)
        if first:
            expected[str(number)] = (f"text {first[1]:.0%} alike", f"train/{first[0]}")
    problems = [("train", Problem(str(n), " ".join(words), ("assert f()",))) for n, words in enumerate(texts)]
    found = [finding for finding in find_overlap(problems, []) if finding.kind == "near_duplicate"]
    assert {finding.task_id: (finding.detail, finding.other) for finding in found} == expected
    assert len(expected) > 50


def test_tokens_of_code_ignore_layout_comments_and_docstrings():
    assert code_tokens("def f(x):\n  return x+1") == code_tokens(
        '"""Doc."""\ndef f(x):\n    "More."\n    return (x + 1)  # one'
    )
    assert code_tokens("def f(x): return x + 1") != code_tokens("def f(x): return x + 2")
    assert code_tokens("def f(") == code_tokens("") == []


def test_words_names_and_asserts_that_a_benchmark_has_too_are_found_although_text_and_code_differ():
    benchmark = Problem(
        "HE/1", "Return the sum of all even numbers of a list.", ("assert even_sum([1, 2]) == 2",),
        "def even_sum(xs): return sum(x for x in xs if x % 2 == 0)", entry_point="even_sum",
    )  # fmt: skip
    tested = Problem("1", "Anything.", ("assert  even_sum([1,2])==2",), "def even_sum(xs): return 2")
    said = Problem(
        "2", "Write f. It is to return the Sum of all even numbers of it.", ("assert f(1) == 2",),
        "def f(x): return 2",
    )  # fmt: skip
    apart = Problem("3", "Return the sum of all odd numbers.", ("assert g([1]) == 1",), "def g(x): return 1")
    results = find_overlap([("train", tested), ("train", said), ("test", apart)], [("humaneval", benchmark)])
    assert [(f.kind, f.task_id, f.detail, f.other) for f in results] == [
        ("shared_name", "1", "even_sum", "humaneval/HE/1"),
        ("shared_assert", "1", "assert even_sum([1, 2]) == 2", "humaneval/HE/1"),
        ("shared_text", "2", "return the sum of all even numbers of", "humaneval/HE/1"),
    ]
