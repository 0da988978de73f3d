"""Finished evaluations, read from the output folders of test.py, and their paired comparisons.

samples.jsonl is streamed; only the values that charts and comparisons need are kept in memory.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from cocos.evaluation.run_metrics import run_metrics
from cocos.evaluation.sample_rows import (
    SampleRow,
    conditions_of_row,
    has_infra_failure,
    problem_of_row,
    trajectory_from_row,
    validate_row,
)
from cocos.files.json_lines import read_rows
from cocos.intervals import Comparison, Estimate, compare, share

MAX_ROW_BYTES = 1 << 30  # a row repeats its problem's text in the requests of its turns
REPAIR = "run test.py with the same options and --resume, which writes it again"
METRICS_KEYS = (
    *("num_problems", "num_trajectories", "num_scored", "num_infra_failures", "num_truncated"),
    *("num_in_child", "metrics", "pass_at_k", "errors", "fix_rates", "feedback", "early_stop", "answers"),
)
RECORD_KEYS = ("options", "versions")


class TurnPair(NamedTuple):
    """Two turns, counted from 1; `str(pair)` is the pair's name in metrics.json, such as t1_t2."""

    before: int
    after: int

    def __str__(self) -> str:
        return f"t{self.before}_t{self.after}"


@dataclass
class SampleStatistics:
    """Statistics of samples.jsonl, collected in one pass.

    A suffix _T marks a list with one entry per turn.
    """

    # By task_id, whether the program of each turn of each scored sample is right.
    right_K_T: dict[str, list[list[bool]]] = field(default_factory=dict)
    # By task_id, the tokens of each turn's completion in each scored sample; 0 for a turn that early stop
    # carried over.
    sampled_tokens_K_T: dict[str, list[list[int]]] = field(default_factory=dict)
    # a turn was sampled again because it repeated the previous one. The rows do not contain the first
    # completion, so the generated tokens are more than `sampled_tokens_K_T`.
    has_resampled: bool = False
    # Tokens of each completion. Here and below, a turn that early stop carried over has no entry.
    tokens_T: list[list[float]] = field(default_factory=list)
    # Seconds of generation of each completion.
    generation_s_T: list[list[float]] = field(default_factory=list)
    execution_s_T: list[list[float]] = field(default_factory=list)  # seconds of execution of each program
    # By task_id, tokens generated, and seconds of generation and execution, over all its samples.
    costs_K: dict[str, tuple[int, float]] = field(default_factory=dict)
    num_sampled: int = 0  # completions of the model; given ones are not
    num_truncated: int = 0  # those that reached the limit of tokens
    num_empty: int = 0  # those without a program
    # By turn (from 1) and error type, then by task_id: whether the next turn is right, per wrong program.
    repaired_K: dict[tuple[int, str], dict[str, list[bool]]] = field(default_factory=dict)
    # By task_id, the hash of the problem's text and tests. Runs with other hashes were made from other data.
    problem_hashes: dict[str, int] = field(default_factory=dict)

    def add(self, row: SampleRow) -> None:
        """Add one row of samples.jsonl."""
        turns = row["turns"]
        for t, turn in enumerate(turns):
            if t == len(self.tokens_T):
                for values_T in (self.tokens_T, self.generation_s_T, self.execution_s_T):
                    values_T.append([])
            if turn["is_carried"]:
                continue
            self.tokens_T[t].append(turn["num_completion_tokens"])
            self.generation_s_T[t].append(turn["generation_s"])
            self.execution_s_T[t].append(turn["execution_s"])
            tokens, seconds = self.costs_K.get(row["task_id"], (0, 0.0))
            self.costs_K[row["task_id"]] = (
                tokens + turn["num_completion_tokens"],
                seconds + turn["generation_s"] + turn["execution_s"],
            )
            if not turn["is_given"] and turn["infra_error"] is None:
                self.num_sampled += 1
                self.num_truncated += turn["is_truncated"]
                self.num_empty += not turn["code"].strip()
        # The comparison excludes trajectories with an infrastructure failure, as the accuracy does.
        if not has_infra_failure(row):
            task_id = row["task_id"]
            self.problem_hashes[task_id] = hash((row["text"], *row["tests"]))
            self.right_K_T.setdefault(task_id, []).append([turn["is_right"] for turn in turns])
            tokens_T = [0 if turn["is_carried"] else turn["num_completion_tokens"] for turn in turns]
            self.sampled_tokens_K_T.setdefault(task_id, []).append(tokens_T)
            self.has_resampled |= any(turn["is_resampled"] for turn in turns)
            for t, (turn, following) in enumerate(pairwise(turns), start=1):
                if error_type := turn["error_type"]:
                    by_problem = self.repaired_K.setdefault((t, error_type), {})
                    by_problem.setdefault(task_id, []).append(following["is_right"])

    def repaired(self, error_type: str, turn: int | None = None) -> Estimate | None:
        """Return the share of the programs with an error that the next turn repaired; None if there are none.

        Samples and turns of one problem are correlated, so problems are the clusters of the interval.

        Args:
            turn: Turn of the programs, from 1; None: every turn.

        """
        outcomes_K: dict[str, list[bool]] = {}
        for (t, name), by_problem in self.repaired_K.items():
            if name == error_type and turn in (t, None):
                for task_id, outcomes in by_problem.items():
                    outcomes_K.setdefault(task_id, []).extend(outcomes)
        return share(list(outcomes_K.values())) if outcomes_K else None

    def outcomes(self, turn: int) -> dict[str, list[bool]]:
        """Return by task_id whether each scored sample is right at a turn, counted from 0; -1 is the last."""
        return {
            task_id: [right_T[turn] for right_T in right_K_T] for task_id, right_K_T in self.right_K_T.items()
        }


@dataclass(frozen=True)
class FinishedRun:
    """One evaluation that has finished."""

    name: str  # name in tables and charts
    folder: Path  # output folder of test.py
    metrics: Mapping[str, Any]  # contents of metrics.json
    record: Mapping[str, Any]  # contents of run.json; if only the rows are known, what they record
    samples: Path | None = None  # file of the rows; None: samples.jsonl in the folder

    @property
    def label(self) -> str:
        """The name, followed by the conditions if there are any."""
        return f"{self.name} ({self.conditions})" if self.conditions else self.name

    @property
    def num_turns(self) -> int:
        return sum(name.startswith("acc_t") for name in self.metrics["metrics"])

    @property
    def turn_pairs(self) -> list[TurnPair]:
        """Pairs of consecutive turns."""
        return [TurnPair(turn, turn + 1) for turn in range(1, self.num_turns)]

    @property
    def first_and_last(self) -> TurnPair | None:
        """The first and the last turn; None if there is one turn, or if an old metrics.json lacks them."""
        pair = TurnPair(1, self.num_turns)
        return pair if self.has_estimate(f"delta_{pair}") else None

    @property
    def pass_at_k_sizes(self) -> list[int]:
        """Every k of pass@k: 1, 2, 4, ..."""
        return sorted(
            {int(name[5:].split("_")[0]) for name in self.metrics["pass_at_k"] if name.startswith("pass@")}
        )

    @property
    def conditions(self) -> str:
        """Agent, feedback, early stop and given answers, as a phrase; "" for plain self-correction."""
        feedback, answers = self.metrics["feedback"], self.metrics["answers"]
        agent = self.metrics.get("agent", "none")  # an old metrics.json lacks it
        conditions = [f"the agent {agent}"] if agent != "none" else []
        if self.num_turns > 1:  # one turn gets no feedback, and has none after it to leave out
            conditions += [f"{feedback} feedback"] if feedback != "none" else []
            conditions += ["early stop on the visible tests"] if self.metrics["early_stop"] else []
        conditions += [f"given answers ({', '.join(answers)})"] if answers else []
        return " and ".join(conditions)

    def estimate(self, metric: str) -> Estimate:
        """Return a metric of metrics.json with its interval, for example that of `acc_t1`."""
        return Estimate(**self.metrics["metrics"][metric])

    def has_estimate(self, metric: str) -> bool:
        """Return whether metrics.json has a metric; an old one may lack it."""
        return metric in self.metrics["metrics"]

    @property
    def lacks_interval(self) -> bool:
        """Return whether a change between turns has no interval."""
        estimates = self.metrics["metrics"].items()
        return any(name.startswith("delta_") and estimate["low"] is None for name, estimate in estimates)

    @property
    def num_in_child_T(self) -> list[int]:
        """Number of right programs with an in_child verdict after each turn."""
        return self.metrics["num_in_child"]

    def mean_per_problem(self, quantity: str) -> float | None:
        """Return the mean `seconds` of generation, `tokens` or `prompt_tokens` of a problem, per sample.

        None if an old metrics.json lacks it.
        """
        return self.metrics.get("speed", {}).get(f"{quantity}_per_problem")

    def rows(self) -> Iterator[SampleRow]:
        """Yield the rows of samples.jsonl one at a time."""
        for place, row in read_rows(self.samples or self.folder / "samples.jsonl", MAX_ROW_BYTES):
            yield validate_row(row, place)

    @cached_property
    def statistics(self) -> SampleStatistics:
        """Statistics of samples.jsonl, which is read on first access.

        Raises:
            ValueError: samples.jsonl has more or fewer rows than metrics.json counts.

        """
        statistics, num_rows = SampleStatistics(), 0
        for row in self.rows():
            statistics.add(row)
            num_rows += 1
        if num_rows != (expected := self.metrics["num_trajectories"]):
            raise ValueError(
                f"{self.folder}/samples.jsonl has {num_rows} rows, but metrics.json counts {expected}; "
                "run test.py with the same options and --resume, which plays what is missing"
            )
        return statistics


def load_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Load the evaluations in these folders, or of these files of rows.

    A run has the name of its folder or file, or the whole path if two have the same name.

    Raises:
        ValueError: A folder is missing or given twice, or has no readable metrics.json or run.json.

    """
    names = list(map(_run_name, folders))
    num_folders = Counter(names)
    runs: list[FinishedRun] = []
    for folder, name in zip(folders, names, strict=True):
        if any(folder.resolve() in (run.folder.resolve(), run.samples) for run in runs):
            raise ValueError(f"{folder} is given twice; give each evaluation once")
        if folder.is_file():
            runs.append(_load_rows(folder, name if num_folders[name] == 1 else str(folder)))
            continue
        metrics = _load_json(folder / "metrics.json", METRICS_KEYS)
        record = _load_json(folder / "run.json", RECORD_KEYS)
        runs.append(FinishedRun(name if num_folders[name] == 1 else str(folder), folder, metrics, record))
    return runs


def _run_name(path: Path) -> str:
    """Return the name of a folder, or of a file of rows: that of its folder if it is samples.jsonl.

    Raises:
        ValueError: There is no such folder or file.

    """
    if not path.exists():  # also a link to itself, which cannot be resolved
        raise ValueError(f"{path}: no such folder; give output folders of test.py")
    path = path.resolve()
    if not path.is_file():
        return path.name
    return path.parent.name if path.name == "samples.jsonl" else path.name.partition(".")[0]


def _load_rows(path: Path, name: str) -> FinishedRun:
    """Return a run of which only the rows are known; its metrics are computed again.

    Raises:
        ValueError: The file has no rows, or they were made under different conditions.

    """
    rows = [validate_row(row, place) for place, row in read_rows(path, MAX_ROW_BYTES)]
    if not rows:
        raise ValueError(f"{path} has no rows; give a samples.jsonl of test.py")
    conditions = conditions_of_row(rows[0])
    if other := next((row for row in rows if conditions_of_row(row) != conditions), None):
        raise ValueError(
            f"{path}: the rows of {rows[0]['task_id']} and {other['task_id']} were made with different "
            "options; give the rows of one evaluation"
        )
    trajectories = [trajectory_from_row(row, problem_of_row(row)) for row in rows]
    # No other run has this model or these problems, as far as the rows say.
    unknown = {
        "model_name_or_path": f"the model of {name}",
        "test_data": "its problems",
        "protocol": "unknown",
    }
    record = {"options": unknown | conditions, "versions": {}}
    return FinishedRun(name, path.parent, run_metrics(trajectories, conditions), record, path.resolve())


def group_by_conditions(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Group runs by their conditions, plain self-correction first.

    Runs under different conditions never share a table: agents, feedback, early stop and given answers use an
    oracle that plain self-correction does not have.
    """
    all_conditions = sorted({run.conditions for run in runs})  # "" sorts first
    return {
        conditions: [run for run in runs if run.conditions == conditions] for conditions in all_conditions
    }


def _load_json(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Load an object that has these keys."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path.parent} has no {path.name}, so it is not a finished evaluation; give output folders of "
            "test.py, or finish the evaluation with --resume"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); {REPAIR}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error}); {REPAIR}") from None
    if missing := [key for key in keys if not isinstance(value, dict) or key not in value]:
        raise ValueError(f"{path} has no key {missing[0]}; {REPAIR}")
    return value


@dataclass(frozen=True)
class RunComparison:
    """One run compared with its baseline."""

    baseline: FinishedRun  # the run whose accuracy is subtracted
    other: FinishedRun  # the run that is compared with the baseline
    first_turn: Comparison  # comparison after turn 1
    last_turn: Comparison  # comparison after the last turn of each run; the numbers of turns may differ

    @property
    def lacks_interval(self) -> bool:
        """Return whether a difference has no interval."""
        return None in (self.first_turn.difference.low, self.last_turn.difference.low)


def compare_runs(runs: Sequence[FinishedRun], baseline: str | None = None) -> list[RunComparison]:
    """Compare every run with the baseline of its conditions.

    Runs under different conditions (`FinishedRun.conditions`) are never compared: each group of runs under
    the same conditions has its own baseline.

    Args:
        baseline: Name of the baseline run in its group. In the other groups, and if this is None, the first
            run is the baseline.

    Raises:
        ValueError: No run has the name `baseline`, or two runs differ in a problem or have none in common.

    """
    names = [run.name for run in runs]
    if baseline is not None and baseline not in names:
        raise ValueError(f"--baseline {baseline} is not the name of a run; give one of {', '.join(names)}")
    comparisons = []
    for group in group_by_conditions(runs).values():
        reference = next((run for run in group if run.name == baseline), group[0])
        comparisons += [_compare(reference, run) for run in group if run is not reference]
    return comparisons


def _compare(baseline: FinishedRun, other: FinishedRun) -> RunComparison:
    before, after = baseline.statistics, other.statistics
    for task_id, problem_hash in before.problem_hashes.items():
        if after.problem_hashes.get(task_id, problem_hash) != problem_hash:
            raise ValueError(
                f"problem {task_id} has another text or other tests in {other.name} than in {baseline.name}; "
                "compare evaluations of the same data"
            )
    try:
        first_turn = compare(before.outcomes(0), after.outcomes(0))
        last_turn = compare(before.outcomes(-1), after.outcomes(-1))
    except ValueError as error:
        raise ValueError(f"{baseline.name} and {other.name}: {error}") from None
    return RunComparison(baseline, other, first_turn, last_turn)
