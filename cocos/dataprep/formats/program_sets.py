"""Conversion of public sets of problems with reference programs and asserts, one function per set.

The columns are those of the sets as published on the hub: OpenCoder-LLM/opc-sft-stage2,
newfacade/LeetCodeDataset, TIGER-Lab/AceCode-87K, livecodebench/code_generation_lite and bigcode/bigcodebench.
Three tests are visible, as in MBPP, and the others are hidden.
"""

import ast
import base64
import importlib
import io
import json
import pickle
import re
import zlib

from cocos.dataprep.formats.conversion import Converted, build_problem, string_field, with_divided_tests
from cocos.dataprep.formats.humaneval import split_check_function
from cocos.dataprep.formats.input_tests import Call, GeneratedTests
from cocos.dataprep.formats.pytest_files import split_pytest_file
from cocos.dataprep.formats.shown_tests import VISIBLE_TESTS
from cocos.dataprep.formats.source_edits import global_reads
from cocos.executor import StdoutTest
from cocos.files.json_lines import DataError, Place
from cocos.files.python_parser import parse

NUM_SEEDS = 10  # tests of a problem of CodeI/O


def from_opc_educational(row: dict, place: Place) -> Converted:
    """Convert a row of OpenCoder's educational_instruct."""
    return with_divided_tests(
        place,
        row.get("testcase"),
        task_id=str(row.get("seq_id", place.number)),
        text=string_field(row, "instruction", place),
        code=string_field(row, "code", place),
        entry_point=string_field(row, "entry_point", place),
    )


def from_acecode(row: dict, place: Place) -> Converted:
    """Convert a row of AceCode; the reference is the shortest sampled program that passes every test."""
    programs = [
        _fenced(sample["completion"])
        for sample in row.get("inferences") or ()
        if sample.get("pass_rate") == 1
    ]
    return with_divided_tests(
        place,
        row.get("test_cases"),
        task_id=string_field(row, "id", place),
        text=string_field(row, "question", place),
        code=min(programs, key=len, default=""),
    )


def from_leetcode(row: dict, place: Place) -> Converted:
    """Convert a row of LeetCodeDataset: methods become functions, after the imports that they need."""
    name = string_field(row, "entry_point", place).rpartition(".")[2]
    code = class_to_functions(string_field(row, "completion", place))
    tests = split_check_function(string_field(row, "test", place), name).tests
    needed = [n for n in ("ListNode", "TreeNode", "Node") if n in global_reads("\n".join((code, *tests)))]
    if needed or any(re.search(r"\b(?:list|tree)_node\(", test) for test in tests):
        raise ValueError("needs LeetCode's class of nodes")
    # Up to release 0.2.0, `query` contains the description and, in a fenced block, the class to complete.
    query = string_field(row, "query", place)
    signature = _signature(row.get("starter_code") or _fenced(query), name)
    described = row.get("problem_description") or query.partition("Please complete")[0]
    text = f"Write a function {signature}.\n\n{described.strip()}"
    return with_divided_tests(
        place, tests, task_id=string_field(row, "task_id", place), text=text, code=code, entry_point=name
    )


def from_debugbench(row: dict, place: Place) -> Converted:
    """Convert a row of DebugBench, which `read_debugbench` has joined with the row that has its tests."""
    problem = row["leetcode"]
    tests = split_check_function(problem["test"], problem["entry_point"]).tests
    starter = problem.get("starter_code") or _fenced(problem["query"])
    kinds = row.get("type") or row.get("subtype") or ""
    return with_divided_tests(
        place,
        tests,
        task_id=f"{place.path if isinstance(place.path, str) else place.path.stem}/{place.number}",
        text=f"{row.get('description') or row.get('question')}\n\nComplete this class:\n\n{starter.strip()}",
        code=_with_imports(row.get("oracle_code") or string_field(row, "solution", place)),
        buggy_code=_with_imports(string_field(row, "buggy_code", place)),
        bug_type=kinds if isinstance(kinds, str) else ", ".join(kinds),
    )


def from_codeio(row: dict, place: Place) -> Converted:
    """Convert a row of CodeI/O as reasoning-gym distributes it: inputs come from the problem's generator."""
    code = string_field(row, "code_sample", place)
    calls = tuple(Call(str(seed), (), f"seed {seed}", seed >= VISIBLE_TESTS) for seed in range(NUM_SEEDS))
    problem = build_problem(
        place,
        task_id=str(place.number),
        text=f"{string_field(row, 'task_description', place)}\n\nWrite a function main_solution.\n\n"
        f"{string_field(row, 'input_output_spec', place)}",
        code=code,
        test_list=("assert main_solution",),  # until the expected values are known
        entry_point="main_solution",
    )
    generator = f"from random import Random\n{string_field(row, 'input_generator', place)}"
    return Converted(problem, input_tests=GeneratedTests(calls, "main_solution", generator))


def from_livecodebench(row: dict, place: Place) -> Converted:
    """Convert a row of LiveCodeBench, which has no reference."""
    cases = [*_cases(row, "public_test_cases", place), *_cases(row, "private_test_cases", place)]
    starter, text = row.get("starter_code") or "", string_field(row, "question_content", place)
    if starter:
        name = json.loads(string_field(row, "metadata", place)).get("func_name") or ""
        text = f"Write a function {_signature(starter, name)}.\n\n{text}"
        calls = [(", ".join(_json_lines(case["input"])), _json_lines(case["output"])[0]) for case in cases]
        tests = [f"assert {name}({arguments}) == {expected}" for arguments, expected in calls]
    else:
        name, tests = "", [StdoutTest(case["input"], case["output"]).source for case in cases]
    converted = with_divided_tests(
        place, tests, task_id=string_field(row, "question_id", place), text=text, entry_point=name
    )
    return converted._replace(date=string_field(row, "contest_date", place)[:10])


def from_bigcodebench(row: dict, place: Place) -> Converted:
    """Convert a row of BigCodeBench, with its instruction as text; its libraries are --program_packages."""
    extracted = split_pytest_file(string_field(row, "test", place))
    converted = with_divided_tests(
        place,
        extracted.tests,
        task_id=string_field(row, "task_id", place),
        text=string_field(row, "instruct_prompt", place),
        code=string_field(row, "code_prompt", place) + string_field(row, "canonical_solution", place),
        entry_point=string_field(row, "entry_point", place),
    )
    return converted._replace(left_out=(*extracted.left_out, *converted.left_out))


def class_to_functions(source: str) -> str:
    """Return a program with the methods of class Solution as functions, after the imports that they need.

    Raises:
        ValueError: The class has state, or the program is not of this form.

    """
    tree = parse(source)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Solution"]
    if len(classes) != 1:
        raise ValueError("has no class Solution")
    methods = [node for node in classes[0].body if isinstance(node, ast.FunctionDef)]
    names = {method.name for method in methods}
    functions = []
    for method in methods:
        if len(methods) != len(classes[0].body) or method.decorator_list or not method.args.args:
            raise ValueError("has a class with state")
        instance = method.args.args.pop(0).arg
        function = _OwnCalls(instance, names).visit(method)
        if instance in global_reads(ast.unparse(function)):
            raise ValueError("has a class with state")
        functions.append(function)
    index = tree.body.index(classes[0])
    tree.body[index : index + 1] = functions
    return _with_imports(ast.unparse(ast.fix_missing_locations(tree)))


class _OwnCalls(ast.NodeTransformer):
    """Replaces `self.method` by `method`."""

    def __init__(self, instance: str, names: set[str]) -> None:
        self._instance, self._names = instance, names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        match node:
            case ast.Attribute(ast.Name(self._instance), name) if name in self._names:
                return ast.copy_location(ast.Name(name, node.ctx), node)
        return self.generic_visit(node)


# LeetCode imports all of these before a program, in this order.
PRELUDE = ("typing", "functools", "collections", "itertools", "heapq", "bisect", "string", "operator", "math")
PRELUDE_MODULES = (*PRELUDE, "random", "datetime", "re", "sys")


def _with_imports(program: str) -> str:
    """Return a program after imports of the names that LeetCode provides and that it does not define."""
    try:
        names = global_reads(program)
    except SyntaxError:  # DebugBench has programs with a syntax error
        return program
    bound = {node.name for node in parse(program).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    builtin = set(dir(importlib.import_module("builtins")))
    lines = []
    for name in sorted(names - bound - builtin):
        owners = [module for module in PRELUDE if hasattr(importlib.import_module(module), name)]
        if owners:
            lines.append(f"from {owners[-1]} import {name}")
        elif name in PRELUDE_MODULES:
            lines.append(f"import {name}")
    return "\n".join([*lines, program])


_BUILTIN_TYPES = {"List": "list", "Dict": "dict", "Set": "set", "Tuple": "tuple"}


def _signature(starter: str, name: str) -> str:
    """Return the signature of a method without `self`, with annotations that need no import."""
    tree = parse(f"{starter.rstrip()}\n        pass")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = _BUILTIN_TYPES.get(node.id, node.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            del node.args.args[0]
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            text = f"{name}({ast.unparse(node.args)}){returns}"
            return re.sub(r"Optional\[([^\[\]]*(?:\[[^\[\]]*\])?)\]", r"\1 | None", text)
    raise ValueError(f"has no method {name} in starter_code")


def _cases(row: dict, field: str, place: Place) -> list[dict]:
    """Return test cases, which are JSON, or JSON pickled, compressed and in base64."""
    text = string_field(row, field, place)
    try:
        if not text.startswith("["):
            text = _StringUnpickler(io.BytesIO(zlib.decompress(base64.b64decode(text)))).load()
        cases = json.loads(text)
        return [{"input": case["input"], "output": case["output"]} for case in cases]
    except (ValueError, KeyError, TypeError, EOFError, zlib.error, pickle.UnpicklingError) as error:
        raise DataError(
            f"{place}: field {field!r} is not readable ({error}); download the file again"
        ) from None


class _StringUnpickler(pickle.Unpickler):
    """Reads pickled strings and plain containers; refuses everything that could execute code."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def _json_lines(text: str) -> list[str]:
    """Return the source of the value in each line of JSON."""
    return [repr(json.loads(line)) for line in text.strip().splitlines()]


def _fenced(completion: str) -> str:
    """Return the last fenced block of Python in a completion, or the completion."""
    blocks = re.findall(r"```(?:python)?\n(.*?)```", completion, re.DOTALL)
    return blocks[-1] if blocks else completion
