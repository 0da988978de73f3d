"""The summary of skipped tests at the end of a test run."""

from tests.support.skips import remedies


def test_skipped_tests_are_counted_by_remedy():
    reasons = ["public data set mbpp.jsonl is missing: make data"] * 3 + [
        "bubblewrap is not installed",
        "who knows",
    ]
    first, second, last = remedies(reasons)
    assert first.startswith("   3  make data") and second == "   1  install bubblewrap"
    assert last == "   1  cannot run on this machine; the reasons are above"
    assert remedies([]) == []
