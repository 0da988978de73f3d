"""Playing of a batch of trajectories with an agent, all of them at once."""

import asyncio
from collections.abc import Sequence
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
) -> list[Trajectory]:
    """Play every trajectory with an agent; arguments and result are those of `rollout`, and two more.

    Args:
        rules: Temperatures, seed and length of feedback. Agents always have feedback, on errors.
        agent: A name in `GRAPHS`.
        max_repeats: See AgentSetup.

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
        asyncio.run(_play(agent, plays))
        played += [play.finish(num_turns) for play in plays]
    return played


async def _play(agent: str, plays: Sequence[AgentPlay]) -> None:
    graph = GRAPHS[agent].compile()

    async def play_one(play: AgentPlay) -> None:
        limit = STEPS_PER_TURN * (play.setup.num_turns + 1)
        await graph.ainvoke({"play": play}, {"recursion_limit": limit})
        play.setup.model.leave()

    await asyncio.gather(*map(play_one, plays))
