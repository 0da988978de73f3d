"""Preparation of MBPP-format problems from public data sets and the user's own files.

    named_sets.py             a problem file by reference, as hub:mbpp/test; raw files and their cache
    data_set.py               a data set from its rows to a folder with its manifest and card
    preparation.py            convert, check, drop rows, report
    preparation_report.py     what was read, dropped and found
    options.py                options of a preparation, and of the checks alone
    dataset_card.py           README.md with counts, by which `datasets` loads the folder
    prepared_files.py         problems of prepared files, and of benchmarks to compare them with
    row_hints.py              recognition of files and rows of other formats, for error messages
    sources.py                the public sets: converter, standard splits, licence
    code_base.py              problems from a folder of code: doctests, test files, and its licences
    module_index.py           the modules of a folder of code, and the program that a definition needs
    readers.py                rows of JSON, CSV and Parquet files, streamed
    hub_rows.py               rows of the hub, streamed
    formats/                  converters, one per format of rows or tests
        conversion.py         a source's row -> a Problem
        own_rows.py           repair of rows as people write them: values, fences, imports
        field_rows.py         rows of other trainers, with inputs and outputs as tests
        humaneval.py          HumanEval's check() -> independent tests
        evalplus.py           EvalPlus' inputs -> calls of the function under test
        program_sets.py       OpenCoder, LeetCodeDataset, AceCode, LiveCodeBench, BigCodeBench
        doctests.py           a docstring -> its description, and a test per example
        input_tests.py        a call and its expected value -> a test
        pytest_files.py       a pytest or unittest file -> independent tests
        shown_tests.py        tests -> those that prompts may show, and hidden ones
        source_edits.py       edits of programs, and the names that their statements read and bind
    exports.py                rows of other trainers, written beside the splits
    expected_values.py        expected values, computed by the references in the sandbox
    checks/                   what `--checks` finds
        reference_checks.py   references that fail, are flaky or slow; tests that check nothing
        strength.py           tests that a program passes which is wrong in one place
        mutants.py            programs that differ from a reference in one place
        witnesses.py          further inputs of a function, like those of its tests
        journal.py            what an interrupted check has found by executing programs
        findings.py           the kinds of findings, and a finding about a row
        duplicates.py         exact and near duplicates
        ngrams.py             n-grams of words and tokens, and the sets of them that may be alike
        tokens.py             words of a text, tokens and syntax tree of a program
        overlap.py            duplicates, and words, names and asserts that benchmarks have too
    splits.py                 the split of each problem, and hidden tests

Used by scripts/prepare_data.py, and by the commands that read problems. Does not import torch.
"""
