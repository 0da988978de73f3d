"""Reports on finished evaluations: tables, charts and one HTML page.

Everything is read from the output folders of test.py. `finished_runs` loads them and compares them with a
baseline, and `equal_tokens` compares turns with independent first attempts. `tables` turns the numbers into
text. `charts` draws with matplotlib in the colours of `chart_style`, `chart_files` saves the charts,
`html_report` renders the page's templates, and `report_files` prints the tables and writes all files.
"""
