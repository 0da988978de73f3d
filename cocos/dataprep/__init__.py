"""From anything with tests to MBPP-format problems, checked.

    sources.py      which public sets there are: their columns, standard splits, licences
    reading.py      rows out of JSON, CSV, Parquet and the hub, one at a time
    conversion.py   a source's row -> a Problem
    humaneval.py    a check() function -> tests of their own
    pytests.py      a pytest file -> tests of their own
    layout.py       tabs out of programs, their meaning kept
    editing.py      program text changed at its syntax tree's positions
    hiding.py       some tests scored and never shown
    splitting.py    train / validation / test, by a seed or as the source has them
    checking.py     references executed: failing, flaky, slow, passed by a constant
    overlap.py      the same problem twice: exact, and nearly
    output.py       a folder that appears whole or not at all
    card.py         manifest.json and dataset_card.md

Imports cocos and is imported by scripts only; no torch.
"""
