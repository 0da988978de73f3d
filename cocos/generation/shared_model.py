"""The model that concurrent trajectories share: their requests are answered in batches."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from cocos.generation.interface import Completion, Generator


class _Request(NamedTuple):
    key: tuple[str, int]
    prompt: Sequence[int]
    temperature: float
    seed: int | None
    answer: asyncio.Future[Completion]


class SharedModel:
    """Generator of several trajectories, which generates when all of them wait for it.

    The composition of the batches therefore depends on the trajectories only, not on how long their programs
    run: a resumed run has the rows of an uninterrupted one. All calls come from one event loop.

    Args:
        generator: Samples the completions.
        num_trajectories: Trajectories that ask and then `leave`.

    """

    def __init__(self, generator: Generator, num_trajectories: int) -> None:
        self.generator = generator
        self._num_playing = num_trajectories
        self._requests: list[_Request] = []

    async def ask(
        self, key: tuple[str, int], prompt: Sequence[int], temperature: float, seed: int | None
    ) -> Completion:
        """Return the completion of a prompt.

        Args:
            key: Identifier of the trajectory; requests are sorted by it.
            prompt: Transcript of the generator.
            temperature: Sampling temperature; requests with the same one share a batch.
            seed: Seed of the completion; None: the random state of the process.

        """
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
            completions = self.generator.generate(
                [request.prompt for request in batch], temperature, seeds or None
            )
            for request, completion in zip(batch, completions, strict=True):
                request.answer.set_result(completion)
