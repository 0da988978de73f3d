"""The training objective, and a reward of your own.

`--reward module:function` names a function from a trajectory to its rewards:

    def reward(trajectory: Trajectory) -> list[float | None]:  # r_1..r_T; None: no reward for this turn
        return [float(turn.result.all_passed) for turn in trajectory.turns]

The module is found as by `import`, also in the current folder. Every rank calls the function for every
trajectory, so it must return the same for the same trajectory.
"""

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import Any

from cocos.config.cocos_options import CoCoSOptions
from cocos.rewards import Objective
from cocos.trajectories import Trajectory


def make_objective(options: CoCoSOptions) -> Objective:
    """Return the training objective: trained turns and returns."""
    return Objective(
        num_turns=options.num_turns,
        num_generations=options.num_generations,
        credit=options.credit,
        gamma=options.gamma,
        improvement_bonus=options.improvement_bonus,
        turn_weights=options.turn_weights,
        betas_T=options.turn_betas or [options.beta] * options.num_turns,
        max_at_k=options.max_at_k,
    )


def _is_moderate(reward: Any) -> bool:
    """Return whether a reward is a number that float32 can compare with others; nan is none."""
    return isinstance(reward, Real) and bool(-MAX_REWARD <= reward <= MAX_REWARD)  # type: ignore[operator]


MAX_REWARD = 1e9  # the differences of larger ones, on which training rests, are lost in float32


@dataclass(frozen=True)
class OwnReward:
    """The function that `--reward module:function` names; a call checks what the function returns."""

    name: str  # module:function
    function: Callable[[Trajectory], Any]
    path: Path  # file of the module

    def __call__(self, trajectory: Trajectory) -> list[float | None]:
        """Return r_1..r_T of a played trajectory; None where the executor failed, whatever the function says.

        Raises:
            ValueError: The function raises an exception, or does not return one finite number or None per
                turn.

        """
        place = f"--reward {self.name}, problem {trajectory.problem.task_id!r}"
        try:
            rewards_T = self.function(trajectory)
        except Exception as error:  # the function is the user's, so it may raise anything
            raise ValueError(f"{place}: {_reason(error, self.path)}; mend the function") from error
        if isinstance(rewards_T, str) or not isinstance(rewards_T, Sequence):
            raise ValueError(
                f"{place}: the function returned {type(rewards_T).__name__}; return a list with one number "
                "per turn"
            )
        if len(rewards_T) != len(trajectory.turns):
            raise ValueError(
                f"{place}: the function returned {len(rewards_T)} rewards for {len(trajectory.turns)} turns; "
                "return one number per turn"
            )
        for number, reward in enumerate(rewards_T, start=1):
            if reward is not None and not (_is_moderate(reward)):
                raise ValueError(
                    f"{place}: the reward of turn {number} is {reward!r:.80} ({type(reward).__name__}); "
                    f"return a number from -{MAX_REWARD:g} to {MAX_REWARD:g}, or None for no reward"
                )
        return [
            None if reward is None or turn.result.is_infra_failure else float(reward)
            for reward, turn in zip(rewards_T, trajectory.turns, strict=True)
        ]


def reward_file(name: str) -> Path:
    """Return the file of the module of a checked `module:function`, without importing the module."""
    _add_working_folder()
    spec = find_spec(name.partition(":")[0])
    assert spec is not None and spec.origin is not None, name
    return Path(spec.origin)


def _add_working_folder() -> None:
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # at the end: a file there replaces no installed package


def load_reward(name: str) -> OwnReward:
    """Import the function that a text `module:function` names.

    Raises:
        ValueError: The text has another form, or there is no such module or function.

    """
    module_name, _, function_name = name.partition(":")
    place = f"--reward {name}"
    if not module_name or not function_name:
        raise ValueError(f"{place}: give module:function, such as my_rewards:short")
    if "/" in module_name or module_name.endswith(".py"):
        module_name = module_name.removesuffix(".py")
        raise ValueError(
            f"{place}: a path is no module; start in the folder of the file and give "
            f"{Path(module_name).name}:{function_name}"
        )
    _add_working_folder()
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(f"{place}: {module_name} needs {error.name}, which is not installed") from error
        raise ValueError(
            f"{place}: there is no module {module_name}; it is looked for in {os.getcwd()} and among the "
            "installed packages"
        ) from None
    except Exception as error:  # the module is the user's, so it may raise anything
        raise ValueError(f"{place}: {_reason(error)}; mend the module") from error
    path = getattr(module, "__file__", None)
    function = getattr(module, function_name, None)
    if not callable(function) or path is None:
        names = [n for n, _ in inspect.getmembers(module, inspect.isfunction) if not n.startswith("_")]
        raise ValueError(
            f"{place}: {path or module_name} has no function {function_name}; it has "
            + (", ".join(names[:5]) or "none")
        )
    return OwnReward(name, function, Path(path))


def _reason(error: Exception, path: Path | None = None) -> str:
    """Return an exception in words, with its last line in a file, by default in any."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if path is None or frame.filename == str(path)]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    if isinstance(error, SyntaxError):  # its text has the line
        where = ""
    return f"{type(error).__name__}: {error}{where}"


def own_reward(options: CoCoSOptions) -> OwnReward | None:
    """Return the function of `--reward module:function`; None if verdicts alone are the reward."""
    return load_reward(options.reward) if ":" in options.reward else None
