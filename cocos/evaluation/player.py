"""Choice of the player of a batch of trajectories: the turn loop, or an agent."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cocos.config.eval_config import EvalConfig
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.prompts import PromptProtocol
from cocos.rollout import rollout
from cocos.trajectories import Trajectory

Player = Callable[[Sequence[Trajectory]], list[Trajectory]]
OnTurn = Callable[[Trajectory], None]


def open_player(
    args: EvalConfig,
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    on_turn: OnTurn | None = None,
) -> Player:
    """Return the function that plays trajectories as the options say.

    Args:
        args: The options of test.py.
        generator: Samples the completions.
        executor: Runs the programs.
        protocol: Wording of each turn's message.
        on_turn: Called with a trajectory whenever the program of another of its turns has run, for somebody
            who watches; None: nothing is called.

    Raises:
        ValueError: An agent's package is missing.

    """
    setup: dict[str, Any] = {
        "generator": generator,
        "executor": executor,
        "protocol": protocol,
        "num_turns": args.num_turns,
        "rules": args.rules(args.temperatures, args.seed),
    }
    if args.agent == "none":
        return partial(_play_by_turns, on_turn=on_turn, **setup) if on_turn else partial(rollout, **setup)
    try:  # the package of an optional extra
        from cocos.agents.concurrent_play import play_with_agent
    except ImportError as error:
        raise ValueError(f'--agent needs {error.name}: pip install "cocos-lab[agents]"') from None
    return partial(play_with_agent, **setup, agent=args.agent, max_repeats=args.max_repeats, on_turn=on_turn)


def _play_by_turns(
    trajectories: Sequence[Trajectory], num_turns: int, on_turn: OnTurn, **setup: Any
) -> list[Trajectory]:
    """Call `rollout` for one turn after another: alone, it tells nothing before the last."""
    for turn in range(1, num_turns + 1):
        trajectories = rollout(trajectories, num_turns=turn, **setup)
        for trajectory in trajectories:
            on_turn(trajectory)
    return list(trajectories)
