"""The agent `reflect`: draft a repair, check and test it, and try again with what was found.

A program of the wrong form is returned with the parser's words, one that was tried before with a warning, and
one that fails a test with the test, to be diagnosed by the model before it writes the next one.
"""

import ast

from langgraph.graph import END, START, StateGraph

from cocos.agents.agent_play import AgentPlay, State, follow, writer
from cocos.prompts import CANNOT_RUN, DIAGNOSIS_REQUEST, TRIED_BEFORE
from cocos.python_parser import form_fault, syntax_tree


async def check(state: State) -> State:
    """Check the program's form, and whether it is new."""
    play = state["play"]
    repeats = _repeats(play)
    if fault := form_fault(play.turns[-1].code, play.problem.entry_point, play.problem.buggy_code):
        following, told, is_last = "syntax", CANNOT_RUN.format(fault=fault), False
    elif repeats[-1]:
        following, told, is_last = "repeat", TRIED_BEFORE, sum(repeats) >= play.setup.max_repeats
    else:
        return {"next": "test"}
    return {"told": told, "next": END if is_last or play.is_exhausted() else following}


async def test(state: State) -> State:
    """Run the tests."""
    return {"next": await state["play"].after_tests("reflect")}


async def reflect(state: State) -> State:
    """Let the model say what is wrong, from the failing test, and repair the program."""
    play = state["play"]
    told = [play.feedback()]
    if play.setup.protocol.is_chat:  # a model of plain transcripts knows its task's words only
        told.append(DIAGNOSIS_REQUEST)
    await play.write("reflect", "\n\n".join(told))
    return {}


def _repeats(play: AgentPlay) -> list[bool]:
    """Return for each turn whether its program equals the buggy one or an earlier one, comments aside."""
    codes = [play.problem.buggy_code, *(turn.code for turn in play.turns)]
    trees = [tree if isinstance(tree := syntax_tree(code), str) else ast.dump(tree) for code in codes]
    return [tree in trees[:i] for i, tree in enumerate(trees)][1:]


graph = StateGraph(State)
for node in (check, test, reflect):
    graph.add_node(node)
for name in ("draft", "syntax", "repeat"):
    graph.add_node(name, writer(name))
graph.add_edge(START, "draft")
graph.add_conditional_edges("check", follow, ["test", "syntax", "repeat", END])
graph.add_conditional_edges("test", follow, ["reflect", END])
for name in ("draft", "syntax", "repeat", "reflect"):
    graph.add_edge(name, "check")
