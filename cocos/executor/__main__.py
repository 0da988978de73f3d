"""Command line of the executor.

    python -m cocos.executor doctor    try what each isolation level promises on this machine

Exits with status 0 if `--sandbox auto` finds a level that works and keeps its promises, otherwise 1.
"""

import argparse
import os
import signal
import sys

from cocos.executor.doctor import doctor


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.executor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("doctor",))
    parser.parse_args(argv)
    try:
        return doctor()
    except BrokenPipeError:  # `doctor | head`; what is left would be flushed, and fail, at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    sys.exit(main())
