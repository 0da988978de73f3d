"""Conversion of EvalPlus' rows (arXiv 2305.01210): HumanEval+ and MBPP+.

A row has inputs without expected values: `base_input`, the inputs of the original benchmark, and
`plus_input`, those that EvalPlus adds. A converted problem has calls in place of tests, until the reference
has computed their values (`cocos.dataprep.expected_values`). JSON has no tuples and no complex numbers, so a
table says which inputs of MBPP+ are to be converted; its facts are those of evalplus/data/mbpp.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cocos.dataprep.formats.conversion import (
    Converted,
    build_problem,
    complete_this_function,
    function_fields,
    string_field,
)
from cocos.dataprep.formats.input_tests import Call, InputTests, literal
from cocos.files.json_lines import Place
from cocos.problems import DataError

Shape = Callable[[tuple], tuple]  # converts the arguments of one input


def _tuples_in(items: list) -> list[tuple]:
    return [tuple(item) for item in items]


def _all_tuples(value: Any) -> Any:
    return tuple(map(_all_tuples, value)) if isinstance(value, list) else value


def _each(convert: Callable[[Any], Any]) -> Shape:
    return lambda arguments: tuple(map(convert, arguments))


def _only(index: int, convert: Callable[[Any], Any]) -> Shape:
    return lambda arguments: (*arguments[:index], convert(arguments[index]), *arguments[index + 1 :])


# Ids of MBPP+, and what the arguments were before they became JSON.
SHAPES: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    (
        _each(tuple),
        (
            *(2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726),
            *(740, 744, 809),
        ),
    ),
    (_each(_tuples_in), (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780)),
    (_each(lambda value: tuple(_tuples_in(value))), (259, 401, 445)),
    (_each(_all_tuples), (278, 580, 615, 791)),
    (_only(0, tuple), (250, 307, 405, 446, 617, 720, 763, 808)),
    (_only(1, tuple), (106, 750)),
    (_only(0, _tuples_in), (75, 413, 444, 753)),
    (_only(0, lambda value: {key: tuple(items) for key, items in value.items()}), (722,)),
    (_only(0, complex), (252,)),
    (lambda arguments: (float(arguments[0]), complex(arguments[1])), (124,)),
)


def from_humanevalplus(row: dict, place: Place) -> Converted:
    """Convert a row of HumanEval+, whose prompts are those of HumanEval."""
    fields = function_fields(row, place, complete_this_function(row, place))
    tests = _tests(row, place, [], fields["entry_point"])
    return Converted(build_problem(place, **fields, **_calls_as_tests(tests)), input_tests=tests)


def from_mbppplus(row: dict, place: Place) -> Converted:
    """Convert a row of MBPP+. The text is the prompt's docstring without the assert in it."""
    task_id, name = string_field(row, "task_id", place), string_field(row, "entry_point", place)
    number = task_id.removeprefix("Mbpp/")
    shapes = [shape for shape, ids in SHAPES if number.isdecimal() and int(number) in ids]
    tests = _tests(row, place, shapes, name)
    lines = string_field(row, "prompt", place).strip().strip('"').strip().splitlines()
    problem = build_problem(
        place,
        task_id=task_id,
        text="\n".join(line for line in lines if not line.startswith("assert ")),
        code=string_field(row, "canonical_solution", place).strip("\n").rstrip(),
        entry_point=name,
        **_calls_as_tests(tests),
    )
    return Converted(problem, input_tests=tests)


def _calls_as_tests(tests: InputTests) -> dict[str, tuple[str, ...]]:
    """Return the calls in place of the tests, until their values are known."""
    return {
        "test_list": tuple(call.source for call in tests.calls if not call.is_hidden),
        "hidden_test_list": tuple(call.source for call in tests.calls if call.is_hidden),
    }


def _tests(row: dict, place: Place, shapes: Sequence[Shape], function: str) -> InputTests:
    calls: dict[str, Call] = {}  # by source: some plus inputs repeat others
    for field in ("base_input", "plus_input"):
        inputs = row.get(field) or []  # MBPP+ 793 has an empty object
        if not isinstance(inputs, list) or not all(isinstance(one, list) for one in inputs):
            raise DataError(
                f"{place}: field {field!r} must be a list of argument lists; download the set again"
            )
        for number, one in enumerate(inputs, start=1):
            arguments = tuple(one)
            for shape in shapes:
                arguments = shape(arguments)
            source = f"{function}({', '.join(map(literal, arguments))})"
            origin = f"{field.removesuffix('_input')} input {number}"
            calls.setdefault(source, Call(source, arguments, origin, field == "plus_input"))
    return InputTests(tuple(calls.values()), function, row.get("atol") or 0)
