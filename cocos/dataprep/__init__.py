"""Preparation of MBPP-format problems from public data sets and the user's own files.

    public_sets.py            a problem file by reference: hub:mbpp/test, humaneval=HumanEval.jsonl.gz
    data_set.py               a data set from its rows to a finished folder
    preparation.py            convert, check, drop rows, report
    prepared_files.py         problems of prepared files, and of benchmarks to compare them with
    sources.py                the public sets: converter, standard splits, licence
    raw_files.py              raw files of the public sets, downloaded or copied from a folder
    readers.py                rows of JSON, CSV and Parquet files and of the hub, streamed
    formats/                  converters, one per format of rows or tests
        conversion.py         a source's row -> a Problem
        humaneval.py          HumanEval's check() -> independent tests
        evalplus.py           EvalPlus' inputs -> calls of the function under test
        input_tests.py        a call and its expected value -> a test
        literals.py           plain values as Python source
        typed_problem.py      a description and tests as somebody types them
        pytest_files.py       a pytest file -> independent tests
        pytest_idioms.py      pytest's calls -> the standard library
        indentation.py        tabs -> spaces
        source_edits.py       edits of program text at the positions of its syntax tree
    expected_values.py        expected values, computed by the references in the sandbox
    splits.py                 assignment to train, validation and test
    given_answers.py          answers of a file, to be played as the first turns
    hidden_tests.py           tests that are scored but not shown
    checks/                   what `--checks` finds
        findings.py           the kinds of findings about a row
        reference_checks.py   references that fail, are flaky or slow; tests that a constant passes
        assertions.py         tests that check nothing when they run
        duplicates.py         exact and near duplicates within the set and with benchmarks
    output_folder.py          the output folder: complete or absent
    dataset_card.py           manifest.json and dataset_card.md

Used by scripts/prepare_data.py, and by the commands that read problems. Does not import torch.
"""
