"""The agents as LangGraph graphs, and the playing of a batch of trajectories with one of them.

`react`: propose a program, execute it, reflect on the tests that fail, propose again.

`reflect`: draft a repair, check and test it, and try again with what was found. A program of the wrong form
is returned with the parser's words, one that was tried before with a warning, and one that fails a test with
the test, to be diagnosed by the model before it writes the next one.

`tools`: the model calls run_code(code, reason) to test programs, and submit(code) to end.
"""

import ast
import asyncio
from collections.abc import Callable, Sequence

from langgraph.graph import END, START, StateGraph

from cocos.agents import words
from cocos.agents.play import AgentContext, AgentPlay, SharedModel, State, follow, tester, writer
from cocos.executor import Executor
from cocos.files.python_parser import form_fault, syntax_tree
from cocos.generation import Generator, Role
from cocos.generation.interface import encodable
from cocos.generation.tool_calls import call_fault, parse_tool_calls
from cocos.literals import Agent
from cocos.prompts import PromptProtocol, passes_visible_tests
from cocos.trajectories import Rules, Trajectory


async def _find_feedback(state: State) -> State:
    """Find what to tell of the failing tests; the same failure `max_repeats` times ends the agent."""
    play, feedback = state["play"], state["play"].feedback()
    times = [*(turn.feedback for turn in play.turns[1:]), feedback].count(feedback)
    return {"feedback": feedback, "next": END if times >= play.context.max_repeats else "propose"}


REACT = StateGraph(State)
REACT.add_node("propose", writer("propose"))
REACT.add_node("execute", tester("reflect"))
REACT.add_node("reflect", _find_feedback)
REACT.add_edge(START, "propose")
REACT.add_edge("propose", "execute")
REACT.add_conditional_edges("execute", follow, ["reflect", END])
REACT.add_conditional_edges("reflect", follow, ["propose", END])


async def _check(state: State) -> State:
    """Check the program's form, and whether it is new."""
    play = state["play"]
    twins = _twins(play)
    gives_up = sum(twin is not None for twin in twins) >= play.context.max_repeats
    if fault := form_fault(play.turns[-1].code, play.problem.entry_point, play.problem.buggy_code):
        following, feedback, gives_up = "syntax", words.CANNOT_RUN.format(fault=fault), False
    elif twins[-1] is None:
        return {"next": "test"}
    elif twins[-1] == 0 and twins.count(0) == 1:
        # The program to repair was not tested before the model, so no failing test has been quoted.
        following = await play.after_tests("repeat")
        feedback = f"{play.feedback()}\n\n{words.UNCHANGED}"
    else:
        following, feedback = "repeat", words.TRIED_BEFORE
    return {"feedback": feedback, "next": END if gives_up or play.is_exhausted() else following}


async def _reflect(state: State) -> State:
    """Let the model say what is wrong, from the failing test, and repair the program."""
    play = state["play"]
    feedback = [play.feedback()]
    if play.context.protocol.is_chat:  # a model of plain transcripts knows its task's words only
        feedback.append(words.DIAGNOSIS_REQUEST)
    await play.write("reflect", "\n\n".join(feedback))
    return {}


def _twins(play: AgentPlay) -> list[int | None]:
    """Return for each turn the first one with an equal program, comments aside; 0: the program to repair."""
    codes = [play.problem.buggy_code, *(turn.code for turn in play.turns)]
    trees = [tree if isinstance(tree := syntax_tree(code), str) else ast.dump(tree) for code in codes]
    return [trees.index(tree) if tree in trees[:i] else None for i, tree in enumerate(trees)][1:]


REFLECT = StateGraph(State)
for name, node in (("check", _check), ("test", tester("reflect")), ("reflect", _reflect)):
    REFLECT.add_node(name, node)
for name in ("draft", "syntax", "repeat"):
    REFLECT.add_node(name, writer(name))
REFLECT.add_edge(START, "draft")
REFLECT.add_conditional_edges("check", follow, ["test", "syntax", "repeat", END])
REFLECT.add_conditional_edges("test", follow, ["reflect", END])
for name in ("draft", "syntax", "repeat", "reflect"):
    REFLECT.add_edge(name, "check")


async def _call(state: State) -> State:
    """Let the model call a tool. A given answer is a program to run; a refused one keeps the last program."""
    play, feedback = state["play"], state.get("feedback", "")
    if play.turns:
        last = play.turns[-1]
        role: Role = "tool" if parse_tool_calls(last.completion.text) else "user"
        code, prompt = last.code, play.extend(last.prompt_ids, last.completion, feedback, role)
    else:
        code, prompt = "", play.next_prompt()
    completion, node = play.given_answer(), "run_code"
    if completion is not None:
        code = play.context.extract(play.problem, completion).code
    else:
        completion = await play.ask(prompt)
        calls = parse_tool_calls(completion.text)
        if call_fault(calls, words.TOOLS, "code"):
            node = "refuse"
        else:
            node, code = calls[0].name, encodable(calls[0].arguments["code"])
    request = feedback if play.turns else None
    play.add(prompt, completion, feedback, code=code, request=request, step=play.next_step(node))
    return {"next": node}


async def _run_code(state: State) -> State:
    """Run the tests, and tell of the visible ones; `max_repeats` repeated calls end the agent."""
    play = state["play"]
    following = await play.after_tests("call")
    *earlier, code = [turn.code for turn in play.turns if turn.step and turn.step.node == "run_code"]
    feedback = [play.feedback()]
    if passes_visible_tests(play.problem, play.result):
        feedback.append(words.SUBMIT_REQUEST)
    elif code in earlier:
        feedback.append(words.CALLED_BEFORE)
    gives_up = earlier.count(code) >= play.context.max_repeats
    return {"feedback": "\n\n".join(feedback), "next": END if gives_up else following}


async def _refuse(state: State) -> State:
    """Say why an answer is not a call that can be made; `max_repeats` repeated faults end the agent."""
    play = state["play"]
    refused = [turn.completion.text for turn in play.turns if turn.step and turn.step.node == "refuse"]
    *earlier, fault = [call_fault(parse_tool_calls(text), words.TOOLS, "code") for text in refused]
    gives_up = earlier.count(fault) >= play.context.max_repeats
    feedback = words.BAD_CALL.format(fault=fault)
    return {"feedback": feedback, "next": END if gives_up or play.is_exhausted() else "call"}


TOOLS = StateGraph(State)
for name, node in (("call", _call), ("run_code", _run_code), ("submit", lambda _: {}), ("refuse", _refuse)):
    TOOLS.add_node(name, node)
TOOLS.add_edge(START, "call")
TOOLS.add_conditional_edges("call", follow, ["run_code", "submit", "refuse"])
TOOLS.add_conditional_edges("run_code", follow, ["call", END])
TOOLS.add_edge("submit", END)
TOOLS.add_conditional_edges("refuse", follow, ["call", END])


GRAPHS: dict[str, StateGraph] = {"reflect": REFLECT, "react": REACT, "tools": TOOLS}
STEPS_PER_TURN = 4  # of a graph, at most


def play_with_agent(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
    rules: Rules,
    agent: Agent,
    max_repeats: int,
    on_turn: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play every trajectory with an agent; arguments and result are those of `rollout`, and three more.

    Args:
        rules: Temperatures, seed and length of feedback. Agents always have feedback, on errors.
        on_turn: Called with a trajectory after each node of its graph, when its programs have run.

    """
    rules = rules.of_agent(agent)
    size = generator.batch_size or len(trajectories)
    played: list[Trajectory] = []
    for start in range(0, len(trajectories), size):
        batch = trajectories[start : start + size]
        model = SharedModel(generator, len(batch))
        context = AgentContext(
            generator, executor, protocol, rules, model=model, num_turns=num_turns, max_repeats=max_repeats
        )
        plays = [AgentPlay(trajectory, context) for trajectory in batch]
        asyncio.run(_play(agent, plays, on_turn))
        played += [play.finish(num_turns) for play in plays]
    return played


async def _play(
    agent: Agent, plays: Sequence[AgentPlay], on_turn: Callable[[Trajectory], None] | None
) -> None:
    graph = GRAPHS[agent].compile()

    async def play_one(play: AgentPlay) -> None:
        limit = STEPS_PER_TURN * (play.context.num_turns + 1)
        async for _ in graph.astream({"play": play}, {"recursion_limit": limit}):
            if on_turn:
                on_turn(play.finish(len(play.turns)))
        play.context.model.leave()

    await asyncio.gather(*map(play_one, plays))
