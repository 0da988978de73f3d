"""What a run would do, without its weights: everything resolved, the first prompts, steps, memory, seconds.

    python train.py --config configs/cocos_qwen2.5-1.5b.yaml --output_dir OUT --dry_run

The model exists on the meta device only, so a 7B takes seconds on a laptop. The first problem is played
through the turn loop of training, with its reference as every answer, and its programs are executed. The
sizes are read in `sizes.py`, the arithmetic is in `memory.py` and `schedule.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import AutoConfig, PretrainedConfig, PreTrainedTokenizerBase
from trl import ModelConfig, get_peft_config

from cocos.config import CoCoSConfig, open_executor, prompt_protocol
from cocos.generation import Completion
from cocos.generation.tokenizer import TokenTranscripts, encode, load_tokenizer
from cocos.planning.memory import GIB, Load, Memory, ModelShape, Setting, fits, peak, phases
from cocos.planning.run_sizes import model_shape, run_load, run_schedule, run_setting
from cocos.planning.schedule import (
    A10,
    A100,
    TIMEOUT_SHARE,
    Schedule,
    executor_cores,
    gib,
    prompt_lengths,
    seconds_per_update,
)
from cocos.problems import Problem, load_problems
from cocos.prompts import PromptProtocol, answer
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, begin

PLACEHOLDER = "def solution(*args):\n    return None"  # stands for an answer where there is no reference


def report(args: CoCoSConfig, model_args: ModelConfig) -> str:
    """All that can be known of a run before its weights are loaded.

    Raises:
        ValueError: What would stop the run before its first step: data, model, tokenizer, adapter or prompts.
        ExecutorError: The executor's self-test fails.

    """
    problems = load_problems(args.train_data)
    dev_problems = load_problems(args.dev_data) if args.dev_data else []
    protocol = prompt_protocol(args)
    tokenizer = load_tokenizer(
        model_args.model_name_or_path, model_args.model_revision, args.trust_remote_code
    )
    config = AutoConfig.from_pretrained(
        model_args.model_name_or_path,
        revision=model_args.model_revision,
        trust_remote_code=args.trust_remote_code,
    )
    shape = model_shape(config, get_peft_config(model_args), args.trust_remote_code)
    setting = run_setting(args, model_args, config, has_reference=args.beta > 0)
    reciter = Reciter(tokenizer, problems[0].code or PLACEHOLDER)
    with open_executor(args) as executor:
        [played] = rollout(begin(problems[:1]), reciter, executor, protocol, args.num_turns)
        workers, isolation = executor.num_workers, executor.isolation
    lengths = Lengths.measure(problems + dev_problems, reciter, protocol)
    prompts_T = prompt_lengths(
        lengths.longest_prompt, args.max_completion_length, lengths.instruction, args.num_turns
    )
    schedule = run_schedule(args, len(problems))
    load = run_load(args, schedule, setting, prompts_T[-1])
    return "\n\n".join(
        [
            model_text(model_args.model_name_or_path, shape, setting),
            _data_text(problems, dev_problems, lengths),
            _prompts_text(played, reciter),
            f"executor: self-test passed at isolation level {isolation}, {workers} workers; "
            f"{_verdict(played)}",
            _steps_text(args, schedule),
            memory_text(shape, setting, load),
            _time_text(args, shape, setting, schedule, prompts_T),
            warnings_text(
                [
                    *_batch_warnings(schedule),
                    *_length_warnings(args, shape, lengths, prompts_T),
                    *_model_warnings(config, len(tokenizer), played),
                    *_engine_warnings(args),
                ]
            ),
        ]
    )


class Reciter(TokenTranscripts):
    """A generator that gives one prepared program as every answer, in the model's own tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, code: str):
        super().__init__(tokenizer, {tokenizer.eos_token_id})
        self.code = code

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        temperature: float,
        seeds: Sequence[int] | None = None,
    ) -> list[Completion]:
        ids = encode(self.tokenizer, answer(self.code), is_start=False)
        return [self.completion(ids, duration_s=0.0) for _ in prompts]


@dataclass(frozen=True)
class Lengths:
    """Tokens of the data under the tokenizer in force; `reference` is 0 where no problem has one."""

    longest_prompt: int
    longest_task: str
    median_prompt: int
    instruction: int
    reference: int

    @classmethod
    def measure(cls, problems: Sequence[Problem], reciter: Reciter, protocol: PromptProtocol) -> "Lengths":
        """Tokenize every problem's first prompt, and every reference."""
        starts = [reciter.start(protocol.first_turn(p), protocol.is_chat) for p in problems]
        ranked = sorted(zip(map(len, starts), (p.task_id for p in problems), strict=True))
        after = reciter.extend([], Completion((), ""), protocol.later_turn(), protocol.is_chat)
        references = [encode(reciter.tokenizer, answer(p.code), is_start=False) for p in problems if p.code]
        return cls(
            longest_prompt=ranked[-1][0],
            longest_task=ranked[-1][1],
            median_prompt=ranked[len(ranked) // 2][0],
            instruction=len(after),
            reference=max(map(len, references), default=0),
        )


def model_text(name: str | None, shape: ModelShape, setting: Setting) -> str:
    """The model, and what each of its parameters costs where."""
    adapter = f", {shape.adapter_parameters:,} of adapters are trained" if shape.adapter_parameters else ""
    sharding = ("nothing sharded", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3 or FSDP")[setting.zero_stage]
    bytes_ = setting.precision
    return (
        f"model: {name}, {shape.parameters:,} parameters{adapter}, context {shape.context} tokens\n"
        f"states: {setting.num_gpus} process(es), {sharding}; bytes per trained parameter: "
        f"weights {bytes_.weights:g}, gradients {bytes_.gradients:g}, "
        f"optimizer {bytes_.master + bytes_.moments:g}"
    )


def memory_text(shape: ModelShape, setting: Setting, load: Load) -> str:
    """The memory of every phase as a table, and whether this machine's GPU has room for it."""
    found = phases(shape, setting, load)
    head = f"{'GiB per GPU':<12}" + "".join(f"{name:>12}" for name in (*Memory._fields, "total"))
    lines = [
        f"{name:<12}" + "".join(f"{size / GIB:>12.2f}" for size in (*phase, phase.total))
        for name, phase in found.items()
    ]
    needed = peak(found)
    text = f"memory, estimated for rows of {load.prompt + load.answer} tokens, the longest there can be"
    verdict = f"needs {gib(needed)} GiB per GPU"
    if torch.cuda.is_available():
        has = torch.cuda.get_device_properties(0).total_memory
        room = "fits" if fits(needed, has / GIB) else "does NOT fit"
        verdict += f", {room} into this GPU's {gib(has)}"
    return "\n".join([text, head, *lines, verdict])


def warnings_text(warnings: Sequence[str]) -> str:
    """What would fail or teach nothing, a line each."""
    return "\n".join(f"warning: {warning}" for warning in warnings) or "no warnings"


def _data_text(problems: Sequence[Problem], dev_problems: Sequence[Problem], lengths: Lengths) -> str:
    visible, scored = (
        sum(map(len, tests)) for tests in zip(*((p.test_list, p.scored_tests) for p in problems), strict=True)
    )
    return (
        f"data: {len(problems)} problems, {len(dev_problems)} for dev; {visible} tests shown, "
        f"{scored - visible} hidden\n"
        f"tokens: first prompt {lengths.median_prompt} (median), {lengths.longest_prompt} (longest, task "
        f"{lengths.longest_task}), instruction {lengths.instruction}, longest reference {lengths.reference}"
    )


def _prompts_text(played: Trajectory, reciter: Reciter) -> str:
    return (
        "\n".join(
            f"--- prompt of turn {number}, {len(turn.prompt_ids)} tokens ---\n"
            + reciter.tokenizer.decode(turn.prompt_ids, clean_up_tokenization_spaces=False)
            for number, turn in enumerate(played.turns, start=1)
        )
        + "\n---"
    )


def _verdict(played: Trajectory) -> str:
    result = played.turns[0].result
    what = "the reference" if played.problem.code else "a placeholder (there is no reference)"
    return (
        f"{what} of task {played.problem.task_id} passes {result.num_passed} of {len(result.verdicts)} tests"
    )


def _steps_text(args: CoCoSConfig, schedule: Schedule) -> str:
    per_pass = schedule.updates_per_pass
    updates = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * per_pass)
    passes = f"{updates / per_pass:.1f} passes over the problems" if per_pass else "not one pass"
    return (
        f"steps: {updates} updates of {schedule.trajectories} trajectories "
        f"({schedule.trajectories // schedule.group} problems x {schedule.group}), {schedule.rows} rows and "
        f"{schedule.programs} programs each; {passes}"
    )


def _time_text(
    args: CoCoSConfig, shape: ModelShape, setting: Setting, schedule: Schedule, prompts_T: list[int]
) -> str:
    lines = ["seconds per update, estimated for cards from their data sheets (docs/scaling.md)"]
    local = schedule.trajectories / setting.num_gpus
    for card in (A10, A100):
        seconds = seconds_per_update(
            shape, setting, schedule, card, prompts_T, args.max_completion_length, args.rollout_batch_size
        )
        cores = executor_cores(local, seconds.rollout / schedule.turns, args.program_timeout_s)
        lines.append(
            f"{setting.num_gpus} x {card.name}: {seconds.total:.1f} (rollout {seconds.rollout:.1f}, "
            f"scoring {seconds.scoring:.1f}, update {seconds.update:.1f}); {cores} executor worker(s) per "
            f"GPU keep pace if {TIMEOUT_SHARE:.0%} of programs time out"
        )
    return "\n".join(lines)


def _batch_warnings(schedule: Schedule) -> list[str]:
    if schedule.updates_per_pass:
        return []
    return [
        f"{schedule.problems} problems are fewer than the {schedule.problems_per_rollout} that are sampled "
        f"together, so there would be no update; lower --global_batch_size or raise --num_generations"
    ]


def _length_warnings(
    args: CoCoSConfig, shape: ModelShape, lengths: Lengths, prompts_T: list[int]
) -> list[str]:
    found = []
    longest = prompts_T[-1] + args.max_completion_length
    if longest > shape.context:
        found.append(
            f"turn {args.num_turns} may reach {longest} tokens, beyond the model's context of "
            f"{shape.context}: lower --max_completion_length, or leave out task {lengths.longest_task}"
        )
    if lengths.reference > args.max_completion_length:
        found.append(
            f"a reference takes {lengths.reference} tokens, more than --max_completion_length "
            f"{args.max_completion_length}: such answers would be cut off"
        )
    return found


def _model_warnings(config: PretrainedConfig, num_tokens: int, played: Trajectory) -> list[str]:
    found = []
    vocab = config.get_text_config().vocab_size
    if num_tokens > vocab:
        found.append(f"the tokenizer has {num_tokens} tokens, the model {vocab}: ids beyond it would fail")
    if played.problem.code and not played.turns[0].result.all_passed:
        found.append(
            f"the reference of task {played.problem.task_id} does not pass its tests; "
            f"see scripts/prepare_data.py check"
        )
    return found


def _engine_warnings(args: CoCoSConfig) -> list[str]:
    if not args.use_vllm and not args.use_transformers_continuous_batching:
        return []
    return [
        "memory and seconds of the rollout are those of transformers' generate: the engine in force reserves "
        "its own share of the GPU for its cache, and samples faster"
    ]
