"""Report of train.py --dry_run: first prompts, number of updates, estimated memory and seconds, warnings.

    python train.py --config configs/cocos_qwen2.5-1.5b.yaml --output_dir OUT --dry_run

The model is created on the meta device, so a 7B model takes seconds on a laptop. The first problem is played
through the turn loop of training, and the executor runs its programs. The reference answers every turn;
with feedback or early stop it is a wrong program, so that the report shows what the model would be told.
"""

import math
import re

from transformers import AutoConfig, PreTrainedTokenizerBase
from trl import get_peft_config

from cocos.config.shared_options import open_executor
from cocos.config.training_data import TrainingData
from cocos.config.trl_configs import CoCoSConfig
from cocos.planning.estimate_text import memory_text, model_text, warnings_text
from cocos.planning.run_warnings import run_warnings
from cocos.planning.schedule import (
    A10,
    A100,
    TIMEOUT_SHARE,
    Schedule,
    executor_cores,
    prompt_lengths,
    seconds_per_update,
)
from cocos.planning.shapes import Layout, ModelShape
from cocos.planning.shapes_from_options import model_shape, run_layout, run_schedule, run_workload
from cocos.planning.token_lengths import FixedAnswerGenerator, TokenLengths, measure_lengths
from cocos.problems import Problem
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, begin

PLACEHOLDER = "def {name}(*args):\n    return None"  # the answer if there is no reference, and a wrong one


def dry_run(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> str:
    """Check a run without loading weights, and return the report.

    Raises:
        ValueError: The model or the adapter cannot be created, or the prompts cannot be tokenized.
        ExecutorError: The executor's self-test fails.

    """
    problems, dev_problems, protocol = data.problems, data.dev_problems, data.protocol
    config = AutoConfig.from_pretrained(
        args.model_name_or_path, revision=args.model_revision, trust_remote_code=args.trust_remote_code
    )
    shape = model_shape(config, get_peft_config(args), args.trust_remote_code)
    layout = run_layout(args, config, has_reference=args.beta > 0)
    rules = args.rules(temperatures=[args.temperature])
    first = data.prompts[0]
    reference = FixedAnswerGenerator(tokenizer, first.problem.code or _placeholder(first.problem))
    wrong = FixedAnswerGenerator(tokenizer, _placeholder(first.problem))
    generator = wrong if rules.feedback != "none" or rules.early_stop else reference
    with open_executor(args, [first.problem]) as executor:
        [checked] = rollout(begin([first.problem]), reference, executor, protocol, 1)
        [trajectory] = rollout([first], generator, executor, protocol, args.num_turns, rules)
        num_workers, isolation = executor.num_workers, executor.isolation
    lengths = measure_lengths(problems + dev_problems, generator, protocol, rules)
    prompts_T = prompt_lengths(
        lengths.longest_prompt, args.max_completion_length, lengths.instruction, args.num_turns
    )
    schedule = run_schedule(args, len(data.prompts))
    workload = run_workload(args, schedule, layout, prompts_T)
    warnings = run_warnings(args, config, shape, schedule, lengths, prompts_T, len(tokenizer), checked)
    return "\n\n".join(
        [
            model_text(args.model_name_or_path, shape, layout),
            _data_text(data, lengths),
            _prompts_text(trajectory, generator),
            f"executor: self-test passed at isolation level {isolation}, {num_workers} workers; "
            f"{_verdict_text(checked)}",
            _updates_text(args, schedule),
            memory_text(shape, layout, workload),
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


def _updates_text(args: CoCoSConfig, schedule: Schedule) -> str:
    per_pass = schedule.updates_per_pass
    updates = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_pass)
    passes = f"{updates / per_pass:.1f} passes over the problems" if per_pass else "not one pass"
    return (
        f"steps: {updates} updates of {schedule.trajectories} trajectories "
        f"({schedule.trajectories // schedule.group} problems x {schedule.group}), {schedule.rows} rows and "
        f"{schedule.programs} programs each; {passes}"
    )


def _seconds_text(
    args: CoCoSConfig, shape: ModelShape, layout: Layout, schedule: Schedule, prompts_T: list[int]
) -> str:
    lines = ["seconds per update, estimated from the cards' data sheets (docs/scaling.md)"]
    local_trajectories = schedule.trajectories / layout.num_gpus
    for card in (A10, A100):
        seconds = seconds_per_update(
            shape, layout, schedule, card, prompts_T, args.max_completion_length, args.rollout_batch_size
        )
        cores = executor_cores(local_trajectories, seconds.rollout / schedule.turns, args.program_timeout_s)
        lines.append(
            f"{layout.num_gpus} x {card.name}: {seconds.total:.1f} (rollout {seconds.rollout:.1f}, "
            f"scoring {seconds.scoring:.1f}, update {seconds.update:.1f}); {cores} executor worker(s) per "
            f"GPU keep pace if {TIMEOUT_SHARE:.0%} of programs time out"
        )
    return "\n".join(lines)
