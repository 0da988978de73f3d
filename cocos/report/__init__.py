"""Reports on finished evaluations: tables, charts and one HTML page.

Everything is read from the output folders of test.py. `finished_runs` loads them, `comparison` compares them
with a baseline, `tables` writes tables for the terminal and in Markdown, `charts` draws with matplotlib,
`chart_files` saves the charts, `page_data` computes what only the page shows, and `html_report` renders the
page's templates.
"""

from collections.abc import Sequence
from pathlib import Path

from cocos.report import chart_files
from cocos.report.comparison import RunComparison, compare_runs
from cocos.report.finished_runs import FinishedRun, load_runs
from cocos.report.html_report import save_page
from cocos.report.tables import markdown_report, print_tables

__all__ = ["compare_runs", "load_runs", "print_tables", "save_report"]


def save_report(
    runs: Sequence[FinishedRun], output_dir: Path, comparisons: Sequence[RunComparison] = ()
) -> None:
    """Write report.html, report.md, an overview as report.png and report.svg, and all charts into plots/."""
    output_dir.mkdir(parents=True, exist_ok=True)
    (output_dir / "report.md").write_text(markdown_report(runs, comparisons), encoding="utf-8")
    chart_files.save_overview(runs, output_dir / "report")
    charts = chart_files.save_charts(runs, output_dir / "plots")
    save_page(runs, comparisons, charts, output_dir / "report.html")
