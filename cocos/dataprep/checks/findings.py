"""Kinds of findings of the checks, and a finding about a row. Imports no numpy."""

from dataclasses import dataclass

# The option --drop accepts these names, except those of `KEPT`.
FINDING_KINDS = {
    "malformed": "the row cannot be read as a problem",
    "test_left_out": "a test needs pytest, passes for any program, or is too large; the row keeps the others",
    "edited": "an import of the solution or of pytest, or a fence around the reference, is left out",
    "moved": "the problem nearest to the border of a split that would be empty is in it",
    "inexact": "a test compares with a float of 2**53 or more by ==, which no exact integer may equal",
    "failing": "the reference does not pass the tests",
    "flaky": "the reference passes under one random seed and fails under another",
    "slow": "the reference takes long",
    "in_child": "only the program's own process can judge a test, so training does not reward it",
    "weak": "a program that differs from the reference in one place, and in a value, passes every test",
    "untested": "no test asserts anything when it runs",
    "constant": "a function that always returns one constant passes every test",
    "duplicate": "the same text or code occurs earlier in the split",
    "leak": "the same text or code occurs in another split",
    "contaminated": "the same text or code occurs in a named benchmark",
    "shared_text": "eight words in a row of the text occur in the text of a named benchmark",
    "shared_name": "a function of a named benchmark has the name of the function under test",
    "shared_assert": "an assert occurs in a named benchmark",
    "near_duplicate": "nearly the same text or code occurs earlier in the split",
    "near_leak": "nearly the same text or code occurs in another split",
    "near_contaminated": "nearly the same text or code occurs in a named benchmark",
}
KEPT = ("test_left_out", "edited", "moved")  # findings about a part of a row, or about its split


@dataclass(frozen=True)
class Finding:
    """Finding about a row."""

    kind: str  # one of `FINDING_KINDS`
    split: str  # split of the row
    task_id: str  # id of the row within the split
    detail: str  # description; it is the same in every run
    other: str = ""  # `split/task_id` of the row that this row repeats, or ""
    tests: tuple[str, ...] = ()  # that would make the row stronger

    def __str__(self) -> str:
        other = self.other and f" as {self.other}"
        return f"{self.kind}: {self.split}/{self.task_id}: {self.detail}{other}"
