"""Attack the executor: run programs that solve nothing against tests, and report every pass that is a hole.

    python -m tests.attack                              one hour on two workers, from seed 0
    python -m tests.attack --minutes 10 --seed 3 --sandbox seccomp

A round is a form (forms.py), its right program and a dozen cheats (cheats.py); adversary.py says what a hole
is. All of it follows from the seed and the round's number. The log, outputs/attack/SANDBOX-SEED.jsonl, keeps
counts and findings, and the same command goes on from there. The exit status is 1 if the log has a hole.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cocos.executor import Executor
from tests.attack.adversary import HOLES, LIMITS, ROUNDS_PER_BATCH, Adversary, Finding


class Log:
    """Counts and holes of one seed, kept in a file.

    Args:
        path: The file: one JSON line per batch.

    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self.findings: list[dict] = []
        self.next_round = 0
        for line in path.read_text().splitlines() if path.exists() else ():
            self._add(json.loads(line))

    def _add(self, batch: dict) -> None:
        self.counts.update(batch["counts"])
        self.findings += batch["findings"]
        self.next_round = batch["next_round"]

    def append(self, next_round: int, counts: Counter[str], found: list[Finding]) -> None:
        """Add a batch."""
        batch = {"next_round": next_round, "counts": counts, "findings": [vars(one) for one in found]}
        with self.path.open("a") as file:
            file.write(json.dumps(batch) + "\n")
        self._add(batch)

    @property
    def holes(self) -> list[dict]:
        return [finding for finding in self.findings if finding["kind"] in HOLES]

    @property
    def num_pairs(self) -> int:
        return sum(n for key, n in self.counts.items() if not key.startswith("right\t"))

    def table(self) -> Iterator[str]:
        """Yield the lines of a table of outcomes by family."""
        yield f"{'family':44} {'pairs':>7} {'failed':>7} {'marked':>7} {'weak':>6} " + " ".join(
            f"{h:>10}" for h in HOLES
        )
        families = sorted({key.partition("\t")[0] for key in self.counts} - {"right"})
        for family in families:
            found = Counter(
                {key.partition("\t")[2]: n for key, n in self.counts.items() if key.startswith(f"{family}\t")}
            )
            failed = sum(n for outcome, n in found.items() if outcome.startswith("failed"))
            yield (
                f"{family:44} {found.total():7} {failed:7} {found['passed, marked']:7} {found['weak']:6} "
                + " ".join(f"{found[hole]:10}" for hole in HOLES)
            )
        sampled = {
            o: sum(n for k, n in self.counts.items() if k.endswith(f"\t{o}"))
            for o in ("failed, plain Python passes it", "failed, as under plain Python")
        }
        deceived, agreed = sampled.values()
        yield f"of the refused pairs that plain Python ran too it accepts {deceived} of {deceived + agreed}"
        rights = {key.partition("\t")[2]: n for key, n in self.counts.items() if key.startswith("right\t")}
        yield "right programs: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(rights.items()))


def main(argv: list[str] | None = None) -> int:
    """Attack for some minutes and print the table; return 1 if the log has a hole."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, help="time of this call (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sandbox", default="auto", help="isolation level (default: the first that works)")
    parser.add_argument("--num_workers", type=int, default=2)
    parser.add_argument("--output_dir", type=Path, default=Path("outputs/attack"))
    args = parser.parse_args(argv)
    args.output_dir.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with Executor(args.num_workers, LIMITS, args.sandbox) as executor:
        log = Log(args.output_dir / f"{executor.isolation}-{args.seed}.jsonl")
        adversary = Adversary(executor, args.seed)
        while (elapsed := time.monotonic() - start) < 60 * args.minutes:
            numbers = range(log.next_round, log.next_round + ROUNDS_PER_BATCH)
            log.append(numbers.stop, *adversary.run(numbers))
            print(
                f"\r{elapsed / 60:5.1f} min  {log.num_pairs} pairs  {len(log.holes)} holes",
                end="",
                flush=True,
            )
    print()
    print("\n".join(log.table()))
    for (kind, family), n in Counter((h["kind"], h["family"]) for h in log.holes).most_common():
        print(f"HOLE {kind}: {family} ({n})")
    print(f"log: {log.path}")
    return bool(log.holes)


if __name__ == "__main__":
    sys.exit(main())
