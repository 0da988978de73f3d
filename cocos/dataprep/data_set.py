"""A data set from its rows to a finished folder: read, prepare, describe."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from cocos.dataprep.dataset_card import save_card
from cocos.dataprep.output_folder import new_folder
from cocos.dataprep.preparation import PreparationOptions, PreparationReport, prepare
from cocos.dataprep.readers import RawRow, read_file, read_hub
from cocos.dataprep.sources import Source
from cocos.entry_point import exit_on_ctrl_c
from cocos.problems import DataError

BAR_DELAY_S = 1.0  # an error, or a small set, ends before it shows


def prepare_data_set(
    source: Source,
    inputs: list[tuple[Path, str | None]],
    options: PreparationOptions,
    output_dir: Path,
    revision: str | None = None,
) -> PreparationReport:
    """Prepare a data set in a new folder: its splits, card and manifest.

    Args:
        source: The data set.
        inputs: (file, split or None); empty to read the rows from the hub.
        options: Options of the preparation.
        output_dir: The folder to create; it may exist if it is empty.
        revision: Commit or tag on the hub; None for the newest.

    Raises:
        DataError: A row or a file cannot be used.
        ValueError: The folder contains something.

    """
    rows = _rows(source, inputs, revision)
    with new_folder(output_dir) as folder:
        former_handler = exit_on_ctrl_c(lambda: _discard(folder, output_dir))
        try:
            with tqdm(rows, desc="rows", unit=" rows", delay=BAR_DELAY_S) as bar:
                report = prepare(bar, source, options, folder)
            save_card(report, source, options, [path for path, _ in inputs], revision)
        finally:
            signal.signal(signal.SIGINT, former_handler)
    return report


def _discard(folder: Path, output_dir: Path) -> str:
    """Remove an unfinished folder, and return the line that says so."""
    shutil.rmtree(folder, ignore_errors=True)
    return f"{output_dir} was not written"


def _rows(source: Source, inputs: list[tuple[Path, str | None]], revision: str | None) -> Iterator[RawRow]:
    if not inputs:
        assert source.hub
        yield from read_hub(*source.hub, revision)
    for path, split in inputs:
        rows = read_file(path, split)
        first = next(rows, None)
        if first is None:
            raise DataError(f"{path}: contains no rows; expected one row or more")
        yield first
        yield from rows
