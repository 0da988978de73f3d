"""Report of train.py --dry_run: first prompts, number of updates, estimated memory, warnings.

    python train.py --config configs/cocos.yaml --model_name_or_path MODEL ... --dry_run

The model is created on the meta device, so a 7B model takes seconds on a laptop. The first problem is played
through the turn loop of training, and the executor runs its programs. The reference answers every turn;
with feedback, counterexamples or early stop it is a wrong program, so that the report shows what it is told.
"""

import math
import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from cocos.assembly.data import TrainingData
from cocos.assembly.objective import make_objective, own_reward
from cocos.assembly.programs import open_executor
from cocos.assembly.rules import make_rules
from cocos.config.trl_configs import CoCoSConfig
from cocos.dataprep.public_sets import problems_file
from cocos.files.bundled import command_line
from cocos.generation import Completion
from cocos.generation.round_trip import prompt_warning
from cocos.generation.tokenizer import TokenTranscripts, encode
from cocos.planning.lengths import TokenLengths, longest_prompts, measure_lengths
from cocos.planning.memory import memory_text, model_text, too_many_passes, warnings_text
from cocos.planning.shapes import ModelShape, run_shapes
from cocos.planning.workload import left_out_text, problems_left_out, run_workload, updates_per_pass
from cocos.problems import Problem
from cocos.prompts import answer
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, begin

MOST_PASSES = 300  # over the problems; configs/cocos.yaml has about as many over MBPP


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
    args: CoCoSConfig, shape: ModelShape, lengths: TokenLengths, num_prompts: int, longest: int, vocab: int
) -> list[str]:
    """Return the warnings about the sizes of a run.

    Args:
        num_prompts: Problems to train on.
        longest: Tokens of the longest transcript.
        vocab: Tokens of the tokenizer.

    """
    warnings = []
    if num_prompts < (needed := args.generation_batch_size // args.num_generations):
        warnings.append(
            f"{num_prompts} problems are fewer than the {needed} that are sampled together, so each of them "
            "is sampled several times; lower --global_batch_size for shorter updates"
        )
    if left_out := left_out_text(args, num_prompts):
        warnings.append(left_out)
    warnings += too_many_passes(_updates_and_passes(args, num_prompts)[1], MOST_PASSES)
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
    if vocab > shape.vocab:
        warnings.append(
            f"the tokenizer has {vocab} tokens, but the model only {shape.vocab}; higher ids would fail"
        )
    if args.reward == "random":
        warnings.append("--reward random: every program earns 0 or 1 by chance; this run is a control")
    if args.placebo != "none":
        warnings.append(f"--placebo {args.placebo}: prompts do not tell the truth; this run is a control")
    return warnings


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
    command = command_line("prepare", "check", problems_file(args.train_data))
    return [f"{warning}; see {command}" for warning in warnings]


PLACEHOLDER = "def {name}(*args):\n    return None"  # the answer if there is no reference, and a wrong one


def dry_run(args: CoCoSConfig, data: TrainingData, tokenizer: PreTrainedTokenizerBase) -> str:
    """Check a run without loading weights, and return the report.

    Raises:
        ValueError: The model or the adapter cannot be created, or the prompts cannot be tokenized.
        ExecutorError: The executor's self-test fails.

    """
    protocol, turns, answer = data.protocol, args.num_turns, args.max_completion_length
    shape, layout = run_shapes(args, has_reference=args.beta > 0)
    rules = make_rules(args, [args.temperature], None, data.problems, args.prompt_tests)
    first = data.prompts[0]
    reference = FixedAnswerGenerator(tokenizer, first.problem.code or _placeholder(first.problem))
    wrong = FixedAnswerGenerator(tokenizer, _placeholder(first.problem))
    is_told = rules.feedback != "none" or rules.carry.shows_failures
    generator = wrong if is_told or rules.early_stop else reference
    with open_executor(args) as executor:  # one problem needs no limit of its own
        [checked] = rollout(begin([first.problem]), reference, executor, protocol, 1)
        [trajectory] = rollout([first], generator, executor, protocol, turns, rules)
        num_workers, isolation = executor.num_workers, executor.isolation
    problems = data.problems + data.dev_problems
    lengths = measure_lengths(problems, generator, protocol)
    prompts_T = longest_prompts(problems, generator, protocol, rules, turns, answer)
    longest, num_prompts = prompts_T[-1] + answer, len(data.prompts)
    warnings = list(filter(None, [prompt_warning(problems, generator, protocol)]))
    warnings += run_warnings(args, shape, lengths, num_prompts, longest, len(tokenizer))
    rows = "prefix trees of rows" if args.share_prefixes else "plain rows"
    return "\n\n".join(
        [
            model_text(args.model_name_or_path, shape, layout),
            _data_text(data, lengths, prompts_T[-1]),
            _prompts_text(trajectory, generator),
            f"executor: self-test passed at isolation level {isolation}, {num_workers} workers; "
            f"{_verdict_text(checked)}{_own_reward_text(args, trajectory)}",
            _updates_text(args, num_prompts),
            memory_text(shape, layout, run_workload(args, prompts_T), rows),
            warnings_text(warnings + _reference_warnings(args, checked)),
        ]
    )


def _placeholder(problem: Problem) -> str:
    """Return a program that defines the function under test and solves nothing."""
    called = re.search(r"(\w+)\(", problem.scored_tests[0])
    return PLACEHOLDER.format(name=problem.entry_point or (called[1] if called else "solution"))


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


def _updates_text(args: CoCoSConfig, num_prompts: int) -> str:
    updates, passes = _updates_and_passes(args, num_prompts)
    trajectories = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    return (
        f"steps: {updates} updates of {trajectories} trajectories "
        f"({trajectories // args.num_generations} problems x {args.num_generations}), "
        f"{trajectories * len(make_objective(args).trained_turns)} rows and {trajectories * args.num_turns} "
        f"programs each; {passes:.1f} passes over the problems"
    )


def _updates_and_passes(args: CoCoSConfig, num_prompts: int) -> tuple[int, float]:
    per_pass = updates_per_pass(args, num_prompts)
    updates = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_pass)
    return updates, updates / per_pass * (1 - problems_left_out(args, num_prompts) / num_prompts)
