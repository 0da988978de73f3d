"""report.html of a prepared folder: counts, licences, lengths, findings, and examples of what was dropped.

Rows of data sets are untrusted: Jinja escapes them, and the page's Content-Security-Policy allows no script
and nothing from the network.
"""

from jinja2 import Environment, PackageLoader, StrictUndefined

from cocos.dataprep.checks.findings import FINDING_KINDS
from cocos.dataprep.preparation import NUM_EXAMPLES, PreparationReport, read_findings
from cocos.dataprep.set_statistics import SetStatistics
from cocos.dataprep.sources import Source

OTHER_KINDS = {
    "solve_rate": "a model solves the problem too seldom or too often (--solved)",
    "date": "published outside --dates",
    "long": "the reference has more lines than --max_lines",
}


def save_set_report(report: PreparationReport, source: Source, statistics: SetStatistics) -> None:
    """Write report.html into the report's folder."""
    environment = Environment(
        loader=PackageLoader("cocos.dataprep"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    findings: dict[str, list] = {}
    for finding in read_findings(report.folder):
        if len(of_kind := findings.setdefault(finding.kind, [])) < NUM_EXAMPLES:
            of_kind.append(finding)
    text = environment.get_template("set_report.html.jinja").render(
        report=report,
        source=source,
        statistics=statistics,
        findings=findings,
        meanings=FINDING_KINDS | OTHER_KINDS,
    )
    (report.folder / "report.html").write_text(text, encoding="utf-8", errors="backslashreplace")
