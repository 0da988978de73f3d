"""Contents of metrics.json: metrics, conditions and speed of a run's trajectories."""

from collections.abc import Mapping, Sequence
from typing import Any

from cocos.metrics import summary
from cocos.trajectories import Trajectory


def run_metrics(trajectories: Sequence[Trajectory], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics.json says about the trajectories of a run: metrics, conditions and speed."""
    return {**summary(trajectories), **conditions, "speed": speed(trajectories)}


def speed(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return totals of tokens, programs and seconds, two rates, and the means per trajectory.

    `tokens_per_s` is the rate of one rank while it generates, `programs_per_s` that of one worker while it
    executes. Supplied completions count as programs only; carried turns do not count. The prompt of a later
    turn contains all earlier turns, so `prompt_tokens` counts their tokens again at every turn.
    """
    turns = [turn for trajectory in trajectories for turn in trajectory.turns if not turn.is_carried]
    sampled = [turn.completion for turn in turns if turn.is_sampled]
    tokens = sum(completion.num_completion_tokens or 0 for completion in sampled)
    prompt_tokens = sum(completion.num_prompt_tokens or 0 for completion in sampled)
    generation_s = sum(completion.duration_s for completion in sampled)
    execution_s = sum(turn.result.duration_s for turn in turns)
    return {
        "completion_tokens": tokens,
        "prompt_tokens": prompt_tokens,
        "generation_s": round(generation_s, 3),
        "tokens_per_s": round(tokens / generation_s, 1) if generation_s else 0.0,
        "programs": len(turns),
        "execution_s": round(execution_s, 3),
        "programs_per_s": round(len(turns) / execution_s, 1) if execution_s else 0.0,
        "seconds_per_problem": round(generation_s / len(trajectories), 3),
        "tokens_per_problem": round(tokens / len(trajectories), 1),
        "prompt_tokens_per_problem": round(prompt_tokens / len(trajectories), 1),
    }
