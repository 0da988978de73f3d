"""Select the problems that a model solves now and then, from which reinforcement learning can learn.

    python test.py --model_name_or_path MODEL --test_data train.jsonl --num_samples 8 --temperature 0.9 \\
        --output_dir outputs/samples
    python scripts/select_problems.py train.jsonl outputs/samples --solved 0.05 0.9 --output selected.jsonl

A problem is selected if the share of its samples whose last program is right lies in [LOW, HIGH]. A problem
that is never solved, or always, gives all siblings of a group the same return, so that no update follows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cocos.config.command_line import PlainParser
from cocos.entry_point import run_command
from cocos.problems import Problem, load_problems, save_problems

if TYPE_CHECKING:
    from cocos.report.finished_runs import FinishedRun


def solved_shares(run: "FinishedRun", problems: Sequence[Problem]) -> dict[str, float]:
    """Return by task_id the share of the scored samples whose last program is right, in the problems' order.

    Raises:
        ValueError: The run has played other problems than these.

    """
    hashes = {problem.task_id: hash((problem.text, *problem.scored_tests)) for problem in problems}
    played = run.statistics.problem_hashes
    remedy = f"give the file with which {run.folder} was made"
    if others := [task_id for task_id in played if task_id not in hashes]:
        raise ValueError(f"problem {others[0]!r} of {run.folder} is not in the file of problems; {remedy}")
    if changed := [task_id for task_id in played if played[task_id] != hashes[task_id]]:
        raise ValueError(f"problem {changed[0]!r} has another text or other tests in {run.folder}; {remedy}")
    if missing := [task_id for task_id in hashes if task_id not in played]:
        raise ValueError(
            f"{len(missing)} of {len(hashes)} problems, the first {missing[0]!r}, have no scored sample in "
            f"{run.folder}; evaluate all of them, without --limit"
        )
    outcomes = run.statistics.outcomes(-1)
    return {task_id: sum(outcomes[task_id]) / len(outcomes[task_id]) for task_id in hashes}


def select(
    problems: Sequence[Problem], shares: Mapping[str, float], low: float, high: float
) -> list[Problem]:
    """Return the problems whose share lies in [low, high], in their order."""
    return [problem for problem in problems if low <= shares[problem.task_id] <= high]


def counts_line(shares: Mapping[str, float], low: float, high: float) -> str:
    """Return how many problems are never solved, too rarely, in the range, too often, and always.

    Example: shares 0, 0.125, 0.5, 1 and the range [0.2, 0.9] give "4 problems: 1 never solved, 1 below 0.2,
    1 in [0.2, 0.9], 0 above 0.9, 1 always". Never and always are counted apart unless the range has them.
    """
    kinds = Counter(_kind(share, low, high) for share in shares.values())
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
    parser.add_argument("problems", type=Path, help="problem file: the --test_data of the evaluation")
    parser.add_argument("evaluation", type=Path, help="output folder of test.py with --num_samples")
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
    if args.output.exists():
        raise ValueError(f"--output {args.output} exists; remove it or choose another one")
    # Imported here, so that errors in options do not wait.
    from cocos.report.finished_runs import load_runs

    problems = load_problems(args.problems)
    shares = solved_shares(load_runs([args.evaluation])[0], problems)
    print(counts_line(shares, low, high))
    selected = select(problems, shares, low, high)
    if not selected:
        raise ValueError(f"no problem is solved with a share in [{low:g}, {high:g}]; widen --solved")
    save_problems(selected, args.output)
    print(f"{len(selected)} problems written to {args.output}")


if __name__ == "__main__":
    run_command(main)
