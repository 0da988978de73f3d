"""The words the model sees, character by character, and the program found in its answer."""

import ast
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocos.agents.words import agent_protocol
from cocos.extraction import extract_code
from cocos.files.json_lines import DataError
from cocos.problems import Problem, load_problems
from cocos.prompts import answer, named_protocol, own_protocol
from tests.support.paths import dataset

CODE = "def double(x):\n    return 2 * x"

FIRST_TURN = """\
You are an expert Python programmer, and here is your task: Write a function to double a number. \
Your code should pass these tests:

assert double(2) == 4
assert double(0) == 0
assert double(-1) == -2

[BEGIN]
"""

INSTRUCTION = (
    "There might be an error in the code above because of lack of understanding of the question. "
    "Please correct the error, if any, and rewrite the solution. "
    "Only output the final correct Python program!"
)


def test_the_first_turn_is_golden(problem):
    assert named_protocol("cocos").first_turn(problem) == FIRST_TURN


def test_where_no_test_is_shown_none_is_promised(problem):
    hidden = replace(problem, test_list=(), hidden_test_list=problem.test_list)
    assert named_protocol("cocos").first_turn(hidden) == (
        "You are an expert Python programmer, and here is your task: Write a function to double a number.\n\n[BEGIN]\n"
    )


@pytest.mark.parametrize(("prompt_tests", "shown"), [(None, 3), (5, 3), (1, 1), (0, 0)])
def test_the_prompt_shows_the_first_visible_tests(problem, prompt_tests, shown):
    few_shot = [replace(problem, task_id="2", text="Write another.")]
    own = replace(
        own_protocol("mine", "{text}{tests}", "{feedback}", is_chat=True), prompt_tests=prompt_tests
    )
    few = named_protocol("cocos-fewshot", few_shot, prompt_tests)
    for words in (
        named_protocol("cocos", prompt_tests=prompt_tests),
        named_protocol("chat", (), prompt_tests),
        own,
    ):
        message = words.first_turn(problem)
        assert [test in message for test in problem.test_list] == [n < shown for n in range(3)]
    assert few.first_turn(problem).count("assert") == 2 * shown  # the example shows as many as the problem
    hidden = replace(problem, test_list=problem.test_list[:0])
    assert named_protocol("cocos", prompt_tests=0).first_turn(problem) == named_protocol("cocos").first_turn(
        hidden
    )


def test_own_wording_is_used_character_by_character(problem):
    own = own_protocol("mine", "A {text} {{x}}\n{tests}", "{feedback}Again.", is_chat=True)
    tests = "\n".join(problem.test_list)
    assert own.first_turn(problem) == f"A {problem.text} {{x}}\n{tests}"
    assert own.later_turn() == "Again." and own.later_turn(feedback="No.") == "No.\n\nAgain."
    named = own_protocol("mine", "Write {entry_point}.\n{tests}", "Again.", is_chat=False)
    assert named.first_turn(replace(problem, entry_point="f")) == f"Write f.\n{tests}"
    with pytest.raises(DataError, match="has no entry_point, which mine shows"):
        named.first_turn(replace(problem, entry_point=""))
    plain = own_protocol("mine", "{text}", "Again.", is_chat=False)  # feedback without a place comes first
    assert plain.later_turn(is_closed=False, feedback="No.") == "\n[DONE]\n\nNo.\n\nAgain."


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ("{task}", "x", r"first_turn: unknown placeholder \{task\}; the known ones are \{text\}, \{entry_point\}, \{signature\}"),
        ("{text}", "{text}", r"later_turn: unknown placeholder \{text\}; the known ones are \{feedback\}"),
        ("{text:>9}", "x", "unknown placeholder"),
        ("{text} {", "x", "write a brace of the text twice"),
        ("Do it.", "x", r"\{text\} is missing, so the model would not see the task"),
    ],
)  # fmt: skip
def test_own_wording_with_an_unknown_or_missing_placeholder_is_refused(first, later, message):
    with pytest.raises(ValueError, match=message):
        own_protocol("mine", first, later, is_chat=True)


def test_a_later_turn_is_golden_and_closes_an_answer_that_was_cut_off():
    words = named_protocol("cocos")
    assert words.later_turn() == f"\n\n{INSTRUCTION}\n\n[CORRECT]\n"
    assert words.later_turn(is_closed=False) == f"\n[DONE]\n\n{INSTRUCTION}\n\n[CORRECT]\n"


def test_an_answer_is_the_code_and_done_on_a_line_of_its_own():
    assert answer(CODE) == answer(f"\n{CODE}\n\n") == f"{CODE}\n[DONE]"


def test_few_shot_problems_stand_solved_before_turn_1_and_begin_marks_later_turns(problem):
    solved = Problem("0", "Write one.", ("assert one() == 1",), "def one():\n    return 1\n")
    few_shot = named_protocol("cocos-fewshot", [solved, solved])
    shot = (
        "You are an expert Python programmer, and here is your task: Write one. "
        "Your code should pass these tests:\n\nassert one() == 1\n\n[BEGIN]\n"
        "def one():\n    return 1\n[DONE]\n\n"
    )
    assert few_shot.first_turn(problem) == shot + shot + FIRST_TURN
    assert few_shot.later_turn() == f"\n\n{INSTRUCTION}\n\n[BEGIN]\n"


def test_the_first_examples_are_shown_and_never_the_problem_that_is_asked():
    solved = [
        Problem(str(n), f"Return {n}.", (f"assert f() == {n}",), f"def f():\n    return {n}")
        for n in range(5)
    ]
    words = named_protocol("cocos-fewshot", solved, num_examples=2)
    shown = [
        [n for n in range(5) if f"    return {n}\n[DONE]" in words.first_turn(asked)] for asked in solved
    ]
    assert shown == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]


FENCED = "Answer with the whole program in one ```python code block."
CHAT_TURN = FIRST_TURN.removesuffix("[BEGIN]\n") + FENCED
REPAIR = (
    "The program above may be wrong. Compare it with the task and the tests, find the error, if any, and "
    "repair it. If there is none, repeat the program as it is."
)


def test_a_chat_is_told_what_to_correct_in_the_papers_words_or_to_repair(problem):
    for name, instruction in (("chat", INSTRUCTION), ("repair", REPAIR)):
        words = named_protocol(name)
        assert words.is_chat
        assert words.first_turn(problem) == CHAT_TURN
        assert words.later_turn() == words.later_turn(is_closed=False) == f"{instruction}\n\n{FENCED}"
    assert not named_protocol("cocos").is_chat


def test_the_protocol_for_repairs_shows_the_program_in_a_block_and_the_tests_below_a_blank_line():
    buggy = "def double(x):\n    return x"
    tests = ("assert double(2) == 4",)
    problem = Problem("1", f"Fix the bugs in this function.\n\n{buggy}", tests, buggy_code=buggy)
    words = named_protocol("fix")
    assert words.first_turn(problem) == (
        "You are an expert Python programmer, and here is your task: Fix the bugs in this function.\n\n"
        f"```python\n{buggy}\n```\n\nYour code should pass these tests:\n\nassert double(2) == 4\n\n{FENCED}"
    )
    assert words.later_turn() == named_protocol("repair").later_turn()
    # Words of the task that are those of the program stay words.
    short = Problem("1", "Fix x in this function.\n\nx", tests, buggy_code="x")
    assert "Fix x in this function.\n\n```python\nx\n```\n\nYour" in words.first_turn(short)


def test_an_agent_has_a_system_message_and_its_own_request_unless_the_transcript_is_plain(problem):
    plain = named_protocol("cocos")
    assert agent_protocol(plain, "reflect") == plain
    for agent in ("reflect", "react"):
        words = agent_protocol(named_protocol("fix"), agent)
        assert "off by one" in words.system and "state shared between calls" in words.system
        assert words.later_turn(feedback="It fails.") == (
            f"It fails.\n\nRepair the program. Keep the function's name and its parameters.\n\n{FENCED}"
        )
    assert agent_protocol(named_protocol("fix").with_system("Mine."), "react", True).system == "Mine."
    assert agent_protocol(named_protocol("fix"), "none") == named_protocol("fix")
    tools = agent_protocol(named_protocol("fix"), "tools")
    assert tools.first_turn(problem).endswith("\n\nCall run_code with the whole program.")
    assert [tool["function"]["name"] for tool in tools.tools] == ["run_code", "submit"]
    with pytest.raises(ValueError, match="--agent tools needs a chat; choose --protocol chat, repair or fix"):
        agent_protocol(plain, "tools")


def test_feedback_stands_before_the_instruction(problem):
    feedback = "Your program failed."
    assert (
        named_protocol("cocos").later_turn(feedback=feedback)
        == f"\n\n{feedback}\n\n{INSTRUCTION}\n\n[CORRECT]\n"
    )
    assert named_protocol("cocos").later_turn(False, feedback).startswith(f"\n[DONE]\n\n{feedback}\n\n")
    assert named_protocol("repair").later_turn(feedback=feedback) == f"{feedback}\n\n{REPAIR}\n\n{FENCED}"


def test_challenge_tests_are_never_shown():
    hidden = Problem("1", "t", ("assert f() == 1",), challenge_test_list=("assert f() == 'hidden'",))
    assert "hidden" not in named_protocol("cocos").first_turn(hidden)


def test_repairs_of_other_programs_stand_in_the_system_message_of_a_chat(problem):
    shown = replace(problem, code="def f(x):\n    return x + 1", buggy_code="def f(x):\n    return x - 1")
    protocol = named_protocol("fix", [shown, shown])
    example = (
        "A program with a bug:\n\n```python\ndef f(x):\n    return x - 1\n```\n\n"
        "The repaired program:\n\n```python\ndef f(x):\n    return x + 1\n```"
    )
    assert protocol.system == f"Example 1. {example}\n\nExample 2. {example}"
    assert protocol.first_turn(problem) == named_protocol("fix").first_turn(problem)
    assert protocol.with_system("Be brief.").system == f"Be brief.\n\n{protocol.system}"
    assert agent_protocol(named_protocol("fix"), "none").system == ""


def test_protocols_that_cannot_be_met_are_refused_with_a_remedy(problem):
    unsolved = Problem("1", "t", ("assert True",))
    for name, shots, remedy in [
        ("cocos", [problem], "use --protocol cocos-fewshot"),
        ("cocos-fewshot", [], "give --few_shot_data FILE"),
        ("cocos-fewshot", [problem, unsolved], "give --few_shot_data FILE"),
        ("chat", [problem], "use --protocol cocos-fewshot, or give problems with code and buggy_code"),
        ("poem", [], "choose one of cocos, cocos-fewshot, chat, repair"),
    ]:
        with pytest.raises(ValueError, match=remedy):
            named_protocol(name, shots)


OTHER = "def double(x):\n    return x + x"
EXTRACTIONS = {
    "as it should be": (f"{CODE}\n[DONE]", CODE),
    "text after the marker": (f"{CODE}\n[DONE]\n\nThis doubles.\n[BEGIN]\n{OTHER}", CODE),
    "the marker on the last line of code": (f"{CODE}[DONE]", CODE),
    "blank lines around": (f"\n\n{CODE}\n\n\n[DONE]", CODE),
    "an echo of the first marker": (f"[BEGIN]\n{CODE}\n[DONE]", CODE),
    "an echo of both markers": (f"[BEGIN]\n[CORRECT]\n{CODE}\n[DONE]", CODE),
    "an echo after prose": (f"Here you are:\n\n[BEGIN]\n{CODE}\n[DONE]", CODE),
    "an echo and a second attempt": (f"[BEGIN]\n{CODE}\n\n[CORRECT]\n{OTHER}\n[DONE]", CODE),
    "a second attempt without done": (f"{CODE}\n\n{INSTRUCTION}\n\n[CORRECT]\n{OTHER}", CODE),
    "done inside the fence": (f"```python\n{CODE}\n[DONE]\n```", CODE),
    "a fence with no definition": ("Try:\n```python\nx = 2\n```\nand so on.", "x = 2"),
    "prose after": (f"{CODE}\n\nThis multiplies the number by two.", CODE),
    "prose around": (f"For example, this works:\n{CODE}\nIt doubles.\nIsn't it nice?", CODE),
    "imports and prose": (f"The solution:\nimport math\n\n{CODE}\n\nDone.", f"import math\n\n{CODE}"),
    "the next task made up": (
        f"{CODE}\n\nYou are an expert Python programmer, and here is your task: Write f. "
        "Your code should pass these tests:\n\nassert f() == 1\n\n[BEGIN]\ndef f():\n    return 1\n[DONE]",
        CODE,
    ),
    "the next task without its marker": (f"{CODE}\n\nYou are an expert Python programmer, and here is your task: Write f.\n\n{OTHER}", CODE),
    "a call cut off after the solution": (f"{CODE}\n\nprint(double(", CODE),
    "crlf": (f"{CODE}\n[DONE]".replace("\n", "\r\n"), CODE),
    "nothing": ("", ""),
    "only the marker": ("[DONE]", ""),
    "only echoes": ("[BEGIN]\n[DONE]", ""),
    "only prose": ("Sorry, I cannot help with that.", ""),
    "only prose in lines": ("First, sort the list.\nThen take the largest.\n[DONE]", ""),
    "only prose in a fence": ("```\nI do not know\n```", ""),
}  # fmt: skip


@pytest.mark.parametrize(("completion", "code"), EXTRACTIONS.values(), ids=EXTRACTIONS.keys())
def test_the_program_is_found_in(completion, code):
    assert extract_code(completion) == code


BROKEN = {
    "cut off inside a function": "def double(x):\n    y = 2 * x\n    return (y",
    "cut off after a branch that parses": "def double(x):\n    if x == 0:\n        return 0\n    return x +",
    "a missing colon below an import": "import math\n\ndef double(x)\n    return 2 * x",
    "an indentation error": "def double(x):\n    return 2 * x\n  x = 3",
    "an unclosed docstring": 'def double(x):\n    """Doubles\n    return 2 * x',
    "a program of Python 2": "print 'hello'",
    "an indented piece": "    for x in xs\n        ys.append(x)",
}


@pytest.mark.parametrize("program", BROKEN.values(), ids=BROKEN.keys())
def test_a_program_that_does_not_parse_stands_as_it_is_so_that_its_error_shows(program):
    # A piece of it that happens to parse would earn part of a reward, under another error's name.
    assert extract_code(program) == program
    with pytest.raises(SyntaxError):
        ast.parse(extract_code(f"{program}\n[DONE]"))


def test_backticks_inside_a_string_are_no_fence():
    inline = 'def fence(s):\n    return "```python" + s + "```"'
    docstring = 'def f(x):\n    """Doubles.\n\n    ```\n    f(1)\n    ```\n    """\n    return 2 * x'
    assert extract_code(answer(inline)) == inline
    assert extract_code(answer(docstring)) == docstring


@pytest.mark.parametrize("name", ["mbpp.jsonl", "sanitized-mbpp.json"])
def test_every_reference_solution_survives_answer_and_extraction(name):
    problems = load_problems(dataset(name))
    for wrap in (
        answer,
        "[BEGIN]\n{}\n[DONE]".format,
        "Sure!\n```python\n{}\n```\nThat is it.".format,
        "Here is the code.\n{}\n\nYou are an expert Python programmer, and here is".format,
    ):
        # Trailing blanks carry no meaning; all else is kept to the character.
        mangled = [p.task_id for p in problems if extract_code(wrap(p.code)) != p.code.strip("\n").rstrip()]
        assert mangled == []


@settings(max_examples=100, deadline=None, database=None)
@given(
    st.lists(
        st.sampled_from(
            ["def f(x):\n", "    return 1\n", "```python\n", "[BEGIN]\n", "x = 1\n", "So:\n", "\n"]
        )
    )
)
def test_extraction_takes_anything_and_invents_nothing(pieces):
    completion = "".join(pieces)
    code = extract_code(completion)
    assert code in completion and "[BEGIN]" not in code.split("\n")[0]
    assert extract_code(code) == code


def test_the_signature_stands_behind_the_task_unless_the_task_has_it(problem):
    shown = named_protocol("cocos", prompt_tests=0, has_signature=True)
    assert shown.first_turn(problem) == (
        f"You are an expert Python programmer, and here is your task: {problem.text} "
        f"Your code should contain the line `def double(x):`.\n\n[BEGIN]\n"
    )
    in_text = replace(problem, text='def double(x):\n    """Double a number."""')
    plain = named_protocol("cocos", prompt_tests=0)
    assert shown.first_turn(in_text) == plain.first_turn(in_text)
    assert shown.first_turn(replace(problem, code="")) == plain.first_turn(problem)
