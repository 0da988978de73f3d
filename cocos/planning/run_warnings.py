"""Warnings about options that would make a run fail, learn nothing, or differ from the estimate."""

from transformers import PretrainedConfig

from cocos.config.trl_configs import CoCoSConfig
from cocos.planning.schedule import Schedule
from cocos.planning.shapes import ModelShape
from cocos.planning.token_lengths import TokenLengths
from cocos.trajectories import Trajectory


def run_warnings(
    args: CoCoSConfig,
    config: PretrainedConfig,
    shape: ModelShape,
    schedule: Schedule,
    lengths: TokenLengths,
    prompts_T: list[int],
    num_tokens: int,
    trajectory: Trajectory,
) -> list[str]:
    """Return every warning about a run of train.py.

    Args:
        args: The run's options.
        config: The model's configuration.
        shape: The model's sizes.
        schedule: Sizes of one update.
        lengths: Lengths of the data in tokens.
        prompts_T: Largest number of tokens before each turn's answer.
        num_tokens: Size of the tokenizer's vocabulary.
        trajectory: The first problem, played with its reference as the answer of every turn.

    """
    return [
        *_batch_warnings(schedule),
        *_length_warnings(args, shape, lengths, prompts_T),
        *_vocabulary_warnings(config, num_tokens),
        *_reference_warnings(args, trajectory),
        *_engine_warnings(args),
        *_draw_warnings(args),
    ]


def _batch_warnings(schedule: Schedule) -> list[str]:
    if schedule.updates_per_pass:
        return []
    return [
        f"{schedule.problems} problems are fewer than the {schedule.problems_per_rollout} that are sampled "
        "together, so there would be no update; lower --global_batch_size or raise --num_generations"
    ]


def _length_warnings(
    args: CoCoSConfig, shape: ModelShape, lengths: TokenLengths, prompts_T: list[int]
) -> list[str]:
    warnings = []
    longest = prompts_T[-1] + args.max_completion_length
    if longest > shape.context:
        warnings.append(
            f"turn {args.num_turns} may reach {longest} tokens, beyond the model's context of "
            f"{shape.context}; lower --max_completion_length, or leave out task {lengths.longest_task}"
        )
    if lengths.reference > args.max_completion_length:
        warnings.append(
            f"a reference takes {lengths.reference} tokens, more than --max_completion_length "
            f"{args.max_completion_length}; such answers would be truncated"
        )
    return warnings


def _vocabulary_warnings(config: PretrainedConfig, num_tokens: int) -> list[str]:
    vocab = config.get_text_config().vocab_size
    if num_tokens <= vocab:
        return []
    return [f"the tokenizer has {num_tokens} tokens, but the model only {vocab}; higher token ids would fail"]


def _reference_warnings(args: CoCoSConfig, trajectory: Trajectory) -> list[str]:
    problem, result = trajectory.problem, trajectory.turns[0].result
    warnings = []
    if problem.code and not result.all_passed:
        warnings.append(f"the reference of task {problem.task_id} does not pass its tests")
    reasons = [verdict.in_child_reason for verdict in result.verdicts if verdict.in_child]
    if reasons and not args.reward_in_child:
        warnings.append(
            f"{len(reasons)} tests of task {problem.task_id} earn nothing, because the program itself could "
            f"forge the verdict ({reasons[0]}); give --reward_in_child true to reward them"
        )
    return [f"{warning}; see scripts/prepare_data.py check" for warning in warnings]


def _engine_warnings(args: CoCoSConfig) -> list[str]:
    if not args.use_vllm and not args.use_transformers_continuous_batching:
        return []
    return [
        "memory and seconds of the rollout are estimated for transformers' generate; the chosen engine "
        "samples faster and reserves its own share of the GPU for its cache"
    ]


def _draw_warnings(args: CoCoSConfig) -> list[str]:
    if not args.dynamic_sampling:
        return []
    return [
        f"seconds are estimated without the further draws of --dynamic_sampling {args.dynamic_sampling}, "
        f"which can make the rollout of an update up to {1 + args.dynamic_sampling} times as long"
    ]
