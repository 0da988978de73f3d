"""Report of train.py --dry_run: first prompts, number of updates, estimated memory, warnings.

    python train.py --config configs/cocos.yaml --model_name_or_path MODEL ... --dry_run

The model is created on the meta device, so a 7B model takes seconds on a laptop. The executor runs the
first problem's reference. Then a wrong program is played on it in the turn loop of training, so that the
report shows what the model is told.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from cocos.assembly.data import TrainingData
from cocos.assembly.objective import make_objective, own_reward
from cocos.assembly.programs import open_executor
from cocos.assembly.rules import make_rules
from cocos.carry import named_carry
from cocos.config.trl_configs import CoCoSConfig
from cocos.dataprep.named_sets import problems_file
from cocos.executor import ExecutionResult
from cocos.files.bundled import command_line
from cocos.generation.tokenizer import TokenTranscripts
from cocos.planning.lengths import TokenLengths, longest_prompts, measure_lengths
from cocos.planning.memory import Model, estimate, memory_text, model_text, run_model
from cocos.problems import Problem
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, as_program

MOST_PASSES = 300  # over the problems; configs/cocos.yaml has about as many over MBPP


def dry_run(
    args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase, changed: str = ""
) -> str:
    """Check a run without loading weights, and return the report.

    Args:
        changed: Warning of `check_prompts` about what the tokenizer changes; "" for none.

    Raises:
        ValueError: The model or the adapter cannot be created, or the prompts cannot be tokenized.
        ExecutorError: The executor's self-test fails.

    """
    model, layout = run_model(args)
    problems, protocol, turns = data.problems + data.dev_problems, data.protocol, args.num_turns
    transcripts = TokenTranscripts(tokenizer, {tokenizer.eos_token_id})
    rules = make_rules(args, [args.temperature], None, data.problems, args.prompt_tests)
    first, problem = data.prompts[0], data.prompts[0].problem
    name = problem.entry_point or next(iter(sorted(problem.called_names)), "solution")
    wrong = f"def {name}(*args):\n    return None"
    prompt = replace(first, given=(*first.given, *[protocol.answer(wrong)] * turns)[:turns])
    with open_executor(args) as executor:  # one problem needs no limit of its own
        [checked] = executor.run([as_program(problem, problem.code or wrong)])
        [played] = rollout([prompt], transcripts, executor, protocol, turns, rules)
    lengths, answer = measure_lengths(problems, transcripts, protocol), args.max_completion_length
    prompts_T = longest_prompts(problems, transcripts, protocol, rules, turns, answer)
    row, updates = prompts_T[-1] + answer, run_updates(args, len(data.prompts))
    warnings = [
        changed,
        *_warnings(args, len(data.prompts), updates, model, lengths, row),
        *_reference_warnings(args, problem, checked),
    ]
    parts = [
        model_text(args.model_name_or_path, model, layout),
        _data_text(data, lengths, prompts_T[-1]),
        _prompts_text(played, transcripts),
        f"executor: self-test passed at isolation level {executor.isolation}, {executor.num_workers} "
        f"workers; {_result_text(args, problem, checked, played)}",
        _updates_text(args, updates),
        memory_text(estimate(model, layout, row, *run_tokens(args, prompts_T)), layout, row),
        warnings_text(warnings),
    ]
    return "\n\n".join(parts)


def run_tokens(args: CoCoSConfig, prompts_T: Sequence[int]) -> tuple[int, int, int]:
    """Return the tokens of a pass of the loss on one GPU, those of its answers, and the rows sampled at once.

    A row of the loss is padded to the longest row. With shared prefixes, a group computes the prompt of its
    first trained turn once, and each of its trajectories the tokens after it. Without a transcript, what is
    shared is turn 1's prompt, and each trained turn adds what its prompt has more, and its answer.

    Example: a group of two with prompts of 100 and 160 and answers of 50 has four rows of 210 tokens, or a
    tree of 100 + 2 * 110 = 320; without a transcript, 100 + 2 * (50 + 110) = 420.
    """
    trajectories, answer = args.per_device_train_batch_size, args.max_completion_length
    rows_T = [prompt + answer for prompt in prompts_T[-len(make_objective(args).trained_turns) :]]
    groups = math.ceil(trajectories / args.num_generations)
    carry = named_carry(args.carry)
    shared, rows = carry.shared_tokens(prompts_T, len(rows_T)), carry.covering(rows_T)
    if not args.share_prefixes:
        shared, rows = 0, [rows_T[-1]] * len(rows_T)
    tokens = groups * shared + trajectories * sum(row - shared for row in rows)
    sampled = min(args.rollout_batch_size, args.generation_batch_size // args.world_size)
    return tokens, trajectories * len(rows_T) * answer, sampled


class Updates(NamedTuple):
    """Updates of a run over its problems."""

    number: int  # updates of the run
    passes: float  # passes over the problems
    warning: str  # about the problems that each pass leaves out; "" if there are none


def run_updates(args: CoCoSConfig, num_problems: int) -> Updates:
    """Return the updates of a run.

    Remaining problems that do not fill a rollout are left out of a pass. If there are too few for one, they
    are repeated, and a pass is one rollout.
    """
    together = args.generation_batch_size // args.num_generations
    left_out = num_problems % together if num_problems > together else 0
    per_rollout = args.steps_per_generation * args.num_iterations // args.gradient_accumulation_steps
    per_pass = max(1, num_problems // together) * per_rollout
    number = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_pass)
    warning = (
        f"{left_out} of {num_problems} problems are left out of each pass, because {together} are sampled "
        "together (--rollout_batch_size)"
    ) * (left_out > 0)
    return Updates(number, number / per_pass * (1 - left_out / num_problems), warning)


def passes_warning(passes: float, most: int) -> str:
    """Return the warning about a run with more passes over its data than `most`; "" if it has fewer."""
    return (
        f"{passes:.0f} passes over the data, more than {most}: the model may learn it by heart; lower "
        "--max_steps, or give --num_train_epochs"
    ) * (passes > most)


def _warnings(
    args: CoCoSConfig, num_prompts: int, updates: Updates, model: Model, lengths: TokenLengths, row: int
) -> Iterator[str]:
    """Yield the warnings about the problems, what the run makes of them, and their lengths in tokens."""
    if num_prompts < (needed := args.generation_batch_size // args.num_generations):
        yield (
            f"{num_prompts} problems are fewer than the {needed} that are sampled together, so each of them "
            "is sampled several times; lower --global_batch_size for shorter updates"
        )
    yield updates.warning
    yield passes_warning(updates.passes, MOST_PASSES)
    if row > (context := model.config.max_position_embeddings):
        yield (
            f"turn {args.num_turns} may reach {row} tokens, beyond the model's context of {context}; lower "
            f"--max_completion_length, or leave out task {lengths.longest_task}"
        )
    if (needed := lengths.reference) > (most := args.max_completion_length):
        answers = "such answers would be truncated"
        yield f"a reference takes {needed} tokens, more than --max_completion_length {most}; {answers}"
    if (vocab := lengths.vocabulary) > (known := model.config.vocab_size):
        yield f"the tokenizer has {vocab} tokens, but the model only {known}; higher ids would fail"
    if args.reward == "random":
        yield "--reward random: every program earns 0 or 1 by chance; this run is a control"
    if args.placebo != "none":
        yield f"--placebo {args.placebo}: prompts do not tell the truth; this run is a control"


def _reference_warnings(args: CoCoSConfig, problem: Problem, result: ExecutionResult) -> Iterator[str]:
    see = "see " + command_line("prepare", "check", problems_file(args.train_data))
    if problem.code and not result.all_passed:
        yield f"the reference of task {problem.task_id} does not pass its tests; {see}"
    reasons = [verdict.in_child_reason for verdict in result.verdicts if verdict.in_child]
    if reasons and not args.reward_in_child:
        yield (
            f"{len(reasons)} tests of task {problem.task_id} earn nothing, because the program itself could "
            f"forge the verdict ({reasons[0]}); give --reward_in_child true to reward them; {see}"
        )


def _data_text(data: TrainingData, lengths: TokenLengths, last_prompt: int) -> str:
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
        f"{lengths.longest_task}), last prompt up to {last_prompt}, longest reference {lengths.reference}"
    )


def _prompts_text(trajectory: Trajectory, transcripts: TokenTranscripts) -> str:
    prompts = [
        f"--- prompt of turn {number}, {len(turn.prompt_ids)} tokens ---\n"
        + transcripts.show(turn.prompt_ids)
        for number, turn in enumerate(trajectory.turns, start=1)
        if not turn.is_carried
    ]
    return "\n".join([*prompts, "---"])


def _result_text(args: CoCoSConfig, problem: Problem, result: ExecutionResult, played: Trajectory) -> str:
    program, reward = "the reference" if problem.code else "a placeholder (no reference)", own_reward(args)
    passed = f"{program} of task {problem.task_id} passes {result.num_passed} of {len(result.verdicts)} tests"
    return passed + (f"\n--reward {reward.name}: {reward(played)} for the turns above" if reward else "")


def _updates_text(args: CoCoSConfig, updates: Updates) -> str:
    trajectories = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    return (
        f"training: {updates.number} updates of {trajectories} trajectories "
        f"({trajectories // args.num_generations} problems x {args.num_generations}), "
        f"{trajectories * len(make_objective(args).trained_turns)} rows and {trajectories * args.num_turns} "
        f"programs each; {updates.passes:.1f} passes over the problems"
    )


def warnings_text(warnings: Iterable[str]) -> str:
    """Return one line per warning that is not empty."""
    return "\n".join(f"warning: {warning}" for warning in warnings if warning) or "no warnings"
