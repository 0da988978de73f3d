"""Parsing from several threads."""

import ast
import gc
import threading
import time

import pytest

from cocos.files.python_parser import form_fault, parse, syntax_tree

PROGRAM = "x = [" + ", ".join(f"f({i})" for i in range(300)) + "]\n"


def test_threads_may_parse_while_the_garbage_collector_runs_callbacks(monkeypatch):
    def switch_threads(phase, info):
        time.sleep(0.0001)

    failures = []

    def work():
        try:
            for _ in range(40):
                parse(PROGRAM)
        except SystemError as error:  # what ast.parse sometimes raises here on CPython 3.11
            failures.append(str(error))

    threshold = gc.get_threshold()
    gc.callbacks.append(switch_threads)
    gc.set_threshold(50)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(switch_threads)
        gc.set_threshold(*threshold)
    assert failures == []


def test_the_tree_is_that_of_ast_parse_and_invalid_escapes_give_no_warning(recwarn):
    assert ast.dump(parse("x = '\\d'")) == ast.dump(ast.parse("x = '\\\\d'"))
    assert not recwarn.list


ORIGINAL = "def f(a, b=1, *rest, key):\n    return a"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (ORIGINAL, ""),
        ("def f(a: int, b: int = 2, *rest: int, key: str) -> int:\n    return b", ""),
        ("def f():\n    pass\n\ndef f(a, b=1, *rest, key):\n    return 1", ""),  # the last definition counts
        ("def f(a)\n    return a", "line 1: expected ':'"),
        ("x = 1\n  y = 2", "line 2: unexpected indent"),
        ("def g(a):\n    return a", "it defines no function f"),
        ("", "the answer contains no program"),
        ("def f(a):\n    return a", "it defines f(a) instead of f(a, b, rest, key)"),
        ("x = '\0'", "SyntaxError"),
        ("f" + "(" * 100_000, "line 1: too many nested parentheses"),
    ],
)
def test_a_program_has_the_form_of_the_original_or_a_fault(code, fault):
    found = form_fault(code, "f", ORIGINAL)
    assert found == fault or (fault == "SyntaxError" and found)


def test_without_an_original_any_parameters_do_and_without_a_name_any_program():
    assert form_fault("def f(x, y):\n    return x", "f", "") == ""
    assert form_fault("x = 1", "", "") == ""
    assert form_fault("def g(): pass", "f", "") == "it defines no function f"
    assert isinstance(syntax_tree("-" * 200_000 + "1"), str)
