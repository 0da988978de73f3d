"""Reports on finished evaluations: tables, charts and one HTML page.

Everything is read from the output folders of test.py. `finished_runs` loads them, `comparison` compares them
with a baseline, and `equal_tokens` compares turns with independent first attempts. `tables` turns the numbers
into text in the formats of `cells`; `terminal` prints it and `markdown_report` writes it. `charts` and
`error_charts` draw with matplotlib in the colours of `chart_style`, `chart_files` saves the charts,
`page_data` computes what only the page shows, `html_report` renders the page's templates, and `report_files`
writes all files of a report.
"""
