"""Attack the executor: run programs that solve nothing against tests, and report every pass that is a hole.

    python -m tests.attack                              one hour on two workers, from seed 0
    python -m tests.attack --minutes 10 --seed 3 --sandbox seccomp

adversary.py says what a round and a hole is. All of it follows from the seed and the round's number. The log,
outputs/attack/SANDBOX-SEED.jsonl, keeps counts and findings, and the same command goes on from there. The exit
status is 1 if the log has a hole.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cocos.executor import Executor
from tests.attack.adversary import HOLES, HONEST, LIMITS, OUTCOMES, REFUSED_HONEST, Adversary

ROUNDS_PER_BATCH = 12


class Log:
    """Counts and findings of one seed, kept in a file with one JSON line per batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: Counter[tuple[str, ...]] = Counter()  # by family and outcome
        self.findings: list[dict] = []
        self.next_round = 0
        for line in path.read_text().splitlines() if path.exists() else ():
            self._add(json.loads(line))

    def _add(self, batch: dict) -> None:
        for key, n in batch["counts"].items():
            self.counts[tuple(key.split("\t"))] += n
        self.findings += batch["findings"]
        self.next_round = batch["next_round"]

    def append(self, next_round: int, counts: Counter[str], found: list[dict]) -> None:
        """Add a batch."""
        batch = {"next_round": next_round, "counts": counts, "findings": found}
        with self.path.open("a") as file:
            file.write(json.dumps(batch) + "\n")
        self._add(batch)

    @property
    def holes(self) -> list[dict]:
        return [finding for finding in self.findings if finding["kind"] in HOLES]

    def table(self) -> Iterator[str]:
        """Yield the lines of a table of outcomes by family, the holes, and the rate of refused honest tests."""
        yield " ".join([f"{'family':40}", *(f"{column:>15}" for column in OUTCOMES)])
        for family in sorted({family for family, _ in self.counts}):
            yield " ".join([f"{family:40}", *(f"{self.counts[family, column]:15}" for column in OUTCOMES)])
        for (kind, family), n in Counter((h["kind"], h["family"]) for h in self.holes).most_common():
            yield f"HOLE {kind}: {family} ({n})"
        refused = sum(self.counts[family, REFUSED_HONEST] for family in HONEST)
        right = sum(self.counts[family, "right"] for family in HONEST)
        yield f"{self.counts.total()} programs, {len(self.holes)} holes"
        yield f"honest tests: {right} passed, {refused} refused ({refused / max(right + refused, 1):.2%})"


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
            state = f"{elapsed / 60:5.1f} min  {log.counts.total()} programs  {len(log.holes)} holes"
            print(f"\r{state}", end="", flush=True)
    print("", *log.table(), f"log: {log.path}", sep="\n")
    return bool(log.holes)


if __name__ == "__main__":
    sys.exit(main())
