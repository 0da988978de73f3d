"""Benchmark of a server of programs on this machine, against the same workers without one.

    python scripts/bench/remote.py --data data/public/raw/mbpp.jsonl

Runs MBPP's reference solutions with an executor of this process and with a server process over loopback, in
turn, and prints the median rates. Client and server compete with the workers for the processors here, which
they would not on two machines. Programs that take longer than 0.5 s are left out.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cocos.executor import Executor, Program
from cocos.executor.remote.client import RemoteExecutor
from cocos.problems import load_problems

SLOW_S = 0.5
TOKEN = "only for this benchmark"


def rate(executor: Executor, programs: list[Program]) -> tuple[float, float]:
    """Return the programs per second, and this process's seconds of processor time per program."""
    started, used_s = time.perf_counter(), time.process_time()
    results = executor.run(programs)
    spent_s, used_s = time.perf_counter() - started, time.process_time() - used_s
    assert all(result.all_passed for result in results)
    return len(programs) / spent_s, used_s / len(programs)


def main() -> None:
    """Parse the arguments, measure in turn, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="data/public/raw/mbpp.jsonl", help="MBPP-format file")
    parser.add_argument("--num_workers", type=int, default=2, help="programs that run at the same time")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each rate")
    parser.add_argument("--sandbox", default="auto", help="isolation level")
    args = parser.parse_args()
    programs = [Program(p.code, p.test_list, p.setup) for p in load_problems(args.data)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder, Executor(args.num_workers, sandbox=args.sandbox) as local:
        token = Path(folder, "token")
        token.touch(0o600)
        token.write_text(TOKEN)
        programs = [p for p, r in zip(programs, local.run(programs), strict=True) if r.duration_s < SLOW_S]
        words = [
            sys.executable,
            "-m",
            "cocos.executor",
            "serve",
            "--port",
            str(port),
            "--token_file",
            str(token),
        ]
        words += ["--sandbox", local.isolation, "--executor_workers", str(args.num_workers)]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, env=dict(os.environ))
        try:
            server.stdout.readline()
            while socket.socket().connect_ex(("127.0.0.1", port)):
                time.sleep(0.05)
            with RemoteExecutor([f"http://127.0.0.1:{port}"], TOKEN, sandbox=local.isolation) as remote:
                rounds = [(rate(local, programs), rate(remote, programs)) for _ in range(args.rounds)]
        finally:
            server.terminate()
            server.wait()
    ours, theirs = (statistics.median(pair[i][0] for pair in rounds) for i in (0, 1))
    share = statistics.median(remote[0] / local[0] for local, remote in rounds)
    print(f"local   {ours:8.0f} programs/s   ({len(programs)} programs, {args.num_workers} workers)")
    print(f"remote  {theirs:8.0f} programs/s   {share:.0%} of local (median of {args.rounds} pairs)")
    used_ms = statistics.median(remote[1] for _, remote in rounds) * 1000
    print(f"client  {used_ms:8.2f} ms of processor time per program")


if __name__ == "__main__":
    main()
