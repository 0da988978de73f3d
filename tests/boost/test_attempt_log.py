"""The log of attempts: it continues after its last complete batch and rejects other options."""

import pytest

from cocos.boost.attempts import Attempt, AttemptLog
from cocos.files.json_lines import DataError

ATTEMPTS = [Attempt("1", "wrong", False), Attempt("1", "right", True), Attempt("1", "x", False, ("own",)),
            Attempt("1", "y", None), Attempt("1", " ", False)]  # fmt: skip


def test_a_log_continues_after_its_last_complete_batch_and_rejects_other_options(tmp_path):
    path, made_with = tmp_path / "new" / "log", {"seed": 1, "model": "m"}
    log = AttemptLog(path, made_with)
    assert not path.exists()  # a start that fails before its first batch leaves no log
    log.append(ATTEMPTS[:2])
    log.append(ATTEMPTS[2:])
    whole = path.read_bytes()
    assert AttemptLog(path, made_with).batches == [ATTEMPTS[:2], ATTEMPTS[2:]]
    path.write_bytes(whole[:-20])  # as after a power failure
    log = AttemptLog(path, made_with)
    assert log.batches == [ATTEMPTS[:2]]
    log.append(ATTEMPTS[2:])
    assert path.read_bytes() == whole
    with pytest.raises(DataError, match="was made with seed 1, not 2; remove it or choose another --output"):
        AttemptLog(path, made_with | {"seed": 2})
    path.write_text("[]\n")
    with pytest.raises(DataError, match="not a log of attempts"):
        AttemptLog(path, made_with)
