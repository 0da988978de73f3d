"""Description of a prepared data set: manifest.json for programs, dataset_card.md for people.

Neither contains times or paths, so that the same input gives the same bytes.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cocos.dataprep.checks.findings import FINDING_KINDS
from cocos.dataprep.preparation import PreparationOptions, PreparationReport
from cocos.dataprep.sources import Source
from cocos.files.durable import save_json
from cocos.files.markdown import markdown_table
from cocos.files.run_record import sha256

CARD = """# {title}, in MBPP format

{origin}
Licence of the data: **{licence}**. It also applies to these files: read it before you share them or a
model that was trained on them.

{files}

Rows read: {rows_in}; in these files: {rows_out}; dropped: {dropped}{dropped_where}.

{checks}

{findings}
Each row has `task_id`, `text`, `code` (the reference) and `test_list`. Some rows also have `test_imports`,
`test_setup_code` (run after the code and before the tests), `entry_point`, `hidden_test_list` (scored, never
shown), `challenge_test_list` (never shown, not scored), `stdin` (the program's standard input) and `files`
(path and text of each file in its working folder). `scripts/prepare_data.py` wrote these files; manifest.json
records its options and the files' digests.
"""


def save_card(
    report: PreparationReport,
    source: Source,
    options: PreparationOptions,
    inputs: Sequence[Path],
    revision: str | None,
) -> None:
    """Write manifest.json and dataset_card.md into the report's folder.

    Args:
        report: Report of the preparation.
        source: The data set.
        options: Options of the preparation.
        inputs: Files that were read; empty if the rows came from the hub.
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
    (report.folder / "dataset_card.md").write_text(_card(report, source, options, files), encoding="utf-8")


def _describe_file(path: Path) -> dict[str, object]:
    return {"file": path.name, "sha256": sha256(path), "bytes": path.stat().st_size}


def _recorded_options(options: PreparationOptions) -> dict[str, object]:
    recorded = asdict(options) | {"against": [Path(name).name for name in options.against]}
    del recorded["executor_workers"]  # it changes how long a preparation takes, not what it writes
    del recorded["program_python"]  # a path
    return dict(sorted(recorded.items()))


def _card(report: PreparationReport, source: Source, options: PreparationOptions, files: dict) -> str:
    dropped = report.dropped.total()
    split_rows = [
        (name, str(file["problems"]), f"`{file['sha256']}`")
        for name, file in files.items()
        if file["problems"]
    ]
    return CARD.format(
        title=source.title,
        origin=f"Source: {source.url}\n" if source.url else "",
        licence=source.licence,
        files=markdown_table(("file", "problems", "sha256"), split_rows),
        rows_in=report.rows_in,
        rows_out=report.counts.total(),
        dropped=dropped,
        dropped_where=" (listed in dropped.jsonl)" if dropped else "",
        checks=_describe_checks(report, options),
        findings=_describe_findings(report),
    )


def _describe_checks(report: PreparationReport, options: PreparationOptions) -> str:
    if not options.checks:
        return "No checks were run."
    isolation = ", ".join([str(report.isolation), *report.packages])
    against = ", ".join(Path(name).name for name in options.against)
    descriptions = {
        "references": f"references executed {options.num_seeds} times (isolation: {isolation})",
        "overlap": f"overlap inside and across splits{against and ' and with ' + against}",
    }
    return "Checked: " + "; ".join(descriptions[c] for c in descriptions if c in options.checks) + "."


def _describe_findings(report: PreparationReport) -> str:
    lines = [
        f"- {report.findings[kind]} {kind}: {meaning}"
        for kind, meaning in FINDING_KINDS.items()
        if report.findings[kind]
    ]
    if not lines:
        return "There are no findings.\n"
    return "Findings (findings.jsonl lists the rows):\n\n" + "\n".join(lines) + "\n"
