"""Convert a public data set or your own file to checked problems in MBPP format.

SOURCE is a public set: mbpp, mbpp-sanitized, humaneval, humanevalfix,
humanevalfix-docs, kodcode, opc-educational, leetcode, acecode, livecodebench,
bigcodebench, debugbench, codeio; or the format of your own file: jsonl, csv,
parquet; or OWNER/NAME, a data set on the Hugging Face hub; or repository, a
folder of Python code whose doctests and test files become problems.

Writes train.jsonl, validation.jsonl, test.jsonl, README.md, report.html and
manifest.json; also findings.jsonl if the checks find something, and
dropped.jsonl if rows are dropped. If it fails, it leaves no folder behind.

`prepare_data.py check` checks prepared files, and `prepare_data.py public`
prepares every public set. Each has its own --help.
"""

import sys

from cocos.entry_point import run_command


def main(argv: list[str]) -> int:
    """Run the command that the arguments name; return the exit status."""
    # Imported here, so that Ctrl-C meanwhile prints one line.
    from prepare_data_commands import run

    return run(argv, __doc__)


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
