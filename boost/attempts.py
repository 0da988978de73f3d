"""First attempts of a model and its verified corrections, kept in a file that grows batch by batch and can be
continued.

The log's first line says what the attempts were made with; each later line is one attempt. A log that was
made otherwise is refused, a batch that was cut off is made again. Knows problems and turns; does not know
models.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cocos.executor import Executor
from cocos.files.json_lines import read_rows
from cocos.generation import Generator
from cocos.problems import DataError, Problem
from cocos.prompts import PromptProtocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, Trajectory, begin, check_infra_failures


@dataclass(frozen=True)
class Attempt:
    """One first attempt at a problem.

    Attributes:
        task_id: Of the problem.
        code: The program found in it, or "".
        is_right: Whether it passed every test, hidden ones too; None where the executor failed.
        corrections: Programs that the model wrote in turn 2 after this attempt and that passed every test.

    """

    task_id: str
    code: str
    is_right: bool | None
    corrections: tuple[str, ...] = ()


def attempt(
    problems: Sequence[Problem],
    generator: Generator,
    executor: Executor,
    protocol: PromptProtocol,
    num_samples: int,
    num_corrections: int,
    temperature: float,
    max_infra_share: float,
) -> list[Attempt]:
    """Sample first attempts at problems, and second turns after the wrong ones (rejection sampling).

    Args:
        num_samples: First attempts per problem.
        num_corrections: Second turns per wrong attempt; 0: none.
        temperature: Of every sample; 0 decodes greedily.
        max_infra_share: As in `check_infra_failures`.

    """
    rules = Rules(temperatures=(temperature,))
    first = rollout(begin(problems, num_samples), generator, executor, protocol, 1, rules)
    check_infra_failures(first, max_infra_share)
    wrong = [number for number, trajectory in enumerate(first) if _is_right(trajectory) is False]
    again = [first[number] for number in wrong for _ in range(num_corrections)]
    second = rollout(again, generator, executor, protocol, 2, rules)
    corrections: dict[int, dict[str, None]] = {number: {} for number in wrong}
    for number, trajectory in zip((n for n in wrong for _ in range(num_corrections)), second, strict=True):
        if trajectory.turns[1].result.all_passed:
            corrections[number][trajectory.turns[1].code] = None
    return [
        Attempt(t.problem.task_id, t.turns[0].code, _is_right(t), tuple(corrections.get(number, ())))
        for number, t in enumerate(first)
    ]


def _is_right(trajectory: Trajectory) -> bool | None:
    result = trajectory.turns[0].result
    return None if result.is_infra_failure else result.all_passed


class AttemptLog:
    """A file of attempts that is continued where it ends.

    Args:
        path: JSON lines; made if absent.
        facts: What the attempts are made with; a log with other facts is refused.

    Raises:
        DataError: The log was made with other facts.

    """

    def __init__(self, path: Path, facts: dict[str, object]) -> None:
        self.path = path
        self.batches: list[list[Attempt]] = []
        header = json.dumps({"made_with": facts})
        if path.exists():
            self._read(json.loads(header)["made_with"])
        else:
            path.write_text(header + "\n", encoding="utf-8")

    def append(self, attempts: Iterable[Attempt]) -> None:
        """Keep a batch: all of it or, where the machine stops meanwhile, none."""
        batch = list(attempts)
        self.batches.append(batch)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps([asdict(one) for one in batch], ensure_ascii=False) + "\n")

    def _read(self, facts: dict[str, object]) -> None:
        data = self.path.read_bytes()
        if not data.endswith(b"\n"):  # a batch that was being written when the machine stopped
            self.path.write_bytes(data[: data.rfind(b"\n") + 1])
        rows = [row for _, row in read_rows(self.path)]
        made_with = rows[0].get("made_with") if rows and isinstance(rows[0], dict) else None
        if not isinstance(made_with, dict):
            raise DataError(f"{self.path}: is no log of attempts; remove it or choose another --output")
        if other := [name for name in facts if made_with.get(name) != facts[name]]:
            raise DataError(
                f"{self.path}: was made with {other[0]} {made_with.get(other[0])!r}, not "
                f"{facts[other[0]]!r}; "
                "remove it or choose another --output"
            )
        for batch in rows[1:]:
            assert isinstance(batch, list)
            self.batches.append(
                [Attempt(**one | {"corrections": tuple(one["corrections"])}) for one in batch]
            )
