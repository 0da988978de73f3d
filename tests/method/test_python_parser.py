"""Parsing from several threads."""

import ast
import gc
import threading
import time

from cocos.python_parser import parse

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
