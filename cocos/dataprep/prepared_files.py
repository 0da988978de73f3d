"""Problems of prepared files, and of benchmarks to compare them with."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from cocos.dataprep.named_sets import fetch_raw_file, locked_cache, raw_problems
from cocos.dataprep.readers import input_files
from cocos.dataprep.row_hints import read_problem, refuse_other_file
from cocos.dataprep.sources import PUBLIC_SOURCES
from cocos.files.json_lines import Place, read_rows
from cocos.problems import DataError, Problem


def read_prepared(paths: Iterable[Path]) -> Iterator[tuple[str, Problem]]:
    """Yield (split, problem) from MBPP-format files, or folders of them.

    The split of a single file is its name up to the first dot.

    Raises:
        DataError: A row is malformed, an id occurs twice in a file, or a file is empty or given twice.

    """
    files: set[Path] = set()
    for path in paths:
        for file, split in input_files(path):
            refuse_other_file(file)
            if file.resolve() in files:
                raise DataError(f"{file}: is given twice; give each file once")
            files.add(file.resolve())
            seen: set[bytes] = set()
            stem = file.name.split(".")[0]
            for place, row in read_rows(file):
                problem = read_problem(row, place)
                require_new_id(problem, place, seen)
                yield split or stem, problem
            if not seen:
                raise DataError(f"{file}: contains no problems; expected one MBPP-format row or more")


def benchmark_files(arguments: Iterable[str]) -> list[tuple[str, Path | None]]:
    """Return (name of a public set or "", path) of benchmarks, each given as NAME, NAME=PATH or PATH.

    The path is None for a set that is given by its name: its raw file is in the cache, or on the hub.

    Raises:
        ValueError: A name is unknown, a path does not exist, or a set is not on the hub.

    """
    benchmarks: list[tuple[str, Path | None]] = []
    for argument in arguments:
        source = PUBLIC_SOURCES.get(argument)
        if source is not None and not Path(argument).exists():
            if not source.hub and not source.raw_urls:
                file = source.raw_file or "FILE"
                raise ValueError(f"--against {argument}: it is not on the hub; give {argument}={file}")
            benchmarks.append((argument, None))
            continue
        name, _, path = ("", "", argument) if Path(argument).exists() else argument.rpartition("=")
        if name and name not in PUBLIC_SOURCES:
            raise ValueError(
                f"--against {argument}: unknown benchmark {name!r}; choose one of {', '.join(PUBLIC_SOURCES)}"
            )
        if not Path(path).exists():
            raise ValueError(f"--against {argument}: no such file; give FILE, NAME or NAME=FILE")
        benchmarks.append((name, Path(path)))
    return benchmarks


def read_benchmarks(arguments: Iterable[str]) -> Iterator[tuple[str, Problem]]:
    """Yield (name, problem) of benchmarks: raw rows of the public set that is named, or MBPP-format rows."""
    for name, path in benchmark_files(arguments):
        if path is not None and not name:
            yield from ((path.name, problem) for _, problem in read_prepared([path]))
            continue
        if path is None:
            with locked_cache() as folder:
                path = fetch_raw_file(PUBLIC_SOURCES[name], folder / "raw", None)
        for file, _ in input_files(path):
            yield from ((name, problem) for _, problem in raw_problems(PUBLIC_SOURCES[name], file))


def require_new_id(problem: Problem, place: Place, seen: set[bytes]) -> None:
    """Add a problem's id to the ids seen so far; raise DataError if it is among them."""
    # 12 bytes per id, however long it is. A collision is improbable below 10^12 ids.
    digest = hashlib.blake2b(problem.task_id.encode(), digest_size=12).digest()
    if digest in seen:
        raise DataError(f"{place}: task_id {problem.task_id!r} occurs twice; make every id unique")
    seen.add(digest)
