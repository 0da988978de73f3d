"""report.html of a prepared folder: counts, licences, lengths, findings, and examples of what was dropped.

Rows of data sets are untrusted: Jinja escapes them, and the page's Content-Security-Policy allows no script
and nothing from the network.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from cocos.dataprep.checks.duplicates import FINDING_KINDS
from cocos.dataprep.preparation import NUM_EXAMPLES, PreparationReport, read_findings
from cocos.dataprep.set_statistics import BINS, SetStatistics, bar_labels
from cocos.dataprep.sources import Source

OTHER_KINDS = {
    "solve_rate": "a model solves the problem too seldom or too often (--solved)",
    "date": "published outside --dates",
}


def save_set_report(report: PreparationReport, source: Source, statistics: SetStatistics) -> None:
    """Write report.html into the report's folder."""
    findings: dict[str, list] = {}
    for finding in read_findings(report.folder):
        if len(of_kind := findings.setdefault(finding.kind, [])) < NUM_EXAMPLES:
            of_kind.append(finding)
    page = _environment().get_template("set_report.html.jinja")
    text = page.render(
        report=report,
        source=source,
        statistics=statistics,
        findings=findings,
        meanings=FINDING_KINDS | OTHER_KINDS,
        histograms=[(name, _bars(statistics, name)) for name in BINS],
    )
    (report.folder / "report.html").write_text(text, encoding="utf-8", errors="backslashreplace")


def _bars(statistics: SetStatistics, name: str) -> list[tuple[str, int, float]]:
    """Return (label, problems, width in percent of the longest bar) of a histogram."""
    counts = [statistics.lengths[name][index] for index in range(len(BINS[name]) + 1)]
    return [
        (label, count, 100 * count / max(counts))
        for label, count in zip(bar_labels(name), counts, strict=True)
    ]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("cocos.dataprep"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
