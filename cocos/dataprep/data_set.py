"""A data set from its rows to a finished folder: read, prepare, describe.

manifest.json describes the folder for programs, README.md and report.html for people. None contains times or
paths, so that the same input gives the same bytes.
"""

import csv
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from cocos.dataprep.checks.journal import Journal
from cocos.dataprep.code_base import REPOSITORY, describe_reasons, python_files, read_code_base, yields
from cocos.dataprep.dataset_card import dataset_card
from cocos.dataprep.hub import read_hub
from cocos.dataprep.output_folder import new_folder
from cocos.dataprep.preparation import (
    OpenExecutor,
    PreparationOptions,
    PreparationReport,
    prepare,
    read_splits,
)
from cocos.dataprep.readers import RawRow, read_debugbench, read_file
from cocos.dataprep.set_report import save_set_report
from cocos.dataprep.set_statistics import statistics_of
from cocos.dataprep.sources import Source
from cocos.entry_point import exit_on_ctrl_c
from cocos.files.durable import save_json
from cocos.files.run_record import sha256
from cocos.problems import DataError


def save_card(
    report: PreparationReport,
    source: Source,
    options: PreparationOptions,
    inputs: Sequence[Path],
    revision: str | None,
) -> None:
    """Write manifest.json, README.md and report.html into the report's folder.

    Args:
        revision: Requested revision on the hub; None for the newest.

    """
    files = {
        path.name: {"sha256": sha256(path), "problems": report.counts.get(path.stem)}
        for path in sorted(report.folder.glob("*.jsonl"))
    }
    hub = None
    if source.hub and not inputs:
        hub = {"id": source.hub[0], "configuration": source.hub[1], "revision": revision}
    manifest = {
        "source": source.name,
        "title": source.title,
        "url": source.url,
        "licence": source.licence,
        "hub": hub,
        "input": [_describe_file(path) for path in inputs],
        "output": files,
        "rows_in": report.rows_in,
        "rows_out": report.counts.total(),
        "dropped": dict(sorted(report.dropped.items())),
        "findings": dict(sorted(report.findings.items())),
        "isolation": report.isolation,
        "packages": list(report.packages),
        "options": _recorded_options(options),
        "python": sys.version.split()[0],
    }
    save_json(manifest, report.folder / "manifest.json")
    statistics = statistics_of(read_splits(report.folder))
    card = dataset_card(report, source, options, files, statistics)
    (report.folder / "README.md").write_text(card, encoding="utf-8")
    save_set_report(report, source, statistics)


def _describe_file(path: Path) -> dict[str, object]:
    if path.is_dir():
        names = python_files(path) if any(path.rglob("*.py")) else sorted(os.listdir(path))
        files = [path / name for name in names if (path / name).is_file()]
        digests = "".join(f"{file.relative_to(path)} {sha256(file)}\n" for file in files)
        return {
            "file": path.name,
            "sha256": hashlib.sha256(digests.encode()).hexdigest(),
            "files": len(files),
        }
    return {"file": path.name, "sha256": sha256(path), "bytes": path.stat().st_size}


def _recorded_options(options: PreparationOptions) -> dict[str, object]:
    recorded = asdict(options) | {
        "against": [Path(name).name for name in options.against],
        "profile": Path(options.profile).name,
    }
    del recorded["executor_workers"]  # it changes how long a preparation takes, not what it writes
    return dict(sorted(recorded.items()))


BAR_DELAY_S = 1.0  # an error, or a small set, ends before it shows


def prepare_data_set(
    source: Source,
    inputs: list[tuple[Path, str | None]],
    options: PreparationOptions,
    output_dir: Path,
    revision: str | None = None,
    open_executor: OpenExecutor | None = None,
) -> PreparationReport:
    """Prepare a data set in a new folder: its splits, card and manifest.

    Args:
        inputs: (file, split or None); empty to read the rows from the hub.
        output_dir: The folder to create; it may exist if it is empty.
        open_executor: Starts an executor for the references; None if none are executed.

    Raises:
        DataError: A row or a file cannot be used.
        ValueError: The folder contains something.

    """
    if source.name == REPOSITORY:
        rows = read_code_base(inputs[0][0], tuple(options.program_packages))
    else:
        rows = _rows(source, inputs, revision)
    kept = journal_path(output_dir) if "references" in options.checks else None
    with new_folder(output_dir) as folder, Journal(kept) as journal:
        former_handler = exit_on_ctrl_c(lambda: _discard(folder, output_dir, journal))
        try:
            with tqdm(rows, desc="rows", unit=" rows", delay=BAR_DELAY_S) as bar:
                report = prepare(bar, source, options, folder, journal, open_executor)
            if source.name == REPOSITORY:
                _save_yields(folder)
            save_card(report, source, options, [path for path, _ in inputs], revision)
        finally:
            signal.signal(signal.SIGINT, former_handler)
    return report


def _save_yields(folder: Path) -> None:
    """Write yields.csv: of each file of a code base, its problems and why others became none."""
    with open(folder / "yields.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "problems", "not", "reasons"))
        for path, problems, reasons in yields(folder):
            writer.writerow((path, problems, reasons.total(), describe_reasons(reasons)))


def journal_path(output: Path) -> Path:
    """Return the file in which an interrupted check of this folder or file keeps what it has found."""
    return output.absolute().with_name(f".{output.absolute().name}-references.jsonl")


def _discard(folder: Path, output_dir: Path, journal: Journal) -> str:
    """Remove an unfinished folder, and return the line that says so."""
    shutil.rmtree(folder, ignore_errors=True)
    is_begun = journal.path is not None and journal.path.exists()
    return f"{output_dir} was not written" + ("; the same command continues the references" * is_begun)


def _rows(source: Source, inputs: list[tuple[Path, str | None]], revision: str | None) -> Iterator[RawRow]:
    if not inputs:
        assert source.hub
        yield from read_hub(*source.hub, revision, source.hub_split)
    for path, split in inputs:
        rows = (
            read_debugbench(path)
            if source.name == "debugbench"
            else read_file(path, split, source.name == "csv")
        )
        first = next(rows, None)
        if first is None:
            raise DataError(f"{path}: contains no rows; expected one row or more")
        yield first
        yield from rows
