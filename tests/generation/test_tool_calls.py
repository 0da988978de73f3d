"""The forms in which models write calls of tools."""

import pytest

from cocos.generation.tool_calls import ToolCall, call_fault, format_tool_call, parse_tool_calls

CODE = "def f():\n    return 1"
JSON = '{"name": "run_code", "arguments": {"code": "def f():\\n    return 1"}}'
FORMS = {
    "qwen": f"I will run it.\n<tool_call>\n{JSON}\n</tool_call>",
    "qwen, after a prompt that ends with the opening tag": f"{JSON}\n</tool_call>",
    "smollm": f"<tool_call>[{JSON}]</tool_call>",
    "qwen coder": f"<tool_call>\n<function=run_code>\n<parameter=code>\n{CODE}\n</parameter>\n</function>\n</tool_call>",
    "llama": JSON.replace("arguments", "parameters"),
    "llama with its special token": "<|python_tag|>" + JSON.replace("arguments", "parameters"),
    "mistral": f"[TOOL_CALLS][{JSON}]",
    "mistral without its special token": f"[{JSON}]",
    "arguments encoded twice": format_tool_call(
        "run_code", '"{\\"code\\": \\"def f():\\\\n    return 1\\"}"'
    ),
    "line ends inside a string": JSON.replace("\\n", "\n"),
    "truncated after the call": f"<tool_call>\n{JSON}\n</tool",
}


@pytest.mark.parametrize("text", [text for name, text in FORMS.items() if name != "truncated after the call"])
def test_a_call_is_read_in_the_form_of(text):
    assert parse_tool_calls(text) == [ToolCall("run_code", {"code": CODE})]


def test_several_calls_are_read_in_order():
    calls = parse_tool_calls(
        f"<tool_call>{JSON}</tool_call>\n<tool_call>{JSON.replace('run_code', 'submit')}</tool_call>"
    )
    assert [call.name for call in calls] == ["run_code", "submit"]


@pytest.mark.parametrize(
    "text", ["", "I am done.", CODE, f"```python\n{CODE}\n```", '{"code": "x"}', "[1, 2]"]
)
def test_other_text_is_no_call(text):
    assert parse_tool_calls(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Words.", "it calls no tool"),
        ('<tool_call>{"name": "run_code"', "it is not valid JSON (Expecting ',' delimiter: line 1 column 20 (char 19))"),
        (FORMS["truncated after the call"], "it is not valid JSON"),
        ("<tool_call>7</tool_call>", "it needs a name and an object of arguments"),
        (format_tool_call("run_code", '"x = 1"'), "it needs a name and an object of arguments"),
        (format_tool_call("search", "{}"), "there is no tool 'search'"),
        (format_tool_call("run_code", ""), "the argument code is missing, or not a string"),
        (format_tool_call("run_code", '{"code": ["x"]}'), "the argument code is missing, or not a string"),
        (JSON, ""),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_made_has_a_fault(text, fault):
    tools = [{"function": {"name": "run_code"}}]
    found = call_fault(parse_tool_calls(text), tools, "code")
    assert found == fault or (fault and found.startswith(fault))


@pytest.mark.parametrize("text", ["<tool_call>" + "[" * 100_000, "{" + '"name":' * 50_000])
def test_a_hostile_text_is_a_malformed_call(text):
    [call] = parse_tool_calls(text)
    assert call.problem
