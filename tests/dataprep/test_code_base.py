"""prepare_data.py repository: what becomes a problem, what is refused with a reason, and that nothing is executed."""

import os
from pathlib import Path

import pytest

from cocos.dataprep.code_base import code_base_source, from_code_base, read_code_base
from cocos.dataprep.formats.doctests import description, split_docstring
from cocos.problems import DataError, Problem
from tests.support.data import lines

FILES = {
    "shop/__init__.py": "from .prices import *\nfrom .stack import Stack\n",
    "shop/prices.py": '''
import math
from . import rounding
from .rounding import cents as to_cents

open("executed", "w").write("a module must not be imported")

def total(prices, tax=0.0):
    """Add up prices with tax.

    Examples:

    >>> total([])
    0.0
    >>> total([1.5, 2.5], tax=0.5)
    6.0
    >>> total("ab")
    Traceback (most recent call last):
    TypeError: prices are numbers
    >>> basket = [1.0]
    >>> basket.append(2.0)
    >>> total(basket)
    3.0
    """
    return rounding.cents(math.fsum(prices) * (1 + tax))

def halve(price):
    """Halve a price, and round it down to cents."""
    return to_cents(price / 2)

def undocumented(price):
    """
    >>> undocumented(1)
    1
    """
    return price

def forever(n):
    """Count for ever.

    >>> forever(1)
    1
    """
    while True:
        n += 1

def wrong(n):
    """Return the next number.

    >>> wrong(1)
    3
    """
    return n + 1
''',
    "shop/rounding.py": '''
from fractions import Fraction

def cents(price):
    """Round a price down to cents.

    >>> cents(0.999)
    0.99
    """
    return Fraction(int(price * 100), 100).__float__()
''',
    "shop/stack.py": '''
class Stack:
    """A stack of things.

    >>> stack = Stack()
    >>> stack.push(1)
    >>> stack.pop()
    1
    """
    def __init__(self):
        self.items = []
    def push(self, item):
        """Put an item on top."""
        self.items.append(item)
    def pop(self):
        """Take the item from the top.

        >>> Stack([]).pop() # doctest: +SKIP
        """
        return self.items.pop()
''',
    "shop/tables.py": 'import pandas\ndef rows(t):\n    """Count rows.\n    >>> rows(1)\n    1\n    """\n    return pandas.n(t)\n',
    "shop/broken.py": "def f(:\n",
    "shop/latin.py": b"# \xe9\n",
    "shop/coded.py": b'# coding: latin-1\ndef accent():\n    """Return \xe9.\n    >>> accent()\n    \'\xe9\'\n    """\n    return "\xe9"\n',
    "tests/test_prices.py": '''
import unittest
from shop import halve, total
import shop.rounding as r

class HalveTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(halve(4), 2.0)
        self.assertTrue(halve(0) == 0)
    def test_both(self):
        self.assertEqual(halve(4), total([2]))

def test_cents():
    price = 1.239
    assert r.cents(price) == 1.23

def test_late():
    from shop import halve as half, missing
    assert half(8) == 4.0
    assert missing(1) == 0
''',
}  # fmt: skip


@pytest.fixture
def code_base(tmp_path) -> Path:
    root = tmp_path / "code"
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (root / "shop/loop").symlink_to(root, target_is_directory=True)
    (root / "shop/dangling.py").symlink_to("nowhere.py")
    (root / "shop/alias.py").symlink_to("prices.py")  # its functions are those of prices.py
    return root


def converted(root: Path) -> tuple[dict[str, Problem], set[tuple[str, str]]]:
    """Return the problems of a code base by name, and the place and reason of what gives none."""
    rows = list(read_code_base(root))
    problems = [from_code_base(row, place).problem for place, _, row in rows if isinstance(row, dict)]
    reasons = {
        (str(place).rpartition("/")[2], str(row).removeprefix(f"{place}: "))
        for place, _, row in rows
        if isinstance(row, DataError)
    }
    return {problem.entry_point: problem for problem in problems}, reasons


def test_doctests_and_test_files_become_asserts_of_the_function_with_what_it_calls(code_base):
    problems, _ = converted(code_base)
    assert problems.keys() == {"total", "halve", "forever", "wrong", "cents", "Stack", "accent"}
    assert problems["accent"].test_list == ("assert accent() == '\xe9'",)
    total = problems["total"]
    assert total.task_id == "shop/prices.py:total"
    assert total.text == "Write a function total(prices, tax=0.0). Add up prices with tax."
    assert total.test_list == (
        "assert abs(total([]) - 0.0) <= 1e-06",
        "assert abs(total([1.5, 2.5], tax=0.5) - 6.0) <= 1.6e-06",
        "basket = [1.0]\nbasket.append(2.0)\nassert abs(total(basket) - 3.0) <= 1.3e-06",
    )
    assert "return cents(math.fsum(prices) * (1 + tax))" in total.code and "def cents" in total.code
    assert "from fractions import Fraction" in total.code and "open" not in total.code
    assert problems["halve"].test_list == (
        *("assert halve(4) == 2.0", "assert halve(0) == 0", "half = halve\nassert half(8) == 4.0"),
    )
    assert "to_cents = cents" in problems["halve"].code
    assert problems["cents"].test_list[-1] == "price = 1.239\nassert cents(price) == 1.23"
    assert problems["Stack"].text.startswith("Write a class Stack. A stack of things.\n\nIts methods:\n")
    assert problems["Stack"].test_list == ("stack = Stack()\nstack.push(1)\nassert stack.pop() == 1",)
    reference = {"return", "self.items"}
    assert not any(word in problem.text for problem in problems.values() for word in reference)
    assert not (code_base / "executed").exists() and not Path("executed").exists()


def test_what_gives_no_problem_is_named_with_its_reason_and_the_rest_goes_on(code_base):
    _, reasons = converted(code_base)
    assert {(place, reason) for place, reason in reasons if "test" not in place} == {
        ("broken.py:1", "the file does not parse (invalid syntax (<unknown>, line 1))"),
        ("latin.py:1", "the file is not UTF-8"),
        ("dangling.py:1", "the file cannot be read (No such file or directory)"),
        ("tables.py:2", "rows needs the package pandas (--program_packages)"),
        ("prices.py:31", "undocumented has no description besides the examples"),
    }
    assert {reason for place, reason in reasons if place == "test_prices.py:1"} == {
        "a test of several functions: halve, total 'assert halve(4) == total([2])'",
        "a test of no function: missing 'assert missing(1) == 0'",
    }


def test_the_command_drops_references_that_fail_and_ends_with_a_table_per_file(
    code_base, prepare, tmp_path, capsys
):
    out = tmp_path / "out"
    words = ("--input", code_base, "--output_dir", out, "--splits", 1, 0, 0, "--program_timeout_s", 2)
    assert prepare("repository", *words) == 0
    assert {row["task_id"].rpartition(":")[2] for row in lines(out / "train.jsonl")} == {
        *("total", "halve", "cents", "Stack")
    }
    printed = capsys.readouterr().out
    assert "| shop/prices.py | 2 | 2 failing, 1 has no description besides the examples |" in printed
    assert "| all | 4 |" in printed
    assert "| shop/tables.py | 0 | 1 needs the package pandas |" in printed
    assert "| shop/stack.py | 1 |  |" in printed
    assert not os.path.exists("executed")


@pytest.mark.parametrize(
    ("example", "test"),
    [
        (">>> f(1) > 0\nTrue", "assert (f(1) > 0) == True"),
        (">>> print(f(1))\na b", "assert str(f(1)) == 'a b'"),
        (">>> f(1)\nCounter({'a': 1})", "assert f(1) == Counter({'a': 1})"),
        (">>> f(1)\n<Node 1>", "assert repr(f(1)) == '<Node 1>'"),
        (">>> f(1)\n[1,\n 2]", "assert f(1) == [1, 2]"),
        (">>> f(1)  # doctest: +NORMALIZE_WHITESPACE\n[1,    2]", "assert f(1) == [1, 2]"),
        (">>> it = f(3)\n>>> next(it)\n0\n>>> next(it)\n1", "it = f(3)\nassert next(it) == 0"),
    ],
)
def test_an_example_becomes_an_assert_of_its_printed_value(example, test):
    assert split_docstring(example).tests[0] == test


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (">>> f(1)\nTraceback (most recent call last):\nValueError: x", "expects an exception"),
        (">>> f(1)  # doctest: +ELLIPSIS\n[1, ...]", "has an abbreviated value"),
        (">>> f(1)\n<Node object at 0x7f0123456789>", "prints an address"),
        (">>> for i in f(1): print(i)\n1", "prints within a statement"),
        (">>> print(f(1), 2)\n1 2", "prints several values"),
    ],
)
def test_an_example_without_a_value_is_left_out_with_its_reason(example, reason):
    extracted = split_docstring(example)
    assert extracted.tests == () and extracted.left_out[0].endswith(reason)


def test_a_later_example_carries_the_calls_before_it_that_change_what_it_reads():
    state = ">>> s = []\n>>> f(s, 1)\n1\n>>> f(s, 2)\n2"
    assert split_docstring(state).tests[1] == "s = []\nf(s, 1)\nassert f(s, 2) == 2"


def test_a_description_has_neither_examples_nor_their_headings():
    assert description("Add.\n\nExamples\n--------\n>>> f(1)\n2\n\nSee also: g") == "Add.\n\nSee also: g"


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("Copyright (c) 2012\n\nPermission is hereby granted, free of charge,\nto any person", "MIT"),
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("Redistributions of source code must retain ... Neither the name of", "BSD-3-Clause"),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 3", "GPL"),
        ("Ask me.", "not stated"),
    ],
)
def test_rows_have_the_licence_of_the_folder_unless_one_is_given(tmp_path, text, licence):
    (tmp_path / "LICENSE.txt").write_text(text)
    assert code_base_source(tmp_path, "").licence == licence
    assert code_base_source(tmp_path, "CC0-1.0").licence == "CC0-1.0"


def test_modules_that_import_all_names_from_each_other_are_read(tmp_path):
    # As networkx does: each function is found through the package, which imports everything.
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs/__init__.py").write_text("from graphs.walks import *\nfrom graphs.trees import *\n")
    (tmp_path / "graphs/trees.py").write_text("from graphs import *\ndef depth(n):\n    return n\n")
    walk = '"""Walk.\n\n    >>> walk(2)\n    2\n    """\n    return depth(n) + unknown'
    (tmp_path / "graphs/walks.py").write_text(f"from graphs import *\ndef walk(n):\n    {walk}\n")
    [row] = list(read_code_base(tmp_path))
    assert isinstance(row.row, dict)
    assert row.row["code"] == ("def depth(n):\n    return n\n\ndef walk(n):\n    return depth(n) + unknown\n")


def test_a_row_has_the_licence_of_the_nearest_folder_unless_one_is_given(prepare, tmp_path):
    code = tmp_path / "code"
    mit = "Permission is hereby granted, free of charge, to any person"
    files = {
        "one.py": "one",
        "pkg/two.py": "two",
        "vendored/deep/three.py": "three",
        "own/four.py": "four",
        "pkg/LICENSE": mit,
        "vendored/COPYING": "GNU GENERAL PUBLIC LICENSE",
    }
    for path, text in files.items():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".py"):
            text = f'def {text}(x):\n    """Say {text}.\n\n    >>> {text}(1)\n    1\n    """\n    return x\n'
        (code / path).write_text(text)
    words = ("repository", "--input", code, "--splits", 1, 0, 0, "--checks")
    assert prepare(*words, "--output_dir", tmp_path / "out") == 0
    assert {row["entry_point"]: row.get("licence") for row in lines(tmp_path / "out/train.jsonl")} == {
        "one": None,
        "two": "MIT",
        "three": "GPL",
        "four": None,
    }
    assert prepare(*words, "--licence", "CC0-1.0", "--output_dir", tmp_path / "given") == 0
    assert {row["licence"] for row in lines(tmp_path / "given/train.jsonl")} == {"CC0-1.0"}


def test_long_references_are_left_out_on_request(prepare, tmp_path, capsys):
    code = tmp_path / "code"
    code.mkdir()
    short, long = (
        f'def {name}(x):\n    """Say it.\n\n    >>> {name}(1)\n    1\n    """\n{body}    return x\n'
        for name, body in (("short", ""), ("long", "    x = +x\n" * 3))
    )
    (code / "a.py").write_text(f"{short}\n{long}")
    words = ("repository", "--input", code, "--splits", 1, 0, 0, "--checks", "--output_dir", tmp_path / "out")
    assert prepare(*words, "--max_lines", -1) == 2 and "give a number of lines" in capsys.readouterr().err
    assert prepare(*words, "--max_lines", 2) == 0
    assert [row["entry_point"] for row in lines(tmp_path / "out/train.jsonl")] == ["short"]
    [dropped] = lines(tmp_path / "out/dropped.jsonl")
    assert (dropped["kind"], dropped["detail"]) == ("long", "the reference has 5 lines")
