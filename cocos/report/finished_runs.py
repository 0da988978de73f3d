"""One evaluation, read from the folder that test.py left.

samples.jsonl is streamed: only what the charts and comparisons need of a row is kept.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cocos.files.json_lines import read_rows


@dataclass
class Observed:
    """What one pass over the rows keeps.

    Attributes:
        first: Outcomes of turn 1 of the scored rows.
        last: Outcomes of turn T.
        tokens_T: Tokens of the answers, a list per turn; without those carried on from the turn before.
        generation_s_T: Seconds that an answer took.
        execution_s_T: Seconds that a program took.
        tests: What each problem asks, to tell data sets apart.

    """

    first: dict[str, list[bool]] = field(default_factory=dict)
    last: dict[str, list[bool]] = field(default_factory=dict)
    tokens_T: list[list[float]] = field(default_factory=list)
    generation_s_T: list[list[float]] = field(default_factory=list)
    execution_s_T: list[list[float]] = field(default_factory=list)
    tests: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one row of samples.jsonl in."""
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
        if not any(turn["infra_error"] for turn in turns):
            self.tests[row["task_id"]] = hash((row["text"], *row["tests"]))
            self.first.setdefault(row["task_id"], []).append(turns[0]["is_right"])
            self.last.setdefault(row["task_id"], []).append(turns[-1]["is_right"])


@dataclass(frozen=True)
class Run:
    """One evaluation.

    Attributes:
        name: How tables and charts call it.
        folder: Where its files are.
        metrics: Contents of metrics.json.
        facts: Contents of run.json.

    """

    name: str
    folder: Path
    metrics: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The name, and what helped where something did."""
        return f"{self.name} ({self.aids})" if self.aids else self.name

    @property
    def num_turns(self) -> int:
        return sum(name.startswith("acc_t") for name in self.metrics["metrics"])

    @property
    def pairs(self) -> list[str]:
        """Neighbouring turns, as metrics name them: t1_t2, t2_t3, ..."""
        return [f"t{turn}_t{turn + 1}" for turn in range(1, self.num_turns)]

    @property
    def aids(self) -> str:
        """What helped beside the model itself, in words; "" for nothing, the plain case."""
        feedback, answers = self.metrics["feedback"], self.metrics["answers"]
        aids = [f"{feedback} feedback"] if feedback != "none" else []
        aids += ["early stop by the shown tests"] * self.metrics["early_stop"]
        aids += [f"given answers ({', '.join(answers)})"] if answers else []
        return " and ".join(aids)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of samples.jsonl, one at a time."""
        for place, row in read_rows(self.folder / "samples.jsonl"):
            if not isinstance(row, dict) or not {"task_id", "turns", "tests"} <= row.keys():
                raise ValueError(f"{place}: no row of test.py; evaluate again into another --output_dir")
            yield row

    @cached_property
    def observed(self) -> Observed:
        """Outcomes, tokens and times of every row; read once."""
        observed = Observed()
        for row in self.rows():
            observed.add(row)
        return observed


def load_runs(folders: Sequence[Path]) -> list[Run]:
    """Read evaluations; folders of the same name are told apart by their paths.

    Raises:
        ValueError: A folder has no readable metrics.json and run.json.

    """
    names = Counter(folder.resolve().name for folder in folders)
    runs = []
    for folder in folders:
        name = folder.resolve().name
        metrics, facts = _read(folder / "metrics.json"), _read(folder / "run.json")
        runs.append(Run(name if names[name] == 1 else str(folder), folder, metrics, facts))
    return runs


def by_aids(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by what helped, the plain ones first: what an oracle helped stands in no table with plain runs."""
    return {aids: [run for run in runs if run.aids == aids] for aids in sorted({run.aids for run in runs})}


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path.parent}: no readable {path.name} ({error}); run test.py --output_dir {path.parent}"
        ) from None
