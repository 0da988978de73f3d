"""Placebos of what a prompt without a transcript says of failed tests (`--placebo`).

A gain over asking again that a placebo has, too, does not come from reading. Stopping, scores and rewards
always come from the true tests. The words around the tests are those of turn 1's message; only NOTICE is
said here.
"""

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cocos.carry import Carry, Placebo, named_carry
from cocos.config.turn_options import TurnOptions
from cocos.executor.parser import parse
from cocos.problems import Problem
from cocos.prompts import LOAD, Failures

NOTICE = "An earlier program fails a test."


def make_carry(options: TurnOptions, problems: Sequence[Problem], num_shown: int | None) -> Carry:
    """Return what a later prompt has of earlier turns: the truth, or the placebo of the options.

    Args:
        problems: All problems of the run; `other` takes tests and values of another one with as many
            parameters, the same one in every run.
        num_shown: Number of tests that every prompt shows, the first ones; None: all. They stay as they are.

    """
    match options.placebo:
        case "notice":
            return Placebo(_notice)
        case "wrong":
            return Placebo(partial(_replaced, num_shown=num_shown, sources=None))
        case "other":
            return Placebo(partial(_replaced, num_shown=num_shown, sources=_by_arity(problems)))
    return named_carry(options.carry)


def _notice(problem: Problem, failed: Failures) -> tuple[Problem, Failures]:
    """Say no more than that a test failed."""
    return (_with_tests(problem, {}, f"{problem.text} {NOTICE}"), {}) if failed else (problem, failed)


def _replaced(
    problem: Problem, failed: Failures, num_shown: int | None, sources: dict[int | None, list[Problem]] | None
) -> tuple[Problem, Failures]:
    """Take tests and outcomes from another problem; without sources, make their values wrong."""
    source = _chosen(problem, sources) if sources else problem
    always = range(len(problem.test_list))[:num_shown]
    tests, outcomes = {}, {}
    for index, said in failed.items():
        if index == LOAD:  # the error of a program, not of a test
            outcomes[index] = list(said)
            continue
        test = source.test_list[index % len(source.test_list)]
        expected = _expected(test)
        if source is not problem:
            (own, _), (other, _) = _first_call(problem), _first_call(source)
            test = re.sub(rf"\b{other}\b", own, test) if own and other else test
        elif expected and not said:
            before, _, after = test.rpartition(expected[0])  # the right side
            test = f"{before}{expected[1]}{after}"
        if index not in always:
            tests[index] = test
        # Another problem's value is its expected one, which is as likely as any to be returned by a program.
        told = [f"not {expected[0]}"] if source is not problem and expected else map(_wrong_outcome, said)
        outcomes[index] = list(told) if said else []
    return _with_tests(problem, tests), outcomes


def _with_tests(problem: Problem, tests: Mapping[int, str], text: str | None = None) -> Problem:
    """Return a problem to be shown, with other visible tests at these indices, and another text."""
    shown = tuple(tests.get(index, test) for index, test in enumerate(problem.test_list))
    return replace(problem, test_list=shown, text=problem.text if text is None else text)


def _expected(test: str) -> tuple[str, str] | None:
    """Return the value that a test expects by `==`, and a wrong one of its type; None for other tests."""
    match parse(test).body:
        case [ast.Assert(test=ast.Compare(ops=[ast.Eq()], comparators=[right]))]:
            source = ast.get_source_segment(test, right) or ""
            return (source, wrong) if (wrong := _wrong_source(source)) else None
    return None


def _wrong_outcome(outcome: str) -> str:
    """Return what a program returned as another value of its type; an error stays as it is."""
    wrong = _wrong_source(outcome.removeprefix("not ")) if outcome.startswith("not ") else None
    return f"not {wrong}" if wrong else outcome


def _wrong_source(source: str) -> str | None:
    try:
        return repr(wrong_value(ast.literal_eval(source)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def wrong_value(value: Any) -> Any:
    """Return another value of the same type; raise TypeError if there is none (None), or none is known.

    Examples: True -> False, 3 -> 4, "ab" -> "ba", "aa" -> "aaa", [1, 2] -> [2, 2], {} -> TypeError.
    """
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value[::-1] if value[::-1] != value else f"{value}{value[-1:] or 'a'}"
        case list() | tuple() | set() if value:
            first, *others = value
            return type(value)([wrong_value(first), *others])
        case dict() if value:
            first, *others = value.items()
            return dict([(first[0], wrong_value(first[1])), *others])
    raise TypeError(f"no other value is known for {value!r}")


def _first_call(problem: Problem) -> tuple[str, int | None]:
    """Return name and number of arguments of what the first test calls of a program; "" and None: nothing."""
    for node in ast.walk(parse(problem.test_list[0])):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args) if name in problem.called_names:
                return name, len(args)
    return "", None


def _by_arity(problems: Sequence[Problem]) -> dict[int | None, list[Problem]]:
    found: dict[int | None, list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: problem.task_id):
        if problem.test_list:
            found.setdefault(_first_call(problem)[1], []).append(problem)
    return found


def _chosen(problem: Problem, sources: dict[int | None, list[Problem]]) -> Problem:
    """Return another problem with as many arguments, or else any other one."""
    others = [other for other in sources.get(_first_call(problem)[1], ()) if other.task_id != problem.task_id]
    others = others or [o for group in sources.values() for o in group if o.task_id != problem.task_id]
    number = int.from_bytes(hashlib.sha256(problem.task_id.encode()).digest()[:8])
    return others[number % len(others)] if others else problem
