"""Recognition of files and rows that are not in MBPP format, and the command that converts them.

Used for error messages only: it decides by the names of columns and converts nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cocos.dataprep.readers import input_files, read_file, table_kind
from cocos.files.bundled import command_line
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem, problem_from_row

# Columns by which a row of a public set is recognized, and the SOURCE of prepare_data.py that converts it.
# The first match counts: HumanEvalPack has HumanEval's columns too.
EVALPLUS_COLUMN = "plus_input"
PUBLIC_SETS = (
    ("mbppplus", (EVALPLUS_COLUMN, "assertion")),
    ("humanevalplus", (EVALPLUS_COLUMN, "canonical_solution")),
    ("humanevalfix", ("canonical_solution", "buggy_solution")),
    ("bigcodebench", ("instruct_prompt", "code_prompt", "canonical_solution")),
    ("livecodebench", ("question_content", "public_test_cases", "private_test_cases")),
    ("leetcode", ("problem_description", "starter_code", "completion")),
    ("opc-educational", ("seq_id", "instruction", "testcase")),
    ("codeio", ("code_sample", "input_generator")),
    ("acecode", ("question", "test_cases", "inferences")),
    ("humaneval", ("canonical_solution", "entry_point", "test")),
    ("kodcode", ("question_id", "question", "solution")),
    ("mbpp", ("test_list", "test_setup_code", "challenge_test_list")),
    ("mbpp-sanitized", ("test_list", "test_imports", "source_file")),
)
# A function in the tests of EvalPlus' original format.
ORIGINAL_FORMAT = "def assertion(out, exp, atol)"
# Words in the names of columns that are likely to contain the field.
LIKELY_WORDS = {
    "text": ("text", "prompt", "question", "problem", "description", "instruction", "task"),
    "test_list": ("test", "assert"),
    "code": ("answer", "solution", "code", "reference", "program"),
}


def read_problem(row: object, place: Place) -> Problem:
    """Return the problem in a row, as `problem_from_row`; if it has another format, say how to convert it."""
    if isinstance(row, dict) and not row.keys() <= Problem.__dataclass_fields__.keys():
        other = describe_original_format(row) or describe_own_row(row) or describe_raw_row(row, place.path)
        if not other and (missing := missing_fields(row)):
            command = conversion_command("jsonl", place.path, *_options(row, missing))
            other = f"{describe_columns(row, missing)}; convert it, for example: {command}"
        if other:
            raise DataError(f"{place}: {other}")
    return problem_from_row(row, place)


def refuse_other_file(path: Path) -> None:
    """Raise DataError if a file is a CSV or Parquet file, and say how to convert it."""
    if not path.is_file():
        return
    if kind := table_kind(path):
        raise DataError(f"{path}: is a {kind} file, not JSON; convert it: {file_command(path)}")


def file_command(path: Path) -> str:
    """Return the command that prepares a file, by its name and the columns of its first row, or a folder.

    A folder without files of splits is one of code.
    """
    try:
        file, _ = input_files(path)[0]
    except DataError:
        return conversion_command("repository", path)
    try:
        first = next(iter(read_file(file))).row
    except (DataError, ImportError, StopIteration):
        first = {}
    row = first if isinstance(first, dict) else {}
    missing = missing_fields(row) if row else []
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    kind = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}.get(suffix, "jsonl")
    if missing and (source := public_set(row)):
        return conversion_command(source, path)
    return conversion_command(kind, path, *_options(row, missing))


FORMS = (("def check(", "check"), ("def test_", "pytest"), ("assert ", "lines"))  # of tests in one text


def _options(row: Mapping[str, object], missing: Sequence[str]) -> list[str]:
    """Return the options with which a row is prepared: the columns of missing fields, and the tests' form."""
    options = columns_example(list(row), missing) if missing else []
    columns = dict(pair.split("=", 1) for pair in options[1:])
    tests = row.get(columns.get("test_list", "test_list"))
    text = tests if isinstance(tests, str) and not tests.lstrip().startswith("[") else ""
    form = next((form for words, form in FORMS if words in text), "")
    return [*options, *(("--tests", form) if form else ())]


def describe_own_row(row: Mapping[str, object]) -> str | None:
    """Return what a row of this project that is no problem is, and the remedy; None: it is another."""
    if row.keys() == {"prompt", "completion"}:
        return "is a row for Boost, not a problem; give such rows to cocos boost, and problems here"
    if {"task_id", "turns"} <= row.keys():
        return "is a row of an evaluation, not a problem; give the file of problems that was evaluated"
    return None


def describe_raw_row(row: Collection[str], path: str | Path) -> str | None:
    """Return which public set a row without a text or tests is of, and which command converts it, or None."""
    if missing_fields(row) and (source := public_set(row)):
        return f"a raw row of the public set {source}; convert it: {conversion_command(source, path)}"
    return None


def describe_original_format(row: Mapping[str, object]) -> str | None:
    """Return what a row of EvalPlus' original format is and which file to give instead, or None.

    Its `test` loops over all inputs and compares with numpy, so it gives no single asserts. On the hub, the
    data sets evalplus/humanevalplus and evalplus/mbppplus have this format too.
    """
    if ORIGINAL_FORMAT not in str(row.get("test", "")):
        return None
    return (
        "a row of EvalPlus' original format (HumanEvalPlus-OriginFmt or MbppPlus-OriginFmt), whose tests "
        "need numpy and have no single asserts; convert HumanEvalPlus.jsonl.gz or MbppPlus.jsonl.gz of the "
        f"same release with {command_line('prepare', 'humanevalplus')} or mbppplus"
    )


def missing_fields(row: Collection[str]) -> list[str]:
    """Return the fields that every problem needs and that the row does not have."""
    missing = [] if "text" in row or "prompt" in row else ["text"]
    return missing if "test_list" in row else [*missing, "test_list"]


def public_set(names: Collection[str]) -> str | None:
    """Return the SOURCE of the public set that has these columns, or None."""
    return next((source for source, columns in PUBLIC_SETS if all(c in names for c in columns)), None)


def describe_columns(names: Collection[str], missing: Sequence[str]) -> str:
    """Return the columns that a row has, and the fields that it lacks."""
    listed = ", ".join(name[:40] for name in names)
    return f"has the columns {listed}, but not {' and '.join(missing)}"


def columns_example(names: Sequence[str], missing: Sequence[str], given: Sequence[str] = ()) -> list[str]:
    """Return the words of an option --columns for the missing fields, with columns of likely names."""
    columns: dict[str, str] = {}
    for field in missing:
        unused = [n for n in names if not n.lower().endswith("id") and n not in columns.values()]
        likely = (name for word in LIKELY_WORDS[field] for name in unused if word in name.lower())
        columns[field] = next(likely, "COLUMN")
    return ["--columns", *given, *(f"{field}={column}" for field, column in columns.items())]


def conversion_command(source: str, path: str | Path, *options: str) -> str:
    """Return the command that prepares a file as this SOURCE; without --input if there is no such file."""
    name = source if source in dict(PUBLIC_SETS) else Path(path).name.split(".")[0] or "mine"
    folder = Path("data", name)
    if folder.exists():  # it has to be new
        folder = Path("data", f"{name}-prepared")
    given = ("--input", path) if Path(path).exists() else ()
    return command_line("prepare", source, *given, *options, "--output_dir", folder)
