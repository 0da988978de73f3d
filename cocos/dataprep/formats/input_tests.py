"""Tests of EvalPlus' problems: the assert that an input and the reference's value give.

EvalPlus (arXiv 2305.01210) publishes inputs without expected values. A program is right if its values equal
those of the reference by the rules of EvalPlus' own evaluation (evalplus/eval/__init__.py and
_special_oracle.py, October 2025), which this module expresses as asserts.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple


def literal(value: object) -> str:
    """Return the source of an expression that has this value.

    Subclasses are written as their base class, which they equal: a Counter as a dict. Sets are sorted by the
    source of their items, and infinity is `1e999`.

    Raises:
        ValueError: The value, or a part of it, is not a plain value, or is NaN, which equals nothing.

    """
    if value is None or isinstance(value, bool) or type(value) in (int, str, bytes):
        return repr(value)
    if isinstance(value, float):
        if value != value:
            raise ValueError("NaN equals no value")
        return repr(float(value)).replace("inf", "1e999")
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(literal, value)))}}}" if value else "set()"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    raise ValueError(f"{type(value).__name__} is not a plain value")


RELATIVE_TOLERANCE = 1e-07  # of a float, besides the absolute one
FLOAT_TOLERANCE = 1e-06  # absolute, if the row has none
# Functions of MBPP+ whose result is compared as a set.
SET_FUNCTIONS = (
    *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum"),
    *("intersection_array", "find_dissimilar", "Diff"),
)
# Functions of MBPP+ that may return a match object: only its truth is compared.
TRUTH_FUNCTIONS = ("check_str", "text_match_three", "text_starta_endb")


class Call(NamedTuple):
    """A call of the function under test, as source, and where its input comes from."""

    source: str  # the call, as `add(1, 2)`
    arguments: tuple[Any, ...]  # the arguments as values
    origin: str  # `base input 3` or `plus input 3`, counted from 1
    is_hidden: bool  # the test is hidden: the input is one that EvalPlus adds


class InputTests(NamedTuple):
    """Calls of a problem that become tests once their values are known."""

    calls: tuple[Call, ...]  # the calls, those of base inputs first
    function: str  # name of the function under test
    # Absolute tolerance of numbers; 0 for exact values, except that floats have `FLOAT_TOLERANCE`.
    atol: float
    preamble: str = ""  # program text that the expressions need besides the reference

    def expression(self, call: Call) -> str:
        """Return the expression whose value the reference computes."""
        return f"{call.source} is not None" if self.function in TRUTH_FUNCTIONS else call.source

    def test(self, call: Call, value: Any) -> str:
        """Return the assert that a value of the reference gives.

        Raises:
            ValueError: The value cannot be written as source, or no program could pass the test.

        """
        if self.function in TRUTH_FUNCTIONS:
            return f"assert {call.source}" if value else f"assert not {call.source}"
        if self.function in SET_FUNCTIONS:
            return f"assert set({call.source}) == {literal(set(value))}"
        if self.function in ACCEPTED_TOO and (other := ACCEPTED_TOO[self.function](*call.arguments)) != value:
            return f"assert {call.source} in ({literal(value)}, {literal(other)})"
        if self.function == "find_zero":  # HumanEval/32: a value near any root of the polynomial is right
            found = abs(sum(c * value**i for i, c in enumerate(call.arguments[0])))
            if not found <= self.atol:  # `sum` of floats gives others since Python 3.12
                raise ValueError(
                    f"the reference fails it on this Python: {found:.3g} is not <= {self.atol!r}"
                )
            polynomial = f"sum(c * x**i for i, c in enumerate({literal(call.arguments[0])}))"
            return f"x = {call.source}\nassert abs({polynomial}) <= {self.atol!r}"
        return equality(call.source, value, self.atol)


class GeneratedTests(NamedTuple):
    """Calls whose keyword arguments `generate_inputs` of the data set makes, each from a seed."""

    calls: tuple[Call, ...]  # their sources are the seeds
    function: str  # name of the function under test
    preamble: str  # program text that defines generate_inputs

    def expression(self, call: Call) -> str:
        """Return the expression whose value the reference computes: the arguments and the value."""
        inputs = f"generate_inputs(__import__('random').Random({call.source}))"
        # Copied, because the reference may change its arguments.
        pair = f"(__import__('copy').deepcopy(inputs), {self.function}(**inputs))"
        return f"(lambda inputs: {pair})({inputs})"

    def test(self, call: Call, value: Any) -> str:
        """Return the assert that arguments and value give; raise ValueError if it cannot be written."""
        inputs, result = value
        arguments = ", ".join(f"{name}={literal(argument)}" for name, argument in inputs.items())
        return equality(f"{self.function}({arguments})", result, atol=0)


def equality(call: str, value: Any, atol: float) -> str:
    """Return the assert that a call returns a value: exactly, or within the tolerance if it has floats.

    Like numpy.allclose: a number may differ by atol + `RELATIVE_TOLERANCE` times the expected one.
    """
    expected = literal(value)
    if _is_number(value, atol):
        tolerance = (atol or FLOAT_TOLERANCE) + RELATIVE_TOLERANCE * abs(value)
        return f"assert abs({call} - {expected}) <= {tolerance:.12g}"
    if isinstance(value, (list, tuple)) and value and all(_is_number(item, atol) for item in value):
        tolerance = atol or FLOAT_TOLERANCE
        return (
            f"values, expected = {call}, {expected}\n"
            f"assert type(values) is {type(value).__name__} and len(values) == {len(value)}\n"
            f"assert all(abs(a - b) <= {tolerance!r} + {RELATIVE_TOLERANCE!r} * abs(b) "
            "for a, b in zip(values, expected))"
        )
    return f"assert {call} {'is' if value is None else '=='} {expected}"


def _is_number(value: Any, atol: float) -> bool:
    """Return whether a value has a tolerance: a float, or any number if the row has one; never infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(atol) and isinstance(value, int) and not isinstance(value, bool)


def _pyramid_area(base_edge: float, height: float) -> int:
    """Return the surface of a square pyramid, for the height of its apex instead of its sides (MBPP 581)."""
    slant_height = math.hypot(base_edge / 2, height)
    return round(base_edge**2 + 2 * base_edge * slant_height)


def _padded_digit_distance(a: int, b: int) -> int:
    """Return the sum of the differences of two numbers' digits, position by position (MBPP 558)."""
    digits = [str(number).zfill(max(len(str(a)), len(str(b)))) for number in (a, b)]
    return sum(abs(int(x) - int(y)) for x, y in zip(*digits, strict=True))


# Functions of MBPP+ whose task has a second reading.
ACCEPTED_TOO: dict[str, Callable[..., Any]] = {
    "surface_Area": _pyramid_area,
    "digit_distance_nums": _padded_digit_distance,
}
