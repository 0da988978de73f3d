"""Problem files by reference: a public set by its name, converted on first use and kept in a cache folder.

    problems.jsonl                  a file in MBPP format, as it is
    hub:mbpp/test                   the split `test` of MBPP, downloaded once
    humaneval=HumanEval.jsonl.gz    the raw file of a public set; mbpp/test=mbpp.jsonl selects a split

No program is executed. The cache folder is $COCOS_CACHE, or else cocos/ in $XDG_CACHE_HOME or ~/.cache.
"""

import difflib
import fcntl
import gzip
import hashlib
import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cocos.config.ranks import is_main_process
from cocos.dataprep import formats, sources
from cocos.dataprep.hub_rows import read_hub
from cocos.dataprep.readers import read_file
from cocos.dataprep.row_hints import read_problem, refuse_other_file
from cocos.dataprep.sources import PUBLIC_SOURCES, Source, convert_row
from cocos.files.bundled import command_line
from cocos.files.durable import write_atomically
from cocos.problems import DataError, Problem, problem_to_row, problems_of_rows

TIMEOUT_S = 60


class PublicSplit(NamedTuple):
    """One split of a public set."""

    source: Source  # the set
    split: str  # one of its standard splits
    raw_file: Path | None  # its raw file on this machine; None to download it


@cache  # each option is read more than once, and only the first call prints the line
def problems_file(reference: str) -> Path:
    """Return the problem file that a reference names; convert a public set if the cache does not contain it.

    Prints a line with the origin, licence, size and SHA-256 of a public set, in the first of several ranks.

    Args:
        reference: A path, `hub:NAME/SPLIT`, or `NAME/SPLIT=FILE`. `/SPLIT` may be left out if the set has
            one split only. An existing path is never read as a reference.

    Raises:
        DataError: The set or split is unknown, cannot be downloaded, or its raw file cannot be used.

    """
    chosen = parse_reference(reference)
    if chosen is None:
        return Path(reference)
    with locked_cache() as folder:
        raw_file = chosen.raw_file or _fetch(chosen.source, folder, reference)
        path = folder / f"{chosen.source.name}-{chosen.split}-{_conversion_digest(raw_file)}.jsonl"
        if not path.exists():
            problems = raw_problems(chosen.source, raw_file)
            rows = [problem_to_row(problem) for split, problem in problems if split == chosen.split]
            if not rows:
                raise DataError(f"{reference}: {raw_file} contains no problem of the split {chosen.split}")
            write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows))
    if is_main_process():
        data = path.read_bytes()
        digest, num_problems = hashlib.sha256(data).hexdigest(), data.count(b"\n")
        print(
            f"{reference}: {num_problems} problems of {chosen.source.title}, {chosen.split} "
            f"({chosen.source.url}, {chosen.source.licence}), sha256 {digest}: {path}",
            flush=True,
        )
    return path


def raw_problems(source: Source, raw_file: Path) -> Iterator[tuple[str | None, Problem]]:
    """Yield the problems of a raw file, with their standard splits."""
    for place, _, row in read_file(raw_file):
        if isinstance(row, DataError):
            raise row
        problem = convert_row(source, row, place).problem
        yield source.standard_split(problem, place), problem


def load_problem_set(reference: str) -> list[Problem]:
    """Load the problems of a file, or of a public set by its name; see `problems_file`.

    Raises:
        DataError: As `problems_file` and `load_problems`; for a file or row of another format, the message
            has the command that converts it.

    """
    path = problems_file(reference)
    refuse_other_file(path)
    return problems_of_rows(path, read_problem)


def parse_reference(reference: str) -> PublicSplit | None:
    """Return the split that a reference names; None if it is the path of a problem file.

    Raises:
        DataError: The reference names an unknown set, an unknown split, or a missing file.

    """
    if Path(reference).exists():
        return None
    if reference.startswith("hub:"):
        return PublicSplit(*_parse_name(reference.removeprefix("hub:"), reference), None)
    name, _, file = reference.rpartition("=")
    if name and (Path(file).is_file() or name.partition("/")[0] in PUBLIC_SOURCES):
        source, split = _parse_name(name, reference)
        if not Path(file).is_file():
            raise DataError(f"{reference}: {file}: no such file; give the raw file of {source.name}")
        return PublicSplit(source, split, Path(file))
    if reference.partition("/")[0] in PUBLIC_SOURCES:
        raise DataError(f"{reference}: no such file; for the public set give hub:{reference}")
    return None


def _parse_name(text: str, reference: str) -> tuple[Source, str]:
    """Return the set and the split in `NAME/SPLIT`, or in `NAME` if the set has one split only."""
    name, _, split = text.partition("/")
    known = [
        source.name for source in PUBLIC_SOURCES.values() if source.splits and not source.executes_references
    ]
    source = PUBLIC_SOURCES.get(name)
    if source is None:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise DataError(
            f"{reference}: unknown public set {name!r}; {hint}choose one of {', '.join(known)}, or prepare "
            f"another set first: {command_line('prepare', 'OWNER/NAME', '--output_dir', 'FOLDER')}"
        )
    if source.executes_references or not source.splits:
        why = f"the references of {name} compute its expected values, so"
        command = command_line(
            "prepare", name, "--input", source.raw_file or "FOLDER", "--output_dir", f"data/{name}"
        )
        raise DataError(
            f"{reference}: {why if source.splits else f'{name} has no standard splits;'} prepare it first: "
            f"{command}"
        )
    if not split and len(source.splits) == 1:
        [split] = source.splits
    if split not in source.splits:
        what = f"no split {split!r}" if split else "more than one split"
        raise DataError(
            f"{reference}: {name} has {what}; give one of "
            f"{', '.join(reference.replace(text, f'{name}/{one}', 1) for one in source.splits)}"
        )
    return source, split


def _fetch(source: Source, folder: Path, reference: str) -> Path:
    try:
        return fetch_raw_file(source, folder / "raw", None)
    except DataError as error:
        command = command_line("prepare", source.name, "--output_dir", f"data/{source.name}")
        reason = str(error).partition(";")[0]  # without the general remedy after it
        raise DataError(
            f"{reference}: {reason}; on a machine with a network: {command}; with the raw file: {command} "
            f"--input {source.raw_file}"
        ) from None


def _conversion_digest(raw_file: Path) -> str:
    """Return a digest of a raw file and of the code that converts it: a change of either prepares it anew."""
    digest = hashlib.sha256(raw_file.read_bytes())
    for module in sorted([*Path(formats.__path__[0]).glob("*.py"), Path(sources.__file__)]):
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


def fetch_raw_file(source: Source, raw_folder: Path, input_folder: Path | None) -> Path:
    """Put the raw file of a public set into a folder, unless it is already there.

    Args:
        input_folder: Folder that contains the file; None to download it.

    Raises:
        DataError: The set cannot be downloaded, or the input folder does not contain its file.

    """
    path = raw_folder / source.raw_file
    if path.exists():
        return path
    if input_folder is None:
        data = _download(source)
    else:
        original = input_folder / source.raw_file
        if not original.is_file():
            raise DataError(f"{original}: no such file; put it there, or leave out --input to download it")
        data = original.read_bytes()
    raw_folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path


def _download(source: Source) -> bytes:
    """Return the rows of a set as JSON lines, gzipped if the raw file's name says so."""
    rows: Iterator[object] = _read_urls(source.raw_urls)
    if source.hub and not source.raw_urls:
        rows = (row for _, _, row in read_hub(*source.hub, None, source.hub_split))
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    # mtime=0: the same rows give the same bytes.
    return gzip.compress(data, mtime=0) if source.raw_file.endswith(".gz") else data


def _read_urls(urls: tuple[str, ...]) -> Iterator[dict]:
    for url in urls:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                yield from json.load(response)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise DataError(
                f"{url}: cannot be downloaded ({reason}); check the network, or use a file"
            ) from None


@contextmanager
def locked_cache() -> Iterator[Path]:
    """Yield the cache folder, which one process at a time uses: the ranks of a run start together."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("COCOS_CACHE") or Path(base) / "cocos")
    lock_file = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock_file.touch()
    except OSError as error:
        raise DataError(
            f"{folder}: not writable ({error.strerror}); set COCOS_CACHE to a folder for public sets"
        ) from None
    with open(lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
