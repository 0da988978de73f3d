"""Tables, charts and a page about evaluations: shown by test.py, compared by `python -m cocos.report`.

Everything is read from the folders that test.py leaves. `runs` reads them, `pairs` says which are compared,
`tables` writes Markdown and the terminal's tables, `plots` the pictures, `page` the report.html.
"""

from collections.abc import Sequence
from pathlib import Path

from cocos.report import chart_files
from cocos.report.comparison import Pair, compare_runs
from cocos.report.finished_runs import Run, load_runs
from cocos.report.html_report import save_page
from cocos.report.tables import markdown, show

__all__ = ["compare_runs", "load_runs", "save_report", "show"]


def save_report(runs: Sequence[Run], output_dir: Path, pairs: Sequence[Pair] = ()) -> None:
    """Write report.html, report.md, report.png with report.svg, and every chart into plots/."""
    output_dir.mkdir(parents=True, exist_ok=True)
    (output_dir / "report.md").write_text(markdown(runs, pairs), encoding="utf-8")
    chart_files.save_overview(runs, output_dir / "report")
    save_page(runs, pairs, chart_files.save_charts(runs, output_dir / "plots"), output_dir / "report.html")
