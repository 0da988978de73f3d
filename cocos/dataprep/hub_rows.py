"""Rows of a data set on the Hugging Face hub, streamed."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from cocos.dataprep.readers import SPLITS, RawRow
from cocos.files.json_lines import DataError, Place

REACH_TIMEOUT_S = 10


def read_hub(
    repository: str, configuration: str | None, revision: str | None, only: str | None = None
) -> Iterator[RawRow]:
    """Yield every row of a data set on the hub, streamed, with the hub's splits.

    Args:
        repository: "owner/name".
        configuration: Name of a configuration; None for the default one.
        revision: Commit or tag; None for the newest.
        only: The only split to read; None for all.

    Raises:
        DataError: The data set cannot be read.

    """
    _require_reachable_hub(repository)
    from datasets import load_dataset  # slow to import, and local files do not need it

    try:
        splits = load_dataset(repository, configuration, revision=revision, streaming=True)
        for name, rows in splits.items() if only is None else [(only, splits[only])]:
            split = name if name in SPLITS else None
            for number, row in enumerate(rows, start=1):
                yield RawRow(Place(f"{repository}/{name}", number, is_line=False), split, row)
    # One boundary: `datasets` raises errors of its own, and any of its HTTP client, whose package changes.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{repository}: cannot be read from the hub ({reason}); check id and network, or use a file"
        ) from None


def _require_reachable_hub(repository: str) -> None:
    """Raise DataError if the hub does not give the set: `datasets` would try for 25 s, and says less."""
    from huggingface_hub import get_token
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    # `datasets` reads a local folder of that name as the data set. In offline mode it fails at once.
    if Path(repository).exists() or HF_HUB_OFFLINE:
        return
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{ENDPOINT}/api/datasets/{repository}", headers=headers)
    try:
        urllib.request.urlopen(request, timeout=REACH_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        reason = f"({getattr(error, 'reason', error)}); check the network"
        if isinstance(error, urllib.error.HTTPError):
            if error.code in (401, 403, 404):
                raise DataError(
                    f"{repository}: the hub has no such data set, or keeps it from you (HTTP {error.code}); "
                    "check the name, or set HF_TOKEN"
                ) from None
            reason = f"(HTTP {error.code}); try later"
        raise DataError(f"{repository}: {ENDPOINT} cannot be reached {reason}, or use a file") from None
