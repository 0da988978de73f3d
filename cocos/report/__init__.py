"""Reports on finished evaluations: tables, charts and one HTML page.

Everything is read from the output folders of test.py. `finished_runs` loads them, and `comparisons` pairs
them with a baseline; `sample_statistics` has the statistics of their rows, and `token_curves` sets their
accuracy against tokens, beside resampling. `tables` turns the numbers into text, `summary` has the sentences
with which a report begins, `caveats` what speaks against the numbers; `contents` has all of it, computed
once. `charts` draws those of the page and of report.png with matplotlib in the style of `chart_style`,
`html_report` renders the page's templates, and `report_files` prints the tables and writes all files.
`inspect_log` writes a run for inspect.
"""
