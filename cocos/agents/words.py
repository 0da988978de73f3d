"""Words of the agents: system messages, tools and requests. Needs no package of the agents."""

from dataclasses import replace
from typing import Any

from cocos.prompts import PromptProtocol

AGENT_INSTRUCTION = "Repair the program. Keep the function's name and its parameters."
DIAGNOSIS_REQUEST = "Say first, in one or two sentences, what the program does wrong, and in which line."
CANNOT_RUN = "The program above cannot be tested: {fault}."
TRIED_BEFORE = (
    "The program above is one that was tried before and fails. The error is somewhere else: write a program "
    "that differs from all above."
)
UNCHANGED = "It is the program to repair, without a change. Write a program that differs from it."
TOOLS_REQUEST = "Call run_code with the whole program."
SUBMIT_REQUEST = "Call submit with this program."
CALLED_BEFORE = "Warning: this call repeats an earlier one, and its result is the same. Change the program."
BAD_CALL = "This answer is refused: {fault}. Call run_code with a whole program, or submit."

_SYSTEM = """\
You repair Python programs. The tests say what the program has to return. Bugs are often of these kinds:
- off by one: a range, a slice or an index begins or ends one too early or too late
- a wrong operator: < for <=, and for or, + for -, // for /
- a wrong order: swapped arguments, a statement before the one that it needs, a sort in reverse
- a missing case: an empty list, zero, a negative number, the last element
- state shared between calls: a default argument or a global that is changed"""
SYSTEM_PROMPTS = {
    "reflect": f"{_SYSTEM}\nFollow the failing test through the program before you change it.",
    "react": f"{_SYSTEM}\nEvery program that you write is run; you are told which tests fail.",
    "tools": f"{_SYSTEM}\nTry each repair with run_code, and call submit when one passes the tests.",
}


def _tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = (
    _tool(
        "run_code",
        "Run a program against the tests, and say which fail.",
        code="The whole Python program.",
        reason="What was wrong, in a sentence.",
    ),
    _tool("submit", "Submit the final program and end.", code="The whole Python program."),
)


def agent_protocol(protocol: PromptProtocol, agent: str, has_system: bool = False) -> PromptProtocol:
    """Return the wording of an agent: the protocol's, with a system message and the agent's requests.

    Args:
        protocol: A protocol. One that is plain text stays as it is: its model knows no other words.
        agent: `reflect`, `react`, `tools`, or `none` for the turn loop.
        has_system: Whether the protocol has a system message of the user's, which replaces the agent's.

    Raises:
        ValueError: The protocol is plain text, but the agent's tools need a chat.

    """
    if not protocol.is_chat:
        if agent == "tools":
            raise ValueError("--agent tools needs a chat; choose --protocol chat, repair or fix")
        return protocol
    if not has_system:
        protocol = protocol.with_system(SYSTEM_PROMPTS.get(agent, ""))
    if agent == "tools":
        return replace(protocol, first_ending=TOOLS_REQUEST, tools=TOOLS)
    return protocol if agent == "none" else replace(protocol, instruction=AGENT_INSTRUCTION)
