"""Reports on finished evaluations: tables, charts and one HTML page.

Everything is read from the output folders of test.py. `finished_runs` loads them, `comparison` compares them
with a baseline, `tables` turns the numbers into text, which `terminal` prints and `markdown_report` writes.
`charts` draws with matplotlib in the colours of `chart_style`, `chart_files` saves the charts, `page_data`
computes what only the page shows, `html_report` renders the page's templates, and `report_files` writes all
files of a report.
"""
