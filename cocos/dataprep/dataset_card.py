"""README.md of a prepared folder: a card for people, with the header by which `datasets` loads the folder."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from cocos.dataprep.checks.findings import FINDING_KINDS
from cocos.dataprep.checks.reference_checks import NUM_SEEDS
from cocos.dataprep.options import PreparationOptions
from cocos.dataprep.preparation_report import PreparationReport
from cocos.dataprep.readers import SPLITS
from cocos.dataprep.sources import NOT_STATED, Source
from cocos.files.markdown import markdown_table
from cocos.problems import Problem, problem_to_row

CARD = """# {title}, in MBPP format

{origin}
Licence of the data: **{licence}**. It also applies to these files: read it before you share them or a
model that was trained on them.

{licences}

{files}

{sizes}

Rows read: {rows_in}; in these files: {rows_out}; dropped: {dropped}{dropped_where}.

{checks}

{findings}
Each row has `task_id`, `text`, `code` (the reference) and `test_list`. Some rows also have `test_imports`,
`test_setup_code` (run after the code and before the tests), `entry_point`, `hidden_test_list` (scored, never
shown), `challenge_test_list` (never shown, not scored), `licence` (of the row), `solve_rate` (share of a
model's samples that were right), `stdin` (the program's standard input) and `files` (path and text of each
file in its working folder). `cocos prepare` wrote these files; manifest.json records its options
and the files' digests.
"""
# Licences that the hub knows.
HUB_LICENCES = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC BY 4.0", "CC BY-NC 4.0", "CC0-1.0", "MIT")
TEXT_LISTS = ("test_list", "hidden_test_list", "challenge_test_list", "test_imports")


def dataset_card(
    report: PreparationReport,
    source: Source,
    options: PreparationOptions,
    files: dict,
    problems: Iterable[tuple[str, Problem]],
) -> str:
    """Return the contents of README.md.

    Args:
        files: File name -> its sha256 and number of problems, as in manifest.json.
        problems: (split, problem) pairs, of which one at a time is in memory.

    """
    fields: set[str] = set()  # that occur in a row
    has_references = False
    licences: Counter[str] = Counter()
    # What is measured -> value -> number of problems.
    values: dict[str, Counter[float]] = defaultdict(Counter)
    for _, problem in problems:
        fields |= problem_to_row(problem).keys()
        has_references |= bool(problem.code.strip())
        licences[problem.licence or NOT_STATED] += 1
        values["characters of the text"][len(problem.text)] += 1
        values["lines of the reference"][len(problem.code.splitlines())] += 1
        values["tests"][len(problem.scored_tests)] += 1
        if problem.solve_rate is not None:
            values["solve rate"][problem.solve_rate] += 1
    sizes = [_quantiles(name, sorted(counts.elements())) for name, counts in values.items()]
    split_rows = [
        (name, str(file["problems"]), f"`{file['sha256']}`")
        for name, file in files.items()
        if file["problems"]
    ]
    dropped = report.dropped.total()
    return _header(report, source, fields, set(licences)) + CARD.format(
        title=source.title,
        origin=f"Source: {source.url}\n" if source.url else "",
        licence=source.licence,
        licences=markdown_table(
            ("licence of the row", "problems"), [(name, str(count)) for name, count in licences.most_common()]
        ),
        files=markdown_table(("file", "problems", "sha256"), split_rows),
        sizes=markdown_table(("per problem", "smallest", "quartiles", "largest"), sizes),
        rows_in=report.rows_in,
        rows_out=report.counts.total(),
        dropped=dropped,
        dropped_where=" (listed in dropped.jsonl)" if dropped else "",
        checks=_describe_checks(report, options, has_references),
        findings=_describe_findings(report),
    )


def _quantiles(name: str, ordered: list[float]) -> tuple[str, str, str, str]:
    least, *quartiles, most = (f"{ordered[(len(ordered) - 1) * part // 4]:g}" for part in range(5))
    return name, least, ", ".join(quartiles), most


def _header(report: PreparationReport, source: Source, fields: set[str], licences: set[str]) -> str:
    """Return the YAML header: the file of each split, and the columns, which not every row has."""
    ids = set(map(_hub_id, licences))
    known = sorted(ids.intersection(map(_hub_id, HUB_LICENCES)))
    features = []
    for name in sorted(fields):
        kind = {"files": "json", "solve_rate": "float64"}.get(name, "string")
        features.append({"name": name} | ({"list": kind} if name in TEXT_LISTS else {"dtype": kind}))
    splits = [{"split": split, "path": f"{split}.jsonl"} for split in SPLITS if report.counts[split]]
    header = {
        "pretty_name": f"{source.title}, in MBPP format",
        "license": known if len(known) == len(ids) else "other",
        "task_categories": ["text-generation"],
        "tags": ["code"],
        "configs": [{"config_name": "default", "data_files": splits}],
        "dataset_info": {"features": features},
    }
    # JSON is YAML, and quotes every string.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _hub_id(licence: str) -> str:
    """Return a licence as the hub spells it."""
    return licence.lower().replace(" ", "-")


def _describe_checks(report: PreparationReport, options: PreparationOptions, has_references: bool) -> str:
    if not options.checks:
        return "No checks were run."
    isolation = ", ".join([str(report.isolation), *report.packages])
    against = ", ".join(Path(name).name for name in options.against)
    executed = f"executed (isolation: {isolation})"
    descriptions = {
        "references": f"references {executed}, under {NUM_SEEDS} seeds of `random`"
        if has_references
        else f"constant functions {executed}, because no row has a reference",
        "strength": "strength of the tests, by programs that differ from a reference in one place",
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
