"""report.html of a prepared folder: counts, licences, lengths, findings, and examples of what was dropped.

Rows of data sets are untrusted: Jinja escapes them, and the page's Content-Security-Policy allows no script
and nothing from the network.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from cocos.dataprep.checks.findings import FINDING_KINDS
from cocos.dataprep.preparation import NUM_EXAMPLES, PreparationReport, read_findings
from cocos.dataprep.set_statistics import BINS, RATE_LABELS, SetStatistics, bar_labels
from cocos.dataprep.sources import Source

OTHER_KINDS = {
    "solve_rate": "a model solves the problem too seldom or too often (--solved)",
    "date": "published outside --dates",
    "long": "the reference has more lines than --max_lines",
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
        histograms=_histograms(statistics),
    )
    (report.folder / "report.html").write_text(text, encoding="utf-8", errors="backslashreplace")


def _histograms(statistics: SetStatistics) -> list[tuple[str, list[tuple[str, int, float]]]]:
    """Return the name and the bars of each histogram; that of the solve rates only if one is known."""
    found = [(name, _bars(statistics.lengths[name], bar_labels(name))) for name in BINS]
    if statistics.solve_rates:
        found.append(("solved", _bars(statistics.solve_rates, RATE_LABELS)))
    return found


def _bars(counts: Counter[int], labels: Sequence[str]) -> list[tuple[str, int, float]]:
    """Return (label, problems, width in percent of the longest bar) of a histogram."""
    longest = max(counts.values())
    return [(label, counts[index], 100 * counts[index] / longest) for index, label in enumerate(labels)]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("cocos.dataprep"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
