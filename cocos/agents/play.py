"""A trajectory that an agent plays, the model that several of them share, and the state of the graphs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from langgraph.graph import END

from cocos.generation import Completion, Generator
from cocos.rollout import Play, RolloutContext
from cocos.trajectories import Step


class _Request(NamedTuple):
    key: tuple[str, int]
    prompt: Sequence[int]
    temperature: float
    seed: int | None
    answer: asyncio.Future[Completion]


class SharedModel:
    """Generator of several trajectories, which generates when all of them wait for it.

    So the batches depend on the trajectories only, not on how long their programs run, and a resumed run has
    the rows of an uninterrupted one. Each of `num_trajectories` asks from one event loop, and then leaves.
    """

    def __init__(self, generator: Generator, num_trajectories: int) -> None:
        self.generator = generator
        self._num_playing = num_trajectories
        self._requests: list[_Request] = []

    async def ask(
        self, key: tuple[str, int], prompt: Sequence[int], temperature: float, seed: int | None
    ) -> Completion:
        """Return the completion of a prompt. Requests of one temperature share a batch, sorted by key."""
        answer: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._requests.append(_Request(key, prompt, temperature, seed, answer))
        self._generate_if_all_wait()
        return await answer

    def leave(self) -> None:
        """Count a trajectory as ended; the others no longer wait for it."""
        self._num_playing -= 1
        self._generate_if_all_wait()

    def _generate_if_all_wait(self) -> None:
        if len(self._requests) < self._num_playing:
            return
        requests, self._requests = sorted(self._requests, key=lambda request: request.key), []
        for temperature in sorted({request.temperature for request in requests}):
            batch = [request for request in requests if request.temperature == temperature]
            seeds = [request.seed for request in batch if request.seed is not None]
            self.generator.progress.start("next step", len(batch))
            completions = self.generator.generate(
                [request.prompt for request in batch], temperature, seeds or None
            )
            for request, completion in zip(batch, completions, strict=True):
                request.answer.set_result(completion)


@dataclass(frozen=True, kw_only=True)
class AgentContext(RolloutContext):
    """Context of a batch of trajectories that an agent plays."""

    model: SharedModel  # the generator
    num_turns: int  # largest number of programs per trajectory
    max_repeats: int  # repeated programs, failures or calls after which the agent gives up


class AgentPlay(Play):
    """A trajectory that an agent plays."""

    context: AgentContext

    def next_step(self, node: str) -> Step:
        """Return the step of the next turn."""
        return Step(node, self.context.rules.temperature(len(self.turns) + 1))

    def is_exhausted(self) -> bool:
        """Return whether all turns are played, or the last completion failed."""
        return len(self.turns) >= self.context.num_turns or self.turns[-1].completion.error is not None

    async def ask(self, prompt: Sequence[int]) -> Completion:
        """Return the model's completion."""
        seed = None if self.context.rules.seed is None else self.seed()
        temperature = self.context.rules.temperature(len(self.turns) + 1)
        return await self.context.model.ask(self.trajectory.key, prompt, temperature, seed)

    async def write(self, node: str, feedback: str) -> None:
        """Append a turn whose program the model writes, unless it is given."""
        prompt = self.next_prompt(feedback)
        completion = self.given_answer() or await self.ask(prompt)
        self.add(prompt, completion, feedback, step=self.next_step(node))

    async def after_tests(self, following: str) -> str:
        """Return the next node once the last program has run: END if it passes, or no turn is left."""
        await self.executed()
        return END if self.has_ended() or self.is_exhausted() else following


class State(TypedDict, total=False):
    """State of a graph."""

    play: AgentPlay  # the trajectory; nodes append turns to it
    feedback: str  # feedback on the previous turn, for the next prompt
    next: str  # node that follows, or END


def writer(name: str) -> Any:
    """Return a node of this name at which the model writes a program after what the state tells."""

    async def write(state: State) -> State:
        await state["play"].write(name, state.get("feedback", ""))
        return {}

    return write


def tester(following: str) -> Any:
    """Return a node that runs the tests; this node follows unless the program passes, or no turn is left."""

    async def test(state: State) -> State:
        return {"next": await state["play"].after_tests(following)}

    return test


def follow(state: State) -> str:
    """Return the node that follows."""
    return state["next"]
