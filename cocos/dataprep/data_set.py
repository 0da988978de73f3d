"""A data set from its rows to a finished folder: read, prepare, describe.

manifest.json describes the folder for programs, README.md for people. Neither contains times or paths, so
that the same input gives the same bytes.
"""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from cocos.config.option import option_names
from cocos.dataprep.dataset_card import dataset_card
from cocos.dataprep.hub_rows import read_hub
from cocos.dataprep.options import PreparationOptions
from cocos.dataprep.preparation import Preparation, read_splits
from cocos.dataprep.readers import RawRow, read_file
from cocos.dataprep.sources import Source
from cocos.files.durable import save_json
from cocos.files.run_record import sha256
from cocos.problems import DataError


def save_card(preparation: Preparation, inputs: Sequence[Path], revision: str | None) -> None:
    """Write manifest.json and README.md into the report's folder; arguments as in `prepare_data_set`."""
    report, source, options = preparation.report, preparation.source, preparation.options
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
    card = dataset_card(report, source, options, files, read_splits(report.folder))
    (report.folder / "README.md").write_text(card, encoding="utf-8")


def _describe_file(path: Path) -> dict[str, object]:
    if not path.is_dir():
        return {"file": path.name, "sha256": sha256(path), "bytes": path.stat().st_size}
    # The code of a folder of code; otherwise every file, as of DebugBench.
    files = sorted(file for file in [*path.rglob("*.py")] or path.iterdir() if file.is_file())
    digests = "".join(f"{file.relative_to(path)} {sha256(file)}\n" for file in files)
    digest = hashlib.sha256(digests.encode("utf-8", "surrogateescape")).hexdigest()
    return {"file": path.name, "sha256": digest, "files": len(files)}


def _recorded_options(options: PreparationOptions) -> dict[str, object]:
    names = option_names(PreparationOptions, "data", "sampling", "executor")
    recorded = {name: getattr(options, name) for name in names}
    recorded["against"] = [Path(name).name for name in options.against]
    recorded["profile"] = Path(options.profile).name
    return dict(sorted(recorded.items()))


BAR_DELAY_S = 1.0  # an error, or a small set, ends before it shows


def prepare_data_set(
    preparation: Preparation, inputs: Sequence[tuple[Path, str | None]], revision: str | None = None
) -> None:
    """Prepare a data set in the folder of the report: its splits, card and manifest.

    Args:
        inputs: (file, split or None); empty to read the rows from the hub.
        revision: Revision on the hub; None for the newest.

    Raises:
        DataError: A row or a file cannot be used.

    """
    rows = _rows(preparation.source, inputs, revision)
    with tqdm(rows, desc="rows", unit=" rows", delay=BAR_DELAY_S) as bar:
        preparation.prepare(bar)
    save_card(preparation, [path for path, _ in inputs], revision)


def journal_path(output: Path) -> Path:
    """Return the file in which an interrupted check of this folder or file keeps what it has found."""
    return output.absolute().with_name(f".{output.absolute().name}-references.jsonl")


def _rows(
    source: Source, inputs: Sequence[tuple[Path, str | None]], revision: str | None
) -> Iterator[RawRow]:
    if not inputs:
        assert source.hub
        yield from read_hub(*source.hub, revision, source.hub_split)
    for path, split in inputs:
        if source.read:
            yield from source.read(path)
            continue
        rows = read_file(path, split, source.name == "csv")
        first = next(rows, None)
        if first is None:
            raise DataError(f"{path}: contains no rows; expected one row or more")
        yield first
        yield from rows
