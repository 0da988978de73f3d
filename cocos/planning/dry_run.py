"""Report of train.py --dry_run: first prompts, number of updates, estimated memory and seconds, warnings.

    python train.py --config configs/cocos_qwen2.5-1.5b.yaml --output_dir OUT --dry_run

The model is created on the meta device, so a 7B model takes seconds on a laptop. The first problem is played
through the turn loop of training, and the executor runs its programs. The reference answers every turn;
with feedback or early stop it is a wrong program, so that the report shows the feedback.
"""

import math
import re
from collections.abc import Sequence

from transformers import PretrainedConfig, PreTrainedTokenizerBase

from cocos.assembly import TrainingData, make_rules, open_executor, own_reward, turn_player
from cocos.config.trl_configs import CoCoSConfig
from cocos.generation import Completion
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.planning.lengths import TokenLengths, measure_lengths
from cocos.planning.memory import memory_text, model_text, warnings_text
from cocos.planning.schedule import A10, A100, H100, H200, Schedule, prompt_lengths, seconds_per_update
from cocos.planning.shapes import Layout, ModelShape
from cocos.planning.shapes_from_options import run_schedule, run_shapes, run_workload
from cocos.problems import Problem
from cocos.prompts import answer
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, begin


class FixedAnswerGenerator(TokenTranscripts):
    """Generator that answers every prompt with the same program, in the model's tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, code: str):
        super().__init__(tokenizer, {tokenizer.eos_token_id})
        self.code = code

    def generate(
        self, prompts: Sequence[Sequence[int]], temperature: float, seeds: Sequence[int] | None = None
    ) -> list[Completion]:
        ids = encode(self.tokenizer, answer(self.code), is_start=False)
        return [self.completion(ids, duration_s=0.0) for _ in prompts]


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
        prompts_T: Largest number of tokens before each turn's answer.
        trajectory: The first problem, played with its reference as the answer of every turn.

    """
    return [
        *_batch_warnings(schedule),
        *_length_warnings(args, shape, lengths, prompts_T),
        *_vocabulary_warnings(config, num_tokens),
        *_reference_warnings(args, trajectory),
        *_draw_warnings(args),
        *_reward_warnings(args),
    ]


def _batch_warnings(schedule: Schedule) -> list[str]:
    if schedule.problems >= schedule.problems_per_rollout:
        return []
    return [
        f"{schedule.problems} problems are fewer than the {schedule.problems_per_rollout} that are sampled "
        "together, so each of them is sampled several times; lower --global_batch_size for shorter updates"
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


def _draw_warnings(args: CoCoSConfig) -> list[str]:
    if not args.dynamic_sampling:
        return []
    return [
        f"seconds are estimated without the further draws of --dynamic_sampling {args.dynamic_sampling}, "
        f"which can make the rollout of an update up to {1 + args.dynamic_sampling} times as long"
    ]


def _reward_warnings(args: CoCoSConfig) -> list[str]:
    if args.reward != "random":
        return []
    return ["--reward random: every program earns 0 or 1 by chance, so this run is a control, not a training"]


PLACEHOLDER = "def {name}(*args):\n    return None"  # the answer if there is no reference, and a wrong one


def dry_run(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> str:
    """Check a run without loading weights, and return the report.

    Raises:
        ValueError: The model or the adapter cannot be created, or the prompts cannot be tokenized.
        ExecutorError: The executor's self-test fails.

    """
    problems, dev_problems, protocol = data.problems, data.dev_problems, data.protocol
    config, shape, layout = run_shapes(args, has_reference=args.beta > 0)
    rules = make_rules(args, [args.temperature])
    first = data.prompts[0]
    reference = FixedAnswerGenerator(tokenizer, first.problem.code or _placeholder(first.problem))
    wrong = FixedAnswerGenerator(tokenizer, _placeholder(first.problem))
    generator = wrong if rules.feedback != "none" or rules.early_stop else reference
    with open_executor(args) as executor:  # one problem needs no limit of its own
        [checked] = rollout(begin([first.problem]), reference, executor, protocol, 1)
        [trajectory] = turn_player(args)([first], generator, executor, protocol, args.num_turns, rules)
        num_workers, isolation = executor.num_workers, executor.isolation
    lengths = measure_lengths(problems + dev_problems, generator, protocol, rules)
    prompts_T = prompt_lengths(
        lengths.longest_prompt, args.max_completion_length, lengths.instruction, args.num_turns
    )
    schedule = run_schedule(args, [prompt.problem for prompt in data.prompts])
    workload = run_workload(args, schedule, layout, prompts_T)
    rows = "prefix trees of rows" if args.share_prefixes else "plain rows"
    warnings = run_warnings(args, config, shape, schedule, lengths, prompts_T, len(tokenizer), checked)
    return "\n\n".join(
        [
            model_text(args.model_name_or_path, shape, layout),
            _data_text(data, lengths),
            _prompts_text(trajectory, generator),
            f"executor: self-test passed at isolation level {isolation}, {num_workers} workers; "
            f"{_verdict_text(checked)}{_own_reward_text(args, trajectory)}",
            _updates_text(args, schedule),
            memory_text(shape, layout, workload, rows),
            _seconds_text(args, shape, layout, schedule, prompts_T),
            warnings_text(warnings),
        ]
    )


def _placeholder(problem: Problem) -> str:
    """Return a program that defines the function under test and solves nothing."""
    called = re.search(r"(\w+)\(", problem.scored_tests[0])
    return PLACEHOLDER.format(name=problem.entry_point or (called[1] if called else "solution"))


def _data_text(data: TrainingData, lengths: TokenLengths) -> str:
    problems, most = data.problems, data.protocol.prompt_tests
    visible = sum(len(problem.test_list) for problem in problems)
    shown = sum(len(problem.test_list[:most]) for problem in problems)
    scored = sum(len(problem.scored_tests) for problem in problems)
    has_answers = any(prompt.given for prompt in data.prompts)
    return (
        f"data: {len(problems)} problems, {len(data.dev_problems)} for dev; {visible} visible tests"
        + (f" ({shown} in prompts)" if shown < visible else "")
        + f", {scored - visible} hidden"
        + (f"; {len(data.prompts)} prompts with given answers" if has_answers else "")
        + f"\ntokens: first prompt {lengths.median_prompt} (median), {lengths.longest_prompt} (longest, task "
        f"{lengths.longest_task}), instruction {lengths.instruction}, longest reference {lengths.reference}"
    )


def _prompts_text(trajectory: Trajectory, generator: FixedAnswerGenerator) -> str:
    prompts = [
        f"--- prompt of turn {number}, {len(turn.prompt_ids)} tokens ---\n"
        + generator.tokenizer.decode(turn.prompt_ids, clean_up_tokenization_spaces=False)
        for number, turn in enumerate(trajectory.turns, start=1)
        if not turn.is_carried
    ]
    return "\n".join([*prompts, "---"])


def _verdict_text(trajectory: Trajectory) -> str:
    problem, result = trajectory.problem, trajectory.turns[0].result
    program = "the reference" if problem.code else "a placeholder (there is no reference)"
    return f"{program} of task {problem.task_id} passes {result.num_passed} of {len(result.verdicts)} tests"


def _own_reward_text(args: CoCoSConfig, trajectory: Trajectory) -> str:
    if (reward := own_reward(args)) is None:
        return ""
    return f"\n--reward {reward.name}: {reward(trajectory)} for the turns above"


def _updates_text(args: CoCoSConfig, schedule: Schedule) -> str:
    updates = num_updates(args, schedule)
    passes = f"{updates / schedule.updates_per_pass:.1f} passes over the problems"
    return (
        f"steps: {updates} updates of {schedule.trajectories} trajectories "
        f"({schedule.trajectories // schedule.group} problems x {schedule.group}), {schedule.rows} rows and "
        f"{schedule.programs} programs each; {passes}"
    )


def _seconds_text(
    args: CoCoSConfig, shape: ModelShape, layout: Layout, schedule: Schedule, prompts_T: list[int]
) -> str:
    lines = [
        f"seconds per update, sampled with {layout.sampler}, and hours of all {num_updates(args, schedule)}; "
        "estimated from the cards' data sheets (docs/scaling.md)"
    ]
    for card in (A10, A100, H100, H200):
        seconds = seconds_per_update(
            shape, layout, schedule, card, prompts_T, args.max_completion_length, args.rollout_batch_size
        )
        phases = ", ".join(f"{name} {value:.1f}" for name, value in seconds._asdict().items())
        hours = seconds.total * num_updates(args, schedule) / 3600
        lines.append(f"{layout.num_gpus} x {card.name}: {seconds.total:.1f} ({phases}), {hours:.1f} hours")
    return "\n".join(lines)


def num_updates(args: CoCoSConfig, schedule: Schedule) -> int:
    """Return the number of updates of a run."""
    if args.max_steps > 0:
        return args.max_steps
    return math.ceil(args.num_train_epochs * schedule.updates_per_pass)
