"""A trajectory that an agent plays, and the state of the agents' graphs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from langgraph.graph import END

from cocos.generation import Completion
from cocos.generation.shared_model import SharedModel
from cocos.rollout import Play, Setup
from cocos.trajectories import Step


@dataclass(frozen=True, kw_only=True)
class AgentSetup(Setup):
    """Setup of a batch of trajectories that an agent plays.

    Attributes:
        model: The generator, shared by the trajectories of the batch.
        num_turns: Largest number of programs per trajectory.
        max_repeats: Number of repeated programs, failures or calls after which the agent gives up.

    """

    model: SharedModel
    num_turns: int
    max_repeats: int


class AgentPlay(Play):
    """A trajectory that an agent plays."""

    setup: AgentSetup

    def next_step(self, node: str) -> Step:
        """Return the step of the next turn."""
        return Step(node, self.setup.rules.temperature(len(self.turns) + 1))

    def is_exhausted(self) -> bool:
        """Return whether all turns are played, or the last completion failed."""
        return len(self.turns) >= self.setup.num_turns or self.turns[-1].completion.error is not None

    async def ask(self, prompt: Sequence[int]) -> Completion:
        """Return the model's completion."""
        seed = None if self.setup.rules.seed is None else self.seed()
        temperature = self.setup.rules.temperature(len(self.turns) + 1)
        return await self.setup.model.ask(self.trajectory.key, prompt, temperature, seed)

    async def write(self, node: str, told: str) -> None:
        """Append a turn whose program the model writes, unless it is given.

        Args:
            node: Node of the graph that makes the turn.
            told: What the prompt says of the previous program.

        """
        prompt = self.next_prompt(told)
        completion = self.given_answer() or await self.ask(prompt)
        self.add(prompt, completion, told, step=self.next_step(node))

    async def after_tests(self, following: str) -> str:
        """Return the next node once the last program has run: END if it passes, or no turn is left."""
        # Cancelling this coroutine must not cancel the executor's future.
        await asyncio.shield(asyncio.wrap_future(self.results[-1]))
        return END if self.has_ended() or self.is_exhausted() else following


class State(TypedDict, total=False):
    """State of a graph.

    Attributes:
        play: The trajectory; nodes append turns to it.
        told: What the next prompt says of the previous turn.
        next: Node that follows, or END.

    """

    play: AgentPlay
    told: str
    next: str


def writer(name: str) -> Any:
    """Return a node of this name at which the model writes a program after what the state tells."""

    async def write(state: State) -> State:
        await state["play"].write(name, state.get("told", ""))
        return {}

    return write


def follow(state: State) -> str:
    """Return the node that follows."""
    return state["next"]
