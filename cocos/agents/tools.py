"""The agent `tools`: the model calls run_code(code, reason) to test programs, and submit(code) to end."""

from langgraph.graph import END, START, StateGraph

from cocos import prompts
from cocos.agents.agent_play import State, follow
from cocos.generation import Role
from cocos.generation.tool_calls import call_fault, parse_tool_calls


async def call(state: State) -> State:
    """Let the model call a tool. A given answer is a program to run; a refused one keeps the last program."""
    play, told = state["play"], state.get("told", "")
    if play.turns:
        last = play.turns[-1]
        role: Role = "tool" if parse_tool_calls(last.completion.text) else "user"
        code, prompt = last.code, play.extend(last.prompt_ids, last.completion, told, role)
    else:
        code, prompt = "", play.next_prompt()
    completion, node = play.given_answer(), "run_code"
    if completion is not None:
        code = prompts.extract_code(completion.text)
    else:
        completion = await play.ask(prompt)
        calls = parse_tool_calls(completion.text)
        if call_fault(calls, prompts.TOOLS, "code"):
            node = "refuse"
        else:
            node, code = calls[0].name, calls[0].arguments["code"]
    play.add(prompt, completion, told, code=code, step=play.next_step(node))
    return {"next": node}


async def run_code(state: State) -> State:
    """Run the tests, and tell of the visible ones; `max_repeats` repeated calls end the agent."""
    play = state["play"]
    following = await play.after_tests("call")
    *earlier, code = [turn.code for turn in play.turns if turn.step and turn.step.node == "run_code"]
    told = [play.feedback()]
    if prompts.passes_visible_tests(play.problem, play.result):
        told.append(prompts.SUBMIT_REQUEST)
    elif code in earlier:
        told.append(prompts.CALLED_BEFORE)
    gives_up = earlier.count(code) >= play.setup.max_repeats
    return {"told": "\n\n".join(told), "next": END if gives_up else following}


async def submit(state: State) -> State:
    """End with the submitted program."""
    return {}


async def refuse(state: State) -> State:
    """Tell the model why its answer is not a call that can be made."""
    play = state["play"]
    fault = call_fault(parse_tool_calls(play.turns[-1].completion.text), prompts.TOOLS, "code")
    told = prompts.BAD_CALL.format(fault=fault)
    return {"told": told, "next": END if play.is_exhausted() else "call"}


graph = StateGraph(State)
for node in (call, run_code, submit, refuse):
    graph.add_node(node)
graph.add_edge(START, "call")
graph.add_conditional_edges("call", follow, ["run_code", "submit", "refuse"])
graph.add_conditional_edges("run_code", follow, ["call", END])
graph.add_edge("submit", END)
graph.add_conditional_edges("refuse", follow, ["call", END])
