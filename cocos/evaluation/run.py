"""A run of test.py: which problems, which of their trajectories are still to be played, and who plays them.

Batches are cut from the whole list of problems and played whole, since what is sampled together decides about
the last digits: a run that was interrupted, or spread over processes, ends with the rows of one that was not.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from tqdm import tqdm

from cocos.config import EvalConfig
from cocos.evaluation.given_answers import FIELDS, given_answers
from cocos.evaluation.sample_files import Key, Lock, append, appending, files, is_scored, settle
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import Executor
from cocos.files.durable import save_json
from cocos.files.run_record import run_record, sha256
from cocos.generation import Generator
from cocos.metrics import scored, summary
from cocos.problems import DataError, Problem, load_problems
from cocos.prompts import PromptProtocol
from cocos.rollout import rollout
from cocos.trajectories import Trajectory, begin, check_infra_failures

# Options that a run may change when it is continued: its results do not depend on them.
FREE = (
    *("output_dir", "resume", "accept_changes", "executor_workers", "max_infra_share"),
    *("api_key_env", "concurrency", "max_retries", "request_timeout_s"),
)


def join_ranks() -> PartialState:
    """Which process is which among those that accelerate or torchrun started; alone without them."""
    # Who is done first waits for the others, however long they take.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=timedelta(days=30))


def begun_trajectories(args: EvalConfig, protocol: PromptProtocol) -> list[Trajectory]:
    """The trajectories of a run, --num_samples neighbours per problem, with the answers that are given.

    Raises:
        ValueError: No problem is left, a given answer is not there, or a turn has neither answer nor model.

    """
    trajectories = begin(_chosen_problems(args), args.num_samples)
    given = given_answers(args.answers, trajectories, protocol)
    if not args.model_name_or_path and min(map(len, given)) < args.num_turns:
        raise ValueError(
            f"--answers has {min(map(len, given))} turns for --num_turns {args.num_turns}: give "
            "--model_name_or_path for the others"
        )
    return [
        replace(t, given=answers[: args.num_turns]) for t, answers in zip(trajectories, given, strict=True)
    ]


def _chosen_problems(args: EvalConfig) -> list[Problem]:
    """What --task_ids, --start and --limit leave of --test_data, with its tests hidden as asked."""
    problems = load_problems(args.test_data)
    if args.task_ids is not None:
        wanted, there = set(args.task_ids), {problem.task_id for problem in problems}
        if absent := [task_id for task_id in args.task_ids if task_id not in there]:
            raise ValueError(f"--task_ids: {args.test_data} has no problem {absent[0]!r}")
        problems = [problem for problem in problems if problem.task_id in wanted]
    problems = problems[args.start :][: args.limit]
    if not problems:
        raise ValueError(f"--start {args.start} --limit {args.limit} leaves no problem of {args.test_data}")
    if args.visible_tests is None:
        return problems
    n = args.visible_tests
    return [
        replace(p, test_list=p.test_list[:n], hidden_test_list=p.test_list[n:] + p.hidden_test_list)
        for p in problems
    ]


@dataclass(frozen=True)
class Run:
    """An evaluation under way, as one of its ranks sees it.

    Attributes:
        args: Its options.
        trajectories: All of them, not begun.
        missing: Those that have no row yet, by key.
        executor: Decides about programs.
        state: The ranks.
        file: Takes this rank's rows.

    """

    args: EvalConfig
    trajectories: Sequence[Trajectory]
    missing: set[Key]
    executor: Executor
    state: PartialState
    file: BinaryIO


@contextmanager
def open_run(args: EvalConfig, trajectories: Sequence[Trajectory], executor: Executor) -> Iterator[Run]:
    """Take the output folder, hold what is there to the configuration, and see what is still to be played.

    Raises:
        ValueError: The folder has a run and --resume is not given, the configuration has changed, or another
            run is writing there.

    """
    folder, state = Path(args.output_dir), join_ranks()
    missing = set(_keys(trajectories))
    with closing(Lock(folder)) as lock:
        if state.is_main_process:
            lock.take(alone=True)
            facts = _facts(args, executor)
            if files(folder):
                facts["changes"] = _changes(args, facts)
            missing -= {key for key, row in settle(folder, _keys(trajectories)).items() if is_scored(row)}
            save_json(facts, folder / "run.json")
            lock.take(alone=False)
        [missing] = broadcast_object_list([missing])  # the others come after rank 0
        lock.take(alone=False)
        with appending(folder, state.process_index) as file:
            yield Run(args, trajectories, missing, executor, state, file)


def _facts(args: EvalConfig, executor: Executor) -> dict[str, Any]:
    """What the run is made with, and may be continued with."""
    answers = [source for source in args.answers if source not in FIELDS]
    data = [path for path in (args.test_data, args.few_shot_data, *answers) if path]
    weights = Path(args.model_name_or_path).glob("*.safetensors") if args.model_name_or_path else ()
    return run_record(
        args,
        data_sha256={path: sha256(path) for path in (*data, *sorted(map(str, weights)))},
        isolation=executor.isolation,
        changes=[],
        **args.conditions,
    )


def _changes(args: EvalConfig, facts: dict[str, Any]) -> list[str]:
    """In what the run that is there was made otherwise, these changes and earlier ones.

    Raises:
        ValueError: It is not to be continued, or not with these changes.

    """
    folder = Path(args.output_dir)
    if not args.resume:
        raise ValueError(f"{folder} has samples; --resume continues that run, or choose another --output_dir")
    try:
        before = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        earlier, old = before["changes"], _flat(before)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder}/run.json does not say what the samples were made with ({error!r}); choose another "
            "--output_dir"
        ) from None
    new = _flat(json.loads(json.dumps(facts, default=str)))
    changes = [
        f"{name} was {old.get(name)!r}, is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and name not in FREE
    ]
    if changes and not args.accept_changes:
        raise ValueError(
            f"{folder} was made with another configuration: {'; '.join(changes)}; go back to it, choose "
            "another --output_dir, or mix the two with --accept_changes"
        )
    return [*earlier, *changes]


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Options, versions, data and the rest, a name each."""
    nested = ("options", "versions", "data_sha256")
    parts = [facts[name] for name in nested] + [{k: v for k, v in facts.items() if k not in nested}]
    return {name: value for part in parts for name, value in part.items() if name != "changes"}


def evaluate(run: Run, generator: Generator, protocol: PromptProtocol) -> None:
    """Play this rank's share of what is missing; a batch's rows are on the disk when it is played."""
    args, size = run.args, run.args.batch_size * run.args.num_samples
    batches = [run.trajectories[i : i + size] for i in range(0, len(run.trajectories), size)]
    batches = [batch for batch in batches if run.missing & set(_keys(batch))]
    mine = batches[run.state.process_index :: run.state.num_processes]
    played: list[Trajectory] = []
    accuracy: dict[str, str] = {}
    with tqdm(total=sum(map(len, mine)), unit=" samples", disable=not run.state.is_main_process) as bar:
        for batch in mine:
            if args.generator == "api":  # what it is asked at a time decides about nothing there
                batch = [trajectory for trajectory in batch if _key(trajectory) in run.missing]
            batch = rollout(batch, generator, run.executor, protocol, args.num_turns, args.rules)
            for _, of_problem in groupby(batch, key=lambda trajectory: trajectory.problem.task_id):
                new = [t for t in of_problem if _key(t) in run.missing]
                append(run.file, [trajectory_to_row(trajectory, **args.conditions) for trajectory in new])
            played += batch
            check_infra_failures(played, args.max_infra_share)
            bar.update(len(batch))
            usable = scored(played)
            for turn in dict.fromkeys((0, args.num_turns - 1)):
                right = sum(trajectory.turns[turn].result.all_passed for trajectory in usable)
                accuracy[f"acc@{turn + 1}"] = f"{right / max(1, len(usable)):.3f}"
            bar.set_postfix(accuracy)


def finish(run: Run) -> dict[str, object] | None:
    """Wait for every rank and make one file of their rows; what goes into metrics.json, on rank 0."""
    stats = gather_object([asdict(run.executor.stats)])
    if not run.state.is_main_process:
        return None
    rows = settle(Path(run.args.output_dir), _keys(run.trajectories))
    trajectories = [trajectory_from_row(rows[_key(t)], t.problem) for t in run.trajectories]
    check_infra_failures(trajectories, run.args.max_infra_share)
    total = {name: sum(of_rank[name] for of_rank in stats) for name in stats[0]}
    return summary(trajectories) | run.args.conditions | {"speed": speed(trajectories), "executor": total}


def speed(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Tokens and programs, and how many a second of one rank's generation and of one worker's execution."""
    turns = [turn for trajectory in trajectories for turn in trajectory.turns if not turn.is_carried]
    sampled = [turn.completion for turn in turns if not turn.is_given]
    tokens = sum(completion.num_completion_tokens or 0 for completion in sampled)
    generation_s = sum(completion.duration_s for completion in sampled)
    execution_s = sum(turn.result.duration_s for turn in turns)
    return {
        "completion_tokens": tokens,
        "generation_s": round(generation_s, 3),
        "tokens_per_s": round(tokens / generation_s, 1) if generation_s else 0.0,
        "programs": len(turns),
        "execution_s": round(execution_s, 3),
        "programs_per_s": round(len(turns) / execution_s, 1) if execution_s else 0.0,
    }


def _key(trajectory: Trajectory) -> Key:
    return trajectory.problem.task_id, trajectory.sample


def _keys(trajectories: Sequence[Trajectory]) -> list[Key]:
    return [_key(trajectory) for trajectory in trajectories]
