"""Benchmarks on a CPU, against plain baselines. GPUs: scripts/bench/gpu.py.

    python scripts/bench/bench.py executor      # programs per second at each isolation level
    python scripts/bench/bench.py turns         # generation of two turns
    python scripts/bench/bench.py update        # log-probabilities, loss and gradient; whole updates

Each module of these names lists its parts. A part runs in a process of its own, so that its memory is its
own, and returns a row: cells by column. Every row is printed when it is measured, and all of them as tables
at the end. Seconds depend on the machine and on what else it does; compare the ratios.
"""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from multiprocessing import get_context
from statistics import median

from cocos.commands.runner import run_command
from cocos.config.command_line import PlainParser
from cocos.files.markdown import markdown_table


def medians(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the median of each measure; each round takes all, so that a change of the load affects all."""
    values = [[measure() for measure in measures.values()] for _ in range(rounds)]
    return {name: median(own) for name, own in zip(measures, zip(*values, strict=True), strict=True)}


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def tables(rows: Sequence[Mapping[str, str]]) -> str:
    """Return Markdown tables, one for consecutive rows with the same columns."""
    groups = groupby(rows, key=list)
    return "\n\n".join(markdown_table(head, [list(row.values()) for row in group]) for head, group in groups)


def main() -> None:
    """Measure the parts of a suite, and print their tables."""
    parser = PlainParser(description=__doc__)
    parser.add_argument("suite", choices=("executor", "turns", "update"))
    parts = importlib.import_module(parser.parse_args().suite).PARTS
    rows = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for part in parts:
            rows.append(processes.submit(part).result())
            print(", ".join(f"{name} {cell}" for name, cell in rows[-1].items()), flush=True)
    print(f"\n{tables(rows)}")


if __name__ == "__main__":
    run_command(main)
