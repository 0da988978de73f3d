"""What a prepared folder says about itself: manifest.json for programs, dataset_card.md for people. No clock,
no path: the same input gives the same bytes.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cocos.dataprep.checks import KINDS
from cocos.dataprep.preparation import Ledger, Options
from cocos.dataprep.sources import Source
from cocos.files.durable import save_json
from cocos.files.run_record import sha256

CARD = """# {title}, in MBPP format

{origin}
Licence of the data: **{licence}**. It stays with the data: read it before you pass the files or a model on.

| file | problems | sha256 |
| --- | --- | --- |
{files}

{rows_in} rows were read, {rows_out} are in these files, {dropped} were left out{dropped_where}.

{checks}

{findings}
A row: `task_id`, `text`, `code` (the reference), `test_list`; where they are needed `test_imports`,
`test_setup_code` (run after the code and before the tests), `entry_point`, `hidden_test_list` (scored, never
shown) and `challenge_test_list` (never shown, not scored). Made by `scripts/prepare_data.py`; options and
digests are in manifest.json.
"""


def save_card(
    ledger: Ledger, source: Source, options: Options, inputs: Sequence[Path], revision: str | None
) -> None:
    """Write manifest.json and dataset_card.md into the ledger's folder."""
    folder = ledger.folder
    files = {
        path.name: {"sha256": sha256(path), "problems": ledger.counts.get(path.stem)}
        for path in sorted(folder.glob("*.jsonl"))
    }
    facts = asdict(options) | {"against": [Path(name).name for name in options.against]}
    manifest = {
        "source": source.name,
        "title": source.title,
        "url": source.url,
        "licence": source.licence,
        "hub": {"id": source.hub[0], "configuration": source.hub[1], "revision": revision}
        if source.hub and not inputs
        else None,
        "input": [
            {"file": path.name, "sha256": sha256(path), "bytes": path.stat().st_size} for path in inputs
        ],
        "output": files,
        "rows_in": ledger.rows_in,
        "rows_out": ledger.counts.total(),
        "dropped": dict(sorted(ledger.dropped.items())),
        "findings": dict(sorted(ledger.found.items())),
        "isolation": ledger.isolation,
        "options": {name: facts[name] for name in sorted(facts.keys() - {"executor_workers"})},
        "python": sys.version.split()[0],
    }
    save_json(manifest, folder / "manifest.json")
    (folder / "dataset_card.md").write_text(_card(ledger, source, options, files), encoding="utf-8")


def _card(ledger: Ledger, source: Source, options: Options, files: dict) -> str:
    dropped = ledger.dropped.total()
    found = [f"- {ledger.found[kind]} {kind}: {KINDS[kind]}" for kind in KINDS if ledger.found[kind]]
    against = ", ".join(Path(name).name for name in options.against)
    names = {
        "references": f"references executed {options.num_seeds} times (isolation: {ledger.isolation})",
        "overlap": f"overlap inside and across splits{against and ' and with ' + against}",
    }
    return CARD.format(
        title=source.title,
        origin=f"Source: {source.url}\n" if source.url else "",
        licence=source.licence,
        files="\n".join(
            f"| {name} | {facts['problems']} | `{facts['sha256']}` |"
            for name, facts in files.items()
            if facts["problems"]
        ),
        rows_in=ledger.rows_in,
        rows_out=ledger.counts.total(),
        dropped=dropped,
        dropped_where=" and are named in dropped.jsonl" if dropped else "",
        checks="Checked: " + "; ".join(names[c] for c in names if c in options.checks) + "."
        if options.checks
        else "Converted without checks.",
        findings="Found, row by row in findings.jsonl:\n\n" + "\n".join(found) + "\n"
        if found
        else "Nothing was found.\n",
    )
