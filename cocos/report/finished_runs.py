"""Finished evaluations, read from the output folders of cocos eval."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cocos.carry import Carry, named_carry
from cocos.evaluation.sample_rows import (
    SampleRow,
    conditions_of_row,
    has_infra_failure,
    problem_of_row,
    trajectory_from_row,
    validate_row,
)
from cocos.files.json_lines import DataError, read_rows
from cocos.files.output_folder import EVALUATION, recorded_kind
from cocos.intervals import Estimate
from cocos.metrics import run_metrics
from cocos.report.sample_statistics import (
    PlayedProgram,
    Point,
    SampleStatistics,
    played_programs,
    point_of_samples,
    point_of_turns,
)

MAX_ROW_BYTES = 1 << 30  # a row repeats its problem's text in the requests of its turns
REPAIR = "run cocos eval with the same options and --resume, which writes it again"
NEW_RECORD = "score the rows again: cocos eval --answers {}/samples.jsonl with another --output_dir"
METRICS_KEYS = (
    *("num_problems", "num_trajectories", "num_scored", "num_infra_failures", "num_truncated"),
    *("num_in_child", "metrics", "pass_at_k", "errors", "fix_rates", "bug_rates", "speed"),
    *("agent", "feedback", "early_stop", "answers"),
)
RECORD_KEYS = ("options", "versions")


class TurnNumbers(NamedTuple):
    """Two turns, counted from 1; `str(pair)` is the pair's name in metrics.json, such as t1_t2."""

    before: int
    after: int

    def __str__(self) -> str:
        return f"t{self.before}_t{self.after}"


@dataclass(frozen=True)
class FinishedRun:
    """One evaluation that has finished."""

    name: str  # name in tables and charts
    folder: Path  # output folder of cocos eval
    metrics: Mapping[str, Any]  # contents of metrics.json
    record: Mapping[str, Any]  # contents of run.json; if only the rows are known, what they record
    rows: Sequence[SampleRow]  # contents of samples.jsonl

    @property
    def label(self) -> str:
        """The name, followed by the conditions if there are any."""
        return f"{self.name} ({self.conditions})" if self.conditions else self.name

    @property
    def num_turns(self) -> int:
        return sum(name.startswith("acc_t") for name in self.metrics["metrics"])

    @property
    def turn_pairs(self) -> list[TurnNumbers]:
        """Pairs of consecutive turns."""
        return [TurnNumbers(turn, turn + 1) for turn in range(1, self.num_turns)]

    @property
    def first_and_last(self) -> TurnNumbers | None:
        """The first and the last turn; None if there is one turn."""
        return TurnNumbers(1, self.num_turns) if self.num_turns > 1 else None

    @property
    def pass_at_k_sizes(self) -> list[int]:
        """Every k of pass@k: 1, 2, 4, ..."""
        return sorted(
            {int(name[5:].split("_")[0]) for name in self.metrics["pass_at_k"] if name.startswith("pass@")}
        )

    @cached_property
    def is_given(self) -> bool:
        """Every completion was supplied with `--answers`; no model answered."""
        turns = [turn for row in self.rows for turn in row["turns"]]
        return bool(turns) and all(turn["is_given"] or turn["is_carried"] for turn in turns)

    @property
    def carry(self) -> Carry:
        """The way in which earlier turns were carried into later prompts."""
        return named_carry(self.record["options"].get("carry", "transcript"))

    @property
    def conditions(self) -> str:
        """Agent, carry, feedback, early stop and given answers, as a phrase; "" for plain self-correction."""
        feedback, answers = self.metrics["feedback"], self.metrics["answers"]
        agent = self.metrics["agent"]
        conditions = [f"the agent {agent}"] if agent != "none" else []
        if self.num_turns > 1:  # one turn gets no feedback, and has none after it to leave out
            conditions += filter(None, [self.carry.label])
            conditions += [f"{feedback} feedback"] if feedback != "none" else []
            placebo = self.record["options"].get("placebo", "none")
            conditions += [f"the placebo {placebo!r}"] if placebo != "none" else []
            conditions += ["early stop on the visible tests"] if self.metrics["early_stop"] else []
        # Of runs without a model, the answers are what is compared, not a condition under which.
        sources = "" if self.is_given else f" ({', '.join(answers)})"
        conditions += [f"given answers{sources}"] if answers else []
        return " and ".join(conditions)

    def estimate(self, metric: str) -> Estimate:
        """Return a metric of metrics.json with its interval, for example that of `acc_t1`."""
        return Estimate(**self.metrics["metrics"][metric])

    def has_estimate(self, metric: str) -> bool:
        """Return whether metrics.json has a metric; edits need a sampled turn, for example."""
        return metric in self.metrics["metrics"]

    @property
    def num_in_child_T(self) -> list[int]:
        """Number of right programs with an in_child verdict after each turn."""
        return self.metrics["num_in_child"]

    @cached_property
    def programs_K(self) -> dict[str, list[list[PlayedProgram]]]:
        """By task_id, the programs of each scored sample."""
        programs_K: dict[str, list[list[PlayedProgram]]] = {}
        for row in self.rows:
            if not has_infra_failure(row):
                programs_K.setdefault(row["task_id"], []).append(played_programs(row, self.carry))
        return programs_K

    @cached_property
    def points_of_turns(self) -> list[Point]:
        """Accuracy against tokens of the first 1, 2, ... turns; [] if the tokens are unknown."""
        programs_P_K = self._counted_P_K
        return [point_of_turns(programs_P_K, t) for t in range(1, self.num_turns + 1) if programs_P_K]

    @cached_property
    def points_of_samples(self) -> list[Point]:
        """Accuracy against tokens of 1, 2, ... samples of turn 1; [] if the tokens are unknown."""
        num_samples = min(map(len, self._counted_P_K), default=0)
        return [point_of_samples(self._counted_P_K, k) for k in range(1, num_samples + 1)]

    @property
    def _counted_P_K(self) -> list[list[list[PlayedProgram]]]:
        """Programs of each scored sample, in the order of the task ids; [] if their tokens are unknown."""
        programs_P_K = [self.programs_K[task_id] for task_id in sorted(self.programs_K)]
        programs = (program for rows in programs_P_K for row in rows for program in row)
        return programs_P_K if any(program.tokens.sampled for program in programs) else []

    @cached_property
    def statistics(self) -> SampleStatistics:
        """Statistics of the rows."""
        return SampleStatistics(self.rows)


def load_runs(
    paths: Sequence[Path], known_rows: Mapping[Path, Sequence[SampleRow]] = MappingProxyType({})
) -> list[FinishedRun]:
    """Load the evaluations in these folders, or of these files of rows.

    A run has the name of its folder or file, or the whole path if two have the same name.

    Args:
        known_rows: Rows of folders whose samples.jsonl was parsed before.

    Raises:
        ValueError: A folder is missing or given twice, has no readable metrics.json or run.json, or has more
            or fewer rows than metrics.json counts.

    """
    names = list(map(_run_name, paths))
    runs: dict[Path, FinishedRun] = {}
    for path, name in zip(paths, names, strict=True):
        samples = (path if path.is_file() else path / "samples.jsonl").resolve()
        if samples in runs:
            raise ValueError(f"{path} is given twice; give each evaluation once")
        name = name if names.count(name) == 1 else str(path)
        if path.is_file():
            runs[samples] = _load_rows(path, name)
        else:
            runs[samples] = _load_folder(path, name, known_rows.get(path))
    return list(runs.values())


def _run_name(path: Path) -> str:
    """Return the name of a folder, or of a file of rows: that of its folder if it is samples.jsonl.

    Raises:
        ValueError: There is no such folder or file.

    """
    if not path.exists():  # also a link to itself, which cannot be resolved
        raise ValueError(f"{path}: no such folder; give output folders of cocos eval")
    path = path.resolve()
    if not path.is_file():
        return path.name
    return path.parent.name if path.name == "samples.jsonl" else path.name.partition(".")[0]


def _load_folder(folder: Path, name: str, rows: Sequence[SampleRow] | None) -> FinishedRun:
    if (kind := recorded_kind(folder)) not in ("", EVALUATION):
        raise ValueError(f"{folder} contains {kind}, not an evaluation; give output folders of cocos eval")
    metrics = _load_json(folder / "metrics.json", METRICS_KEYS)
    record = _load_json(folder / "run.json", RECORD_KEYS, NEW_RECORD.format(folder))
    if not kind:
        raise ValueError(f"{folder}/run.json does not record an evaluation; {NEW_RECORD.format(folder)}")
    try:
        rows = rows or _read_rows(folder / "samples.jsonl")
    except DataError as error:
        if (folder / "samples.jsonl").read_bytes().endswith(b"\n"):  # no row is cut
            raise
        raise ValueError(
            f"{error}; or run cocos eval with the same options and --resume, which plays a cut row again"
        ) from None
    if len(rows) != (expected := metrics["num_trajectories"]):
        raise ValueError(
            f"{folder}/samples.jsonl has {len(rows)} rows, but metrics.json counts {expected}; "
            "run cocos eval with the same options and --resume, which plays what is missing"
        )
    return FinishedRun(name, folder, metrics, record, rows)


def _load_rows(path: Path, name: str) -> FinishedRun:
    """Return a run of which only the rows are known; its metrics are computed again.

    Raises:
        ValueError: The file has no rows, or they were made under different conditions.

    """
    rows = _read_rows(path)
    if not rows:
        raise ValueError(f"{path} has no rows; give a samples.jsonl of cocos eval")
    conditions = conditions_of_row(rows[0])
    if other := next((row for row in rows if conditions_of_row(row) != conditions), None):
        raise ValueError(
            f"{path}: the rows of {rows[0]['task_id']} and {other['task_id']} were made with different "
            "options; give the rows of one evaluation"
        )
    trajectories = [trajectory_from_row(row, problem_of_row(row)) for row in rows]
    # No other run has this model or these problems, as far as the rows say.
    unknown = {"model_name_or_path": f"the model of {name}", "test_data": "its problems"}
    record = {"options": {"protocol": "unknown"} | unknown | conditions, "versions": {}}
    return FinishedRun(name, path.parent, run_metrics(trajectories, conditions), record, rows)


def _read_rows(path: Path) -> list[SampleRow]:
    return [validate_row(row, place) for place, row in read_rows(path, MAX_ROW_BYTES)]


def group_by_conditions(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Group runs by their conditions, plain self-correction first.

    Runs under different conditions never share a table: agents, feedback, early stop and given answers use an
    oracle that plain self-correction does not have.
    """
    all_conditions = sorted({run.conditions for run in runs})  # "" sorts first
    return {
        conditions: [run for run in runs if run.conditions == conditions] for conditions in all_conditions
    }


def _load_json(path: Path, keys: Sequence[str], remedy: str = REPAIR) -> dict[str, Any]:
    """Load an object that has these keys."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path.parent} has no {path.name}, so it is not a finished evaluation; give output folders of "
            "cocos eval, or finish the evaluation with --resume"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); {remedy}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read ({error}); {remedy}") from None
    if missing := [key for key in keys if not isinstance(value, dict) or key not in value]:
        raise ValueError(f"{path} has no key {missing[0]}; {remedy}")
    return value
