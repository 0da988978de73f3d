"""What a run would do and need, on paper: `memory` and `schedule` reckon, `sizes` reads options and models
for them, `dry_run` plays the first problem and writes it all down.
"""
