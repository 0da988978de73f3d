"""The agent `react`: propose a program, execute it, reflect on the tests that fail, propose again."""

from langgraph.graph import END, START, StateGraph

from cocos.agents.agent_play import State, follow, writer


async def execute(state: State) -> State:
    """Run the tests."""
    return {"next": await state["play"].after_tests("reflect")}


async def reflect(state: State) -> State:
    """Find what to tell of the failing tests; the same failure `max_repeats` times ends the agent."""
    play = state["play"]
    told = play.feedback()
    failures = [*(turn.told for turn in play.turns[1:]), told]
    gives_up = failures.count(told) >= play.setup.max_repeats
    return {"told": told, "next": END if gives_up else "propose"}


graph = StateGraph(State)
graph.add_node("propose", writer("propose"))
graph.add_node(execute)
graph.add_node(reflect)
graph.add_edge(START, "propose")
graph.add_edge("propose", "execute")
graph.add_conditional_edges("execute", follow, ["reflect", END])
graph.add_conditional_edges("reflect", follow, ["propose", END])
