"""Playing of a batch of trajectories with an agent, all of them at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from langgraph.graph import StateGraph

from cocos.agents import react, reflect, tools
from cocos.agents.agent_play import AgentPlay, AgentSetup
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.generation.shared_model import SharedModel
from cocos.prompts import PromptProtocol
from cocos.trajectories import Rules, Trajectory

GRAPHS: dict[str, StateGraph] = {"reflect": reflect.graph, "react": react.graph, "tools": tools.graph}
STEPS_PER_TURN = 4  # of a graph, at most


def play_with_agent(
    trajectories: Sequence[Trajectory],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_turns: int,
    rules: Rules,
    agent: str,
    max_repeats: int,
    on_turn: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play every trajectory with an agent; arguments and result are those of `rollout`, and three more.

    Args:
        rules: Temperatures, seed and length of feedback. Agents always have feedback, on errors.
        agent: A name in `GRAPHS`.
        max_repeats: See AgentSetup.
        on_turn: Called with a trajectory after each node of its graph, when its programs have run; None:
            nothing is called.

    """
    # The model of `tools` submits a program that passes; the other agents end with it.
    rules = replace(rules, feedback="error", early_stop=agent != "tools")
    size = generator.batch_size or len(trajectories)
    played: list[Trajectory] = []
    for start in range(0, len(trajectories), size):
        batch = trajectories[start : start + size]
        setup = AgentSetup(
            *(generator, executor, protocol, rules),
            model=SharedModel(generator, len(batch)),
            num_turns=num_turns,
            max_repeats=max_repeats,
        )
        plays = [AgentPlay(trajectory, setup) for trajectory in batch]
        asyncio.run(_play(agent, plays, on_turn))
        played += [play.finish(num_turns) for play in plays]
    return played


async def _play(agent: str, plays: Sequence[AgentPlay], on_turn: Callable[[Trajectory], None] | None) -> None:
    graph = GRAPHS[agent].compile()

    async def play_one(play: AgentPlay) -> None:
        limit = STEPS_PER_TURN * (play.setup.num_turns + 1)
        async for _ in graph.astream({"play": play}, {"recursion_limit": limit}):
            if on_turn:
                on_turn(play.finish(len(play.turns)))
        play.setup.model.leave()

    await asyncio.gather(*map(play_one, plays))
