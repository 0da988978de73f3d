"""A run of test.py: select problems, find the missing trajectories, play them, and merge the rows.

Batches are formed from the whole list of problems and always played whole, because the last digits of a
model's logits depend on the other rows of the batch. A run that was interrupted, or distributed over
processes, therefore has the same rows as one that was not.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cocos.agents.words import agent_protocol
from cocos.assembly.rules import conditions
from cocos.config.eval_config import EvalConfig
from cocos.config.ranks import is_launched
from cocos.evaluation.generator import open_player
from cocos.evaluation.progress import ProgressBar, context_warning
from cocos.evaluation.resumption import configuration_changes, evaluation_record, files_sha256
from cocos.evaluation.sample_files import append_rows, is_evaluation, merge_files, rank_path, sample_paths
from cocos.evaluation.sample_rows import SampleRow, has_infra_failure, trajectory_from_row, trajectory_to_row
from cocos.executor import Executor
from cocos.files.durable import FolderLock, save_json
from cocos.files.output_folder import check_output_folder
from cocos.generation import Generator
from cocos.generation.round_trip import prompt_warning
from cocos.metrics import run_metrics
from cocos.prompts import PromptProtocol
from cocos.rollout import InfraFailures
from cocos.trajectories import Key, Trajectory, problems_of

Item = TypeVar("Item")


@dataclass(frozen=True)
class Ranks:
    """A process among the ranks of an evaluation; alone, it needs neither torch nor accelerate."""

    rank: int = 0
    num_ranks: int = 1

    @property
    def is_main(self) -> bool:
        """Return whether this is rank 0."""
        return self.rank == 0

    def print(self, *words: object, **options: Any) -> None:
        """Print on rank 0."""
        if self.is_main:
            print(*words, **options)

    def gather(self, items: list[Item]) -> list[Item]:
        """Return the items of all ranks, in the order of the ranks; waits for all of them."""
        if self.num_ranks == 1:
            return items
        from accelerate.utils import gather_object

        gathered: list[Item] = gather_object(items)
        return gathered

    def broadcast(self, item: Item) -> Item:
        """Return rank 0's item; waits for all ranks."""
        if self.num_ranks == 1:
            return item
        from accelerate.utils import broadcast_object_list

        [item] = broadcast_object_list([item])
        return item


def join_ranks() -> Ranks:
    """Join the processes that accelerate or torchrun started; without a launcher, be the only rank."""
    if not is_launched():
        return Ranks()
    import torch
    from accelerate import PartialState

    # A rank that has finished waits for the others in `gather`, possibly for hours: no timeout.
    state = PartialState(cpu=not torch.accelerator.is_available(), timeout=timedelta(days=30))
    return Ranks(state.process_index, state.num_processes)


@dataclass(frozen=True)
class EvaluationRun:
    """State of a run on one of its ranks."""

    args: EvalConfig  # options of the run
    trajectories: Sequence[Trajectory]  # all trajectories of the run, without turns
    missing: set[Key]  # keys of the trajectories that have no scored row yet
    executor: Executor  # executes the programs
    state: Ranks  # this rank and the number of ranks
    path: Path  # file to which this rank appends its rows
    started_s: float  # time at which this command began the run, on the clock of `time.monotonic`

    @property
    def keys(self) -> list[Key]:
        """Keys of all trajectories, in order."""
        return [trajectory.key for trajectory in self.trajectories]


@contextmanager
def start_or_resume(
    args: EvalConfig, trajectories: Sequence[Trajectory], executor: Executor
) -> Iterator[EvaluationRun]:
    """Lock the output folder, compare an existing run with the options, and find the missing trajectories.

    Raises:
        ValueError: The folder contains a run and `--resume` is not given, the configuration has changed, or
            another run is writing to the folder.

    """
    folder, state, started_s = Path(args.output_dir), join_ranks(), time.monotonic()
    keys = [trajectory.key for trajectory in trajectories]
    missing = set(keys)
    with closing(FolderLock(folder)) as lock:
        if state.is_main:
            lock.lock_exclusive()  # no rank of another run may be writing while the files are merged
            check_output_folder(folder, is_evaluation)  # another command may have written there meanwhile
        try:
            if state.is_main:
                missing -= _finished_keys(args, keys, executor)
                lock.lock_shared()
            # The broadcast also makes the other ranks wait until rank 0 shares its lock.
            missing = state.broadcast(missing)
            lock.lock_shared()
            path = rank_path(folder, state.rank)
            yield EvaluationRun(args, trajectories, missing, executor, state, path, started_s)
        finally:
            if state.is_main and not sample_paths(folder):  # a failed start leaves nothing behind
                (folder / "run.json").unlink(missing_ok=True)
                lock.discard()


def _finished_keys(args: EvalConfig, keys: Sequence[Key], executor: Executor) -> set[Key]:
    """Return the keys that have a scored row, after comparing their run with the options; write run.json."""
    folder, record = Path(args.output_dir), evaluation_record(args, executor, files_sha256(args))
    if sample_paths(folder):
        record["changes"] = configuration_changes(args, record)
    rows = merge_files(folder, keys)
    save_json(record, folder / "run.json")
    return {key for key, row in rows.items() if not has_infra_failure(row)}


def start_line(run: EvaluationRun, protocol: PromptProtocol) -> str:
    """Return the line with which a run starts: its size, its conditions, and what is resumed."""
    args, num_saved = run.args, len(run.trajectories) - len(run.missing)
    samples = f" x {args.num_samples} samples" if args.num_samples > 1 else ""
    resumed = f"resumed: {num_saved} of {len(run.trajectories)} trajectories are saved"
    return (
        f"{len(run.trajectories) // args.num_samples} problems{samples}, {args.num_turns} turns, protocol "
        f"{protocol.name}; executor isolation: {run.executor.isolation}"
        + (f"; {resumed}" if num_saved else "")
    )


def evaluate(run: EvaluationRun, generator: Generator, protocol: PromptProtocol) -> None:
    """Play this rank's share of the missing trajectories, and append their rows after each batch.

    Raises:
        ExecutorError: More than `--max_infra_share` of the turns played so far met an infrastructure failure.

    """
    args, size = run.args, run.args.batch_size
    protocol = agent_protocol(protocol, args.agent, args.system_prompt is not None)
    problems = problems_of(run.trajectories)
    play = open_player(args, generator, run.executor, protocol, problems=problems)
    warnings = (
        prompt_warning(problems, generator, protocol),
        context_warning(run.trajectories, generator, protocol, args.num_turns, args.max_completion_length),
    )
    for warning in filter(None, warnings):
        run.state.print(f"warning: {warning}", file=sys.stderr)
    batches = [run.trajectories[i : i + size] for i in range(0, len(run.trajectories), size)]
    batches = [batch for batch in batches if any(trajectory.key in run.missing for trajectory in batch)]
    batches = batches[run.state.rank :: run.state.num_ranks]
    failures = InfraFailures(args.max_infra_share)
    recorded = conditions(args)
    is_main, total = run.state.is_main, sum(map(len, batches))
    with ProgressBar(total, args.num_turns, size, generator, is_main, args.verbose) as progress:
        for batch in batches:
            if args.generator == "api":  # no batches at an endpoint: request only what is missing
                batch = [trajectory for trajectory in batch if trajectory.key in run.missing]
            try:
                batch = play(batch)
            except RuntimeError as error:
                if type(error).__name__ != "OutOfMemoryError":  # torch's; an endpoint needs no torch
                    raise
                raise ValueError(
                    f"the GPU's memory is full; lower --batch_size {args.batch_size} or "
                    "--max_completion_length, then continue with --resume --accept_changes"
                ) from None
            new = [trajectory for trajectory in batch if trajectory.key in run.missing]
            append_rows(run.path, [trajectory_to_row(trajectory, **recorded) for trajectory in new])
            progress.add(batch)
            failures.add(batch)


class Outcome(NamedTuple):
    """Results of a run."""

    metrics: dict[str, object]  # contents of metrics.json
    rows: list[SampleRow]  # contents of samples.jsonl


def merge_and_summarize(run: EvaluationRun) -> Outcome | None:
    """Wait for every rank, merge their rows into one file, and return them with their metrics.

    Returns:
        The outcome on rank 0, None on the others.

    Raises:
        ExecutorError: More than `--max_infra_share` of all turns met an infrastructure failure.

    """
    stats = run.state.gather([asdict(run.executor.stats)])
    if not run.state.is_main:
        return None
    rows = merge_files(Path(run.args.output_dir), run.keys)
    trajectories = [trajectory_from_row(rows[t.key], t.problem) for t in run.trajectories]
    InfraFailures(run.args.max_infra_share).add(trajectories)
    total = {name: sum(of_rank[name] for of_rank in stats) for name in stats[0]}
    wall_time = {"wall_s": round(time.monotonic() - run.started_s, 3), "played": len(run.missing)}
    metrics = run_metrics(trajectories, conditions(run.args))
    metrics |= {"speed": metrics["speed"] | wall_time, "executor": total}
    return Outcome(metrics, list(rows.values()))
