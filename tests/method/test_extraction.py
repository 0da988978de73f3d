"""The program found in an answer of a chat model: real shapes of answers, and generated ones around programs.

Programs here are our own, so they run in this process.
"""

import random
import re
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.extraction import extract
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, begin

TESTS = {
    "double": ("assert double(2) == 4", "assert double(5) == 10"),
    "is_prime": ("assert is_prime(7) is True", "assert is_prime(9) is False", "assert is_prime(1) is False"),
    "count_vowels": ("assert count_vowels('Hello') == 2", "assert count_vowels('') == 0"),
    "area": ("assert round(area(1), 3) == 3.142",),
    "encode": ("assert encode('abc') == 'bcd'", "assert decode(encode('xy')) == 'xy'"),
    "Stack": ("s = Stack()\ns.push(1)\nassert s.pop() == 1 and s.is_empty()",),
}
DOUBLE = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x ** 2"
PRIME = "def is_prime(n):\n    return n > 1 and all(n % k for k in range(2, int(n ** 0.5) + 1))"
VOWELS = "def count_vowels(s):\n    return sum(c in 'aeiou' for c in s.lower())"
STACK = """class Stack:
    def __init__(self):
        self.items = []
    def push(self, x):
        self.items.append(x)
    def pop(self):
        return self.items.pop()
    def is_empty(self):
        return not self.items"""


def fenced(code, language="python"):
    return f"```{language}\n{code}\n```"


def indented(text, by="    "):
    return textwrap.indent(text, by)


def is_right(code, problem):
    """Return whether a program passes; one that stops by itself does not."""
    space = {}
    try:
        for source in (code, problem.setup, *problem.scored_tests):
            exec(source, space)
    except Exception:
        return False
    return bool(code)


# name -> function under test, answer, source. Answers as chat models write them.
ANSWERS = {
    # the whole answer, or one block
    "bare": ("double", DOUBLE, "answer"),
    "block": ("double", f"Sure!\n\n{fenced(DOUBLE)}\n\nThis doubles x.", "block"),
    "no language": ("is_prime", f"{fenced(PRIME, '')}", "block"),
    "capital language": ("is_prime", fenced(PRIME, "Python"), "block"),
    "language with options": ("is_prime", fenced(PRIME, 'python title="prime.py"'), "block"),
    "language in braces": ("is_prime", fenced(PRIME, "{.python .numberLines}"), "block"),
    "tildes": ("double", f"~~~python\n{DOUBLE}\n~~~", "block"),
    "four backticks": ("double", f"````python\n{DOUBLE}\n````", "block"),
    "class": ("Stack", f"Here is the class.\n{fenced(STACK)}\nIt uses a list.", "block"),
    "lambda": ("double", f"{fenced('double = lambda x: 2 * x')}", "block"),
    "heading and steps": ("double", f"### Solution\n\n{fenced(DOUBLE)}\n\n### Steps\n1. Multiply.\n2. Return.", "block"),
    "prose before bare code": ("double", f"Here is the function:\n\n{DOUBLE}\n\nIt doubles x.", "lines"),
    "python tags": ("double", f"[PYTHON]\n{DOUBLE}\n[/PYTHON]", "lines"),
    "answer tags": ("double", f"<answer>\n{DOUBLE}\n</answer>", "lines"),
    "unclosed fence": ("double", f"```python\n{DOUBLE}", "block"),
    "only a closing fence": ("double", f"{DOUBLE}\n```\nThe function doubles.", "lines"),
    "words before the fence": ("double", f"The code: ```python\n{DOUBLE}\n```", "block"),
    "type hints and a docstring": ("double", fenced('def double(x: int) -> int:\n    """Double x."""\n    return 2 * x'), "block"),
    "carriage returns": ("double", fenced(DOUBLE).replace("\n", "\r\n"), "block"),
    # case 01: fences in lists and quotes
    "numbered list": ("is_prime", f"1. **Check small numbers** up to the root:\n\n{indented(fenced(PRIME), '   ')}\n\n2. Call it.", "cleaned"),
    "bullet list": ("count_vowels", f"- Solution:\n{indented(fenced(VOWELS), '  ')}\n- It handles upper case.", "cleaned"),
    "fence on the line of the mark": ("double", f"- {indented(fenced(DOUBLE), '  ').lstrip()}", "cleaned"),
    "quoted": ("double", indented(fenced(DOUBLE), "> "), "cleaned"),
    "quoted without a fence": ("double", indented(DOUBLE, "> "), "cleaned"),
    "indented Markdown block": ("double", f"The function is:\n\n{indented(DOUBLE)}\n\nIt doubles x.", "cleaned"),
    "tabs before a fence": ("double", indented(fenced(DOUBLE), "\t"), "cleaned"),
    "interactive session": ("double", fenced(">>> def double(x):\n...     return 2 * x\n...\n>>> double(2)\n4", "pycon"), "cleaned"),
    # case 02: blocks that need each other
    "imports apart": ("area", f"First, import:\n{fenced('import math')}\nThen:\n{fenced('def area(r):' + chr(10) + '    return math.pi * r * r')}", "blocks"),
    "helper apart": ("is_prime", f"{fenced('def divides(k, n):' + chr(10) + '    return n % k == 0')}\nNow:\n{fenced('def is_prime(n):' + chr(10) + '    return n > 1 and not any(divides(k, n) for k in range(2, int(n ** 0.5) + 1))')}", "blocks"),
    "helper after": ("is_prime", f"{fenced('def is_prime(n):' + chr(10) + '    return n > 1 and not any(divides(k, n) for k in range(2, int(n ** 0.5) + 1))')}\nwith:\n{fenced('def divides(k, n):' + chr(10) + '    return n % k == 0')}", "blocks"),
    "constant apart": ("count_vowels", f"{fenced('VOWELS = set(' + repr('aeiou') + ')')}\nand:\n{fenced('def count_vowels(s):' + chr(10) + '    return sum(c in VOWELS for c in s.lower())')}", "blocks"),
    "two functions": ("encode", f"{fenced('def encode(s):' + chr(10) + '    return str().join(chr(ord(c) + 1) for c in s)')}\n### decode\n{fenced('def decode(s):' + chr(10) + '    return str().join(chr(ord(c) - 1) for c in s)')}", "blocks"),
    "imports above prose": ("area", "We need math:\nimport math\n\nThe function:\n\ndef area(r):\n    return math.pi * r * r\n\nDone.", "lines"),
    # case 03: the last block is not the program
    "pytest after": ("double", f"{fenced(DOUBLE)}\nTests:\n{fenced('def test_double():' + chr(10) + '    assert double(2) == 4')}", "block"),
    "unittest after": ("double", f"{fenced(DOUBLE)}\n{fenced('import unittest' + chr(10) + 'class TestDouble(unittest.TestCase):' + chr(10) + '    def test(self):' + chr(10) + '        self.assertEqual(double(2), 4)')}", "block"),
    "main after": ("is_prime", f"{fenced(PRIME)}\nTo use it:\n{fenced('def main():' + chr(10) + '    print(is_prime(int(input())))' + chr(10) + 'main()')}", "block"),
    "other name after": ("double", f"{fenced(DOUBLE)}\nOr:\n{fenced('def double_shift(x):' + chr(10) + '    return x << 1')}", "block"),
    "line by line": ("double", f"{fenced(DOUBLE)}\nStep by step:\n{fenced('def double(x):')}\ndefines it.\n{fenced('    return 2 * x')}\nreturns.", "block"),
    "repeated until cut off": ("double", f"{fenced(DOUBLE)}\n\n{fenced(DOUBLE)}\n\n```python\ndef double(x):\n    return", "block"),
    "cut off in the tests": ("double", f"{fenced(DOUBLE)}\nTest it:\n```python\ndef test_double():\n    assert double(2)", "block"),
    "text block after": ("Stack", f"{fenced(STACK)}\nOutput:\n{fenced('class Stack works' + chr(10) + '1', 'text')}", "block"),
    "JavaScript after": ("double", f"{fenced(DOUBLE)}\n{fenced('class Doubler { static double(x) { return 2 * x; } }', 'javascript')}", "block"),
    "shell before": ("double", f"{fenced('pip install numpy', 'bash')}\n{fenced(DOUBLE)}", "block"),
    "usage after": ("double", f"{fenced(DOUBLE)}\nExample:\n{fenced('print(double(2))  # 4')}", "block"),
    "draft before": ("double", f"A first try:\n{fenced(WRONG)}\nThat squares. Correct is:\n{fenced(DOUBLE)}", "block"),
    "closing fence missing between blocks": ("double", f"```python\nprint(1)\n\n```python\n{DOUBLE}\n```", "block"),
    # case 04: thoughts
    "thought with a draft": ("double", f"<think>\n{fenced(WRONG)}\nHm, or a lambda.\n</think>\n\n{fenced('double = lambda x: 2 * x')}", "block"),
    "thought without its opening tag": ("double", f"I try\n{fenced(WRONG)}\n</think>\n{fenced(DOUBLE)}", "block"),
    "assignment in a thought before bare code": ("double", f"<think>\nSay\nn = 3\n</think>\n{DOUBLE}", "lines"),
    "draft in a thought before bare code": ("double", f"<think>\n{WRONG}\n</think>\n{DOUBLE}", "lines"),
    "channels": ("double", f"<|channel|>analysis<|message|>{fenced(WRONG)}<|end|><|start|>assistant<|channel|>final<|message|>{fenced(DOUBLE)}", "block"),
    # case 05: invisible characters and special tokens
    "special token": ("double", f"{DOUBLE}<|im_end|>", "cleaned"),
    "end of sentence": ("double", f"{DOUBLE}</s>", "cleaned"),
    "terminal codes": ("double", f"\x1b[?25l{DOUBLE}\x1b[0m", "cleaned"),
    "zero width": ("double", f"\u200b{DOUBLE}", "cleaned"),
    "no-break spaces": ("double", DOUBLE.replace("    ", "\u00a0" * 4), "cleaned"),
    "byte order mark": ("double", f"\ufeff{DOUBLE}", "cleaned"),
    "no-break spaces in a block": ("double", fenced(DOUBLE.replace("    ", "\u00a0" * 4)), "cleaned"),
    # case 06: forms of the fence
    "closing fence on the last line": ("double", f"```python\n{DOUBLE}```\nIt doubles x.", "block"),
    "all on one line": ("double", "```python def double(x): return 2 * x```", "block"),
    "language on the next line": ("double", f"```\npython\n{DOUBLE}\n```", "block"),
    "docstring with fences": ("double", fenced('def double(x):\n    """Double x.\n\n    ```\n    double(2)  # 4\n    ```\n    """\n    return 2 * x'), "block"),
    "example of the input first": ("double", f"Input:\n\n{fenced('2', '')}\n\nSolution:\n\n{fenced('double = lambda x: 2 * x')}", "block"),
    # case 07: lines after the definitions
    "reads input at the end": ("is_prime", fenced(f"{PRIME}\n\nn = int(input('A number: '))\nprint(is_prime(n))"), "block"),
    "uses an undefined name at the end": ("double", fenced(f"{DOUBLE}\n\nprint(double_number(4))"), "block"),
    "prints at the end": ("double", fenced(f"{DOUBLE}\n\nprint(double(4))"), "block"),
    "decorated at the end": ("double", fenced(f"from functools import lru_cache\n\n{DOUBLE}\n\ndouble = lru_cache(double)"), "block"),
    "table after the function": ("count_vowels", fenced("def count_vowels(s):\n    return sum(map(V.__contains__, s.lower()))\n\nV = set('aeiou')"), "block"),
}  # fmt: skip


def problem_of(function):
    return Problem(function, "Write it.", TESTS[function])


@pytest.mark.parametrize("name", ANSWERS)
def test_a_chat_answer_with_a_right_program_is_right(name):
    function, answer, source = ANSWERS[name]
    problem = problem_of(function)
    found = extract(answer, problem.called_names)
    assert is_right(found.code, problem), found
    assert found.source == source


def test_what_parses_and_defines_what_is_called_is_the_program():
    for code in (DOUBLE, f"import math\n\n{DOUBLE}\n\nLIMIT = 3", '"""<think>"""\n' + DOUBLE):
        assert extract(code, {"double"}) == (code, "answer")


def test_own_asserts_and_input_are_no_part_of_the_program_whatever_is_around_it():
    for tail in ("\n# Test cases\nassert double(2) == 4\nassert double(3) == 7", "n = input()"):
        assert extract(f"{DOUBLE}\n{tail}", {"double"}) == (DOUBLE, "answer")
        assert extract(fenced(f"{DOUBLE}\n{tail}"), {"double"}) == (DOUBLE, "block")


def test_lines_that_read_stay_where_functions_need_what_they_define():
    code = "def double(x):\n    return FACTOR * x\n\nFACTOR = int(input())"
    assert extract(fenced(f"{code}\nprint(double(1))"), {"double"}).code == code


NO_PROGRAM = {
    "": "no answer",
    "[DONE]": "no answer",
    "Sorry, I cannot help.": "prose",
    f"<think>\nMaybe:\n{fenced(DOUBLE)}\nBut wait, what if x is a string?": "thought",
    f"Sure.\n<think>\nMaybe:\n{fenced(DOUBLE)}\nBut": "prose",
    f"<|channel|>analysis<|message|>Maybe {fenced(DOUBLE)}": "thought",
    f"{fenced('class Doubler { double(x) { return 2 * x; } }', 'javascript')}": "broken",
}


@pytest.mark.parametrize(("answer", "source"), NO_PROGRAM.items())
def test_an_answer_without_a_program_says_why(answer, source):
    found = extract(answer, {"double"})
    assert found.source == source and not is_right(found.code, problem_of("double"))


@pytest.mark.parametrize(
    "program",
    [
        "class Doubler\n    factor: int = 2\n\n    def double(x):\n        return 2 * x",
        "import math\n\ndef double(x)\n    return 2 * x",
        f"{DOUBLE}\n  x = 3",
    ],
)
def test_a_piece_of_a_broken_program_is_not_the_program(program):
    for answer in (program, fenced(program)):
        assert extract(answer, {"double"}) == (program, "broken")


CUT_OFF = f"```python\n{DOUBLE}\n\ndef test_double():\n    assert double(2) == 4\n    assert double("


def test_what_is_whole_in_an_answer_that_is_cut_off_counts_in_evaluation_alone(executor):
    problem = problem_of("double")
    model = ScriptedGenerator(lambda _: CUT_OFF + "1" * 100, max_completion_length=len(CUT_OFF))
    chat = named_protocol("chat")
    for rules, is_right_, source in (
        (Rules(keeps_truncated=True), True, "block"),
        (Rules(), False, "cut off"),
    ):
        turn = rollout(begin([problem]), model, executor, chat, 1, rules)[0].turns[0]
        assert turn.completion.is_truncated
        assert (turn.result.is_right, turn.source) == (is_right_, source)
    assert extract(CUT_OFF, problem.called_names).source == "broken"
    # Nothing whole defines what is called: the error of the unfinished function shows.
    assert (
        extract(
            "```python\nimport math\n\ndef double(x):\n    return (", {"double"}, is_truncated=True
        ).source
        == "broken"
    )


TAGGED = 'def double(x):\n    """<think>"""\n    return 2 * x  # </think>'


@pytest.mark.parametrize(
    ("thought", "text", "is_right"),
    [
        (f"<think>\n{fenced(DOUBLE)}</think>", f"\n\n{fenced(DOUBLE)}", True),
        ("Let me think.</think>", f"\n{DOUBLE}", True),  # the template opens the thought
        ("<think>I double it, and then", "", False),
        ("", TAGGED, True),
        ("<think>No.</think>", f"\n{fenced(TAGGED.replace('# </think>', ''))}", True),
    ],
)
def test_a_turn_has_its_thought_beside_the_answer_and_the_ids_of_both(executor, thought, text, is_right):
    model = ScriptedGenerator(lambda _: thought + text)
    [played] = rollout(begin([problem_of("double")]), model, executor, named_protocol("chat"), 2)
    for turn in played.turns:
        completion = turn.completion
        assert (completion.thought, completion.text, turn.result.is_right) == (thought, text, is_right)
        assert model.show(completion.token_ids) == thought + text
        assert (completion.num_thought_tokens or 0) == len(thought)  # an id per character
    # The next prompt goes on after the tokens that were sampled.
    assert thought + text in model.show(played.turns[1].prompt_ids)


def test_the_called_names_are_those_that_tests_and_setup_use_and_do_not_bind():
    def names(*tests, setup="", entry_point=""):
        return Problem("1", "t", tests, test_setup_code=setup, entry_point=entry_point).called_names

    assert names("assert math.isclose(f(1), 2)", setup="import math") == {"f"}
    assert names("s = Stack()\nassert [x for x in s] == sorted(map(key, s))") == {"Stack", "key"}
    assert names("assert check(f)", setup="def check(g):\n    return g(1)") == {"f"}
    assert names("assert f(g(1))", entry_point="f") == {"f"}


# -- generated shapes around right programs --

TRAPS = [
    "> quoted",
    ">>> f(1)",
    "<think>",
    "</think>",
    "a\u200bb",
    "\u00a0",
    "```",
    "```python",
    "1. ```python",
    "<|im_end|>",
    "def f(x):",
    "import nothing_of_this_name",
    "It's here",
    "assert double(1) == 3",
]


@st.composite
def right_programs(draw):
    """Return a program that defines `double`, and a constant text `TEXT` that extraction must not change."""
    lines = draw(st.lists(st.sampled_from(TRAPS), max_size=3))
    text = "\n".join(lines)
    parts = draw(st.permutations(["import math", "LIMIT = 10", "def helper(x):\n    return x + x"]))
    body = draw(st.sampled_from(["return 2 * x", "return helper(x)", "y = x\n    return x + y"]))
    docstring = f'    """Double.\n\n{indented(text)}\n    """\n' if draw(st.booleans()) else ""
    comment = f"    # {lines[0]}\n" if lines and draw(st.booleans()) else ""
    literal = repr(text) if draw(st.booleans()) else f"'''{text}\n'''[:-1]"
    end = draw(st.sampled_from(["", "\n\nassert double(2) == 5"]))
    function = f"def double(x):\n{docstring}{comment}    {body}"
    return "\n\n".join([*parts, f"TEXT = {literal}", function]) + end, text


def split_in_two(code, rng):
    at = code.index("TEXT =")
    return f"First:\n{fenced(code[:at].strip())}\nThen:\n{fenced(code[at:])}"


def session(code, rng):
    lines = code.split("\n")
    prompts = [">>> " if line[:1].strip() and line[:1] not in "'>" else "... " for line in lines]
    return fenced("\n".join(p + line for p, line in zip(prompts, lines, strict=True)), "pycon")


# shape -> whether the program comes out to the character. The others lose what they add to it, and must run.
SHAPES = {
    "as it stands": (lambda code, rng: code, True),
    "marker": (lambda code, rng: f"{code}\n[DONE]", True),
    "fence": (lambda code, rng: fenced(code, rng.choice(["", "python", "py", "Python3"])), True),
    "prose around": (
        lambda code, rng: f"Here you are:\n\n{fenced(code)}\n\nIt doubles, isn't it nice?",
        True,
    ),
    "tildes": (lambda code, rng: f"~~~python\n{code}\n~~~", True),
    "draft before": (lambda code, rng: f"Draft:\n{fenced(WRONG)}\nBetter:\n{fenced(code)}", True),
    "tests after": (
        lambda code, rng: (
            f"{fenced(code)}\nTests:\n{fenced('def test_it():' + chr(10) + '    assert double(1)')}"
        ),
        True,
    ),
    "output after": (lambda code, rng: f"{fenced(code)}\nOutput:\n{fenced('4', '')}", True),
    "other language after": (
        lambda code, rng: f"{fenced(code)}\n{fenced('int f() { return 1; }', 'c')}",
        True,
    ),
    "thought before": (lambda code, rng: f"<think>\n{fenced(WRONG)}\nNo.\n</think>\n{fenced(code)}", True),
    "list": (lambda code, rng: f"1. Write:\n\n{indented(fenced(code), '   ')}\n\n2. Done.", False),
    "quote": (lambda code, rng: re.sub("^", "> ", fenced(code), flags=re.M), False),
    "special token": (lambda code, rng: f"{fenced(code)}<|im_end|>", True),
    "special token inside": (lambda code, rng: f"```python\n{code}<|im_end|>\n```", False),
    "byte order mark": (lambda code, rng: f"```python\n\ufeff{code}\n```", False),
    "terminal codes": (lambda code, rng: f"```python\n\x1b[0m{code}\x1b[0m\n```", False),
    "two blocks": (split_in_two, False),
    "session": (session, False),
}


@settings(max_examples=400, deadline=None, database=None)
@given(right_programs(), st.sampled_from(sorted(SHAPES)), st.integers(0, 9))
def test_no_right_program_is_lost_and_none_changed_that_parses(program, shape, seed):
    code, text = program
    wrap, is_exact = SHAPES[shape]
    problem = Problem("1", "t", ("assert double(2) == 4", f"assert TEXT == {text!r}"))
    found = extract(wrap(code, random.Random(seed)), problem.called_names)
    assert is_right(found.code, problem), found
    if is_exact and "== 5" not in code:  # otherwise what the tests do not need goes with the assert
        assert found.code == code.strip("\n").rstrip()


def test_any_number_of_echoed_markers_is_dropped():
    program = "def double(x):\n    return 2 * x"
    assert extract("[BEGIN]\n" * 5000 + program, ("double",)).code == program
