"""What plays a batch of trajectories: the turn loop, or an agent."""

from collections.abc import Callable, Sequence
from functools import partial

from cocos.config.eval_config import EvalConfig
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.prompts import PromptProtocol
from cocos.rollout import rollout
from cocos.trajectories import Trajectory

Player = Callable[[Sequence[Trajectory]], list[Trajectory]]


def open_player(
    args: EvalConfig, generator: Generator, executor: Executor, protocol: PromptProtocol
) -> Player:
    """Return the function that plays trajectories as the options say.

    Raises:
        ValueError: An agent's package is missing.

    """
    turn_loop = partial(
        rollout,
        generator=generator,
        executor=executor,
        protocol=protocol,
        num_turns=args.num_turns,
        rules=args.rules(args.temperatures, args.seed),
    )
    if args.agent == "none":
        return turn_loop
    try:  # the package of an optional extra
        from cocos.agents.concurrent_play import play_with_agent
    except ImportError as error:
        raise ValueError(f'--agent needs {error.name}: pip install "cocos-lab[agents]"') from None
    return partial(play_with_agent, **turn_loop.keywords, agent=args.agent, max_repeats=args.max_repeats)
