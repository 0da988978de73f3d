"""Profile how often a model solves problems, and select those from which reinforcement learning can learn.

    python test.py --model_name_or_path MODEL --test_data train.jsonl --num_samples 8 --temperature 0.9 \\
        --num_turns 1 --output_dir outputs/samples
    python scripts/select_problems.py train.jsonl outputs/samples --solved 0.1 0.8 --output selected.jsonl

Sample with the prompt, length and temperature of the training. A problem is selected if the share of its
samples whose last program is right lies in [LOW, HIGH]. A problem that is never solved, or always, gives
all siblings of a group the same return, so that no update follows. Several files and runs may be given,
file by file.

Beside the problems it writes the profile, SELECTED.profile.csv: for each problem its file, id, number of
scored samples, how many are right, and their mean reward, without texts.
"""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.durable import write_atomically
from cocos.files.json_lines import listed
from cocos.problems import Problem, load_problems, save_problems

if TYPE_CHECKING:
    from cocos.report.finished_runs import FinishedRun


@dataclass
class SolveRate:
    """Solve rate of a problem, by the last program of each scored sample."""

    file: str  # name of the problem file, without its suffix
    task_id: str  # id of the problem
    samples: int = 0  # number of samples without an infrastructure failure
    right: int = 0  # how many of them are right
    mean_reward: float = 0.0  # mean share of the tests that pass, in [0, 1]

    @property
    def share(self) -> float:
        """Share of right samples, in [0, 1]."""
        return self.right / self.samples


def solve_rates(run: "FinishedRun", problems: Sequence[Problem], file: str) -> list[SolveRate]:
    """Return how often a run has solved each problem, in the problems' order.

    Raises:
        DataError: The run has played other problems than these.
        ValueError: A problem has no scored sample.

    """
    from cocos.evaluation.sample_rows import has_infra_failure, played_problem

    by_id = {problem.task_id: problem for problem in problems}
    rates = {task_id: SolveRate(file, task_id) for task_id in by_id}
    for row in run.rows:
        played_problem(row, by_id, run.folder)
        if has_infra_failure(row):
            continue
        rate, last = rates[row["task_id"]], row["turns"][-1]
        assert last["reward"] is not None  # only an infrastructure failure has none
        rate.mean_reward += (last["reward"] - rate.mean_reward) / (rate.samples + 1)
        rate.samples += 1
        rate.right += last["is_right"]
    if missing := [task_id for task_id, rate in rates.items() if not rate.samples]:
        raise ValueError(
            f"{len(missing)} of {len(rates)} problems, the first {missing[0]!r}, have no scored sample in "
            f"{run.folder}; evaluate all of them, without --limit"
        )
    return list(rates.values())


def save_profile(rates: Sequence[SolveRate], path: Path) -> None:
    """Write the rates as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(SolveRate)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(rate) | {"mean_reward": round(rate.mean_reward, 4)} for rate in rates)
    write_atomically(path, text.getvalue())


def select(problems: Sequence[Problem], shares: Sequence[float], low: float, high: float) -> list[Problem]:
    """Return the problems whose share lies in [low, high], with it as their solve rate, in their order."""
    return [
        replace(problem, solve_rate=round(share, 4))
        for problem, share in zip(problems, shares, strict=True)
        if low <= share <= high
    ]


def counts_line(shares: Sequence[float], low: float, high: float) -> str:
    """Return how many problems are never solved, too rarely, in the range, too often, and always.

    Example: shares 0, 0.125, 0.5, 1 and the range [0.2, 0.9] give "4 problems: 1 never solved, 1 below 0.2,
    1 in [0.2, 0.9], 0 above 0.9, 1 always". Never and always are counted apart unless the range has them.
    """
    kinds = Counter(_kind(share, low, high) for share in shares)
    return (
        f"{len(shares)} problems: {kinds['never']} never solved, {kinds['below']} below {low:g}, "
        f"{kinds['in']} in [{low:g}, {high:g}], {kinds['above']} above {high:g}, {kinds['always']} always"
    )


def _kind(share: float, low: float, high: float) -> str:
    if low <= share <= high:
        return "in"
    if share < low:
        return "below" if share else "never"
    return "above" if share < 1 else "always"


def main() -> None:
    """Write the selected problems and print how many there are of each kind."""
    parser = PlainParser(description=__doc__)
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        metavar="FILE RUN",
        help="problem file and its evaluation; more may follow",
    )
    parser.add_argument(
        "--solved",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        required=True,
        help="range of the share of right samples, in [0, 1]; both ends are included",
    )
    parser.add_argument("--output", type=Path, required=True, help="problem file to write; it must not exist")
    args = parser.parse_args()
    low, high = args.solved
    if not 0 <= low <= high <= 1:
        raise ValueError(f"--solved is {low:g} {high:g}; give two numbers with 0 <= LOW <= HIGH <= 1")
    profile = args.output.with_suffix(".profile.csv")
    for path in filter(Path.exists, (args.output, profile)):
        raise ValueError(f"--output {args.output}: {path} exists; remove it or choose another one")
    if len(args.inputs) % 2:
        raise ValueError("give a problem file and an output folder of cocos eval, or several such pairs")
    # Imported here, so that errors in options do not wait.
    from cocos.report.finished_runs import load_runs

    problems: list[Problem] = []
    rates: list[SolveRate] = []
    for file, folder in zip(args.inputs[::2], args.inputs[1::2], strict=True):
        of_file = load_problems(file)
        problems += of_file
        rates += solve_rates(load_runs([folder])[0], of_file, file.stem)
    if repeated := [task_id for task_id, count in Counter(p.task_id for p in problems).items() if count > 1]:
        raise ValueError(f"in two files: problems {listed(repeated)}; make every id unique")
    shares = [rate.share for rate in rates]
    print(counts_line(shares, low, high))
    selected = select(problems, shares, low, high)
    if not selected:
        raise ValueError(f"no problem is solved with a share in [{low:g}, {high:g}]; widen --solved")
    save_profile(rates, profile)  # makes the folder, if necessary
    save_problems(selected, args.output)
    print(f"{len(selected)} problems written to {args.output}; {profile} has the profile")


if __name__ == "__main__":
    run_command(main)
