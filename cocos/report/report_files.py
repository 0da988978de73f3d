"""The files of a report in one folder."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from cocos.report import chart_files
from cocos.report.comparison import RunComparison
from cocos.report.finished_runs import FinishedRun
from cocos.report.html_report import save_page
from cocos.report.markdown_report import markdown_report


def report_page(runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison] = ()) -> bytes:
    """Return the content of report.html."""
    with tempfile.TemporaryDirectory() as folder:
        save_report(runs, Path(folder), comparisons)
        return (Path(folder) / "report.html").read_bytes()


def save_report(
    runs: Sequence[FinishedRun], output_dir: Path, comparisons: Sequence[RunComparison] = ()
) -> None:
    """Write report.html, report.md, an overview as report.png and report.svg, and all charts into plots/.

    Raises:
        OSError: A file cannot be written.

    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / "report.md").write_text(markdown_report(runs, comparisons), encoding="utf-8")
        chart_files.save_overview(runs, output_dir / "report")
        charts = chart_files.save_charts(runs, output_dir / "plots")
        save_page(runs, comparisons, charts, output_dir / "report.html")
    except OSError as error:  # a full disk names no file
        reason = error.strerror or error
        raise OSError(f"--output_dir {output_dir}: no report can be written there ({reason})") from None
