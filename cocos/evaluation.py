"""A run of test.py: which problems, which of their trajectories are still to be played, and who plays them.

Batches are cut from the whole list of problems and played whole, since what a batch is sampled with decides
about its floats: a run that was interrupted, or spread over processes, ends with the rows of one that was
not.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from tqdm import tqdm

from cocos.config import EvalConfig
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.metrics import correction_metrics, scored, summary
from cocos.problems import DataError, Problem, load_problems, sha256
from cocos.prompts import PromptProtocol
from cocos.records import as_row, as_trajectory, resolved, save_json
from cocos.rollout import Trajectory, begin, check_executed, rollout
from cocos.samples import Key, Lock, append, appending, files, is_scored, key, settle

# Options that a run may change when it is continued: its results do not depend on them.
FREE = ("output_dir", "resume", "accept_changes", "executor_workers", "max_infra_share")


def join_ranks() -> PartialState:
    """Which process is which among those that accelerate or torchrun started; alone without them."""
    # Who is done first waits for the others, however long they take.
    return PartialState(cpu=not torch.accelerator.is_available(), timeout=timedelta(days=30))


def chosen_problems(args: EvalConfig) -> list[Problem]:
    """The problems of --test_data that --task_ids, --start and --limit leave, hidden tests as asked.

    Raises:
        ValueError: None is left, or a task id is not there.

    """
    problems = load_problems(args.test_data)
    if args.task_ids is not None:
        there = {problem.task_id for problem in problems}
        if absent := [task_id for task_id in args.task_ids if task_id not in there]:
            raise ValueError(f"--task_ids: {args.test_data} has no problem {absent[0]!r}")
        problems = [problem for problem in problems if problem.task_id in set(args.task_ids)]
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


class Run(NamedTuple):
    """What a rank needs to add its part."""

    missing: set[Key]  # of all ranks
    file: BinaryIO
    state: PartialState


@contextmanager
def open_run(
    args: EvalConfig, problems: Sequence[Problem], executor: Executor, state: PartialState
) -> Iterator[Run]:
    """Take the folder, hold the run that is there to its configuration, and say what is still to be played.

    Raises:
        ValueError: The folder has a run and --resume is not given, the configuration has changed, or another
            run is writing there.

    """
    folder = Path(args.output_dir)
    keys = _keys(problems, args)
    missing = set(keys)
    with closing(Lock(folder)) as lock:
        if state.is_main_process:
            lock.take(alone=True)
            facts = _facts(args, executor)
            if files(folder):
                _check_resumable(args, facts)
            missing -= {one for one, row in settle(folder, keys).items() if is_scored(row)}
            save_json(facts, folder / "run.json")
            lock.take(alone=False)
        [missing] = broadcast_object_list([missing])  # the others come after rank 0
        lock.take(alone=False)
        with appending(folder, state.process_index) as file:
            yield Run(missing, file, state)


def _facts(args: EvalConfig, executor: Executor) -> dict[str, object]:
    data = [path for path in (args.test_data, args.few_shot_data) if path]
    return resolved(
        args,
        data_sha256={path: sha256(path) for path in data},
        isolation=executor.isolation,
        **args.conditions,
    )


def _check_resumable(args: EvalConfig, facts: dict[str, Any]) -> None:
    folder = Path(args.output_dir)
    if not args.resume:
        raise ValueError(f"{folder} has samples; --resume continues that run, or choose another --output_dir")
    try:
        before = _flat(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder}/run.json: what the samples were made with cannot be read ({error}); choose another "
            "--output_dir"
        ) from None
    now = _flat(json.loads(json.dumps(facts, default=str)))
    changed = [
        f"{name} (was {before.get(name)!r}, is {now.get(name)!r})"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name) and name not in FREE
    ]
    if changed and not args.accept_changes:
        raise ValueError(
            f"{folder} was made with another configuration: {', '.join(changed)}; go back to it, choose "
            "another --output_dir, or mix the two with --accept_changes"
        )


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Options, versions, data and the rest by one name each."""
    parts = [facts.pop(name) for name in ("options", "versions", "data_sha256")]
    return {name: value for part in (facts, *parts) for name, value in part.items()}


def evaluate(
    run: Run,
    args: EvalConfig,
    problems: Sequence[Problem],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
) -> None:
    """Play this rank's share of what is missing, problem by problem on the disk when its batch is played."""
    batches = [problems[i : i + args.batch_size] for i in range(0, len(problems), args.batch_size)]
    missing = [batch for batch in batches if run.missing & set(_keys(batch, args))]
    mine = missing[run.state.process_index :: run.state.num_processes]
    played: list[Trajectory] = []
    with tqdm(total=sum(map(len, mine)), unit=" problems", disable=not run.state.is_main_process) as bar:
        for batch in mine:
            trajectories = rollout(
                begin(batch, args.num_samples), generator, executor, protocol, args.num_turns, args.rules
            )
            for _, of_problem in groupby(trajectories, key=lambda t: t.problem.task_id):
                rows = [as_row(trajectory, **args.conditions) for trajectory in of_problem]
                append(run.file, [row for row in rows if key(row) in run.missing])
            played += trajectories
            check_executed(played, args.max_infra_share)
            bar.update(len(batch))
            if scored(played):
                accuracy = correction_metrics(played)
                bar.set_postfix(
                    {f"acc@{t}": f"{accuracy[f'acc_t{t}'].value:.3f}" for t in (1, args.num_turns)}
                )


def finish(
    run: Run, args: EvalConfig, problems: Sequence[Problem], executor: Executor
) -> dict[str, object] | None:
    """Wait for every rank and make one file of their rows; what goes into metrics.json, on rank 0."""
    stats = gather_object([asdict(executor.stats)])
    if not run.state.is_main_process:
        return None
    rows = settle(Path(args.output_dir), _keys(problems, args))
    by_id = {problem.task_id: problem for problem in problems}
    trajectories = [as_trajectory(row, by_id[row["task_id"]]) for row in rows.values()]
    check_executed(trajectories, args.max_infra_share)
    total = {name: sum(of_rank[name] for of_rank in stats) for name in stats[0]}
    return summary(trajectories) | args.conditions | {"speed": speed(trajectories), "executor": total}


def speed(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Tokens and programs, and how many per second of one process's generation, of one worker's execution."""
    turns = [turn for trajectory in trajectories for turn in trajectory.turns if not turn.is_carried]
    tokens = sum(turn.completion.num_completion_tokens or 0 for turn in turns)
    generation_s = sum(turn.completion.duration_s for turn in turns)
    execution_s = sum(turn.result.duration_s for turn in turns)
    return {
        "completion_tokens": tokens,
        "generation_s": round(generation_s, 3),
        "tokens_per_s": round(tokens / generation_s, 1) if generation_s else 0.0,
        "programs": len(turns),
        "execution_s": round(execution_s, 3),
        "programs_per_s": round(len(turns) / execution_s, 1) if execution_s else 0.0,
    }


def _keys(problems: Sequence[Problem], args: EvalConfig) -> list[Key]:
    return [(problem.task_id, sample) for problem in problems for sample in range(args.num_samples)]
