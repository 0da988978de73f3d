"""Evaluation runs: play problems, store their rows, resume interrupted runs.

    run.py              a run: its processes, what is missing, playing it, its rows
    generator.py        the generator and the player that the options select
    sample_rows.py      trajectory <-> row of samples.jsonl; sample_files.py files of rows, and merging them
    resumption.py       the record of a run, and which options may differ when it is resumed
    progress.py         the progress bar, and the warning about the context
    trajectory_text.py  what --verbose prints, and the parts of a turn for the page

The table that `cocos eval` prints at the end is `report/tables.py`'s.
"""
