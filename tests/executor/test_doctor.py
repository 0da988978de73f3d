"""`python -m cocos.executor doctor` tries each promise of each level and prints what holds."""

import sys

import pytest

from cocos.executor import Executor
from cocos.executor.__main__ import main
from cocos.executor.doctor import broken_promises
from cocos.executor.promises import PROMISES
from cocos.executor.sandboxes import levels, rlimits
from tests.support.executor import offered
from tests.support.ordinary_user import run_python

pytestmark = pytest.mark.processes
DOCTOR = "import sys\nfrom cocos.executor.doctor import doctor\nsys.exit(doctor())"


def rows(text: str) -> dict[str, dict[str, str]]:
    """Return the printed table: for each promise, the cell of each level."""
    lines = text.splitlines()
    [heading] = [line.split() for line in lines if line.startswith("   ")]
    table = {}
    for promise in PROMISES:
        [line] = [line for line in lines if line.startswith(promise.text + " ")]
        table[promise.text] = dict(zip(heading, line.removeprefix(promise.text).split(), strict=True))
    return table


def assert_promises_hold(table: dict[str, dict[str, str]]) -> None:
    for promise in PROMISES:
        for level, cell in table[promise.text].items():
            assert cell in (("yes",) if level in promise.levels else ("yes", "no")), (promise.text, level)


def test_every_level_keeps_its_promises(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    table = rows(text)
    assert_promises_hold(table)
    assert "Landlock" in text and "kernel" in text
    # Without isolation these programs reach their victims: the attempts themselves work.
    reached = [promise for promise, cells in table.items() if cells["rlimits"] == "no"]
    assert len(reached) >= 8


def test_every_level_keeps_its_promises_to_an_ordinary_user():
    answer = run_python(DOCTOR)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert_promises_hold(rows(answer.stdout))


def test_a_broken_promise_of_the_best_level_is_named_and_is_a_failure(monkeypatch, capsys):
    """A level that claims to be `seccomp` but isolates nothing."""
    level = levels.Level("seccomp", lambda: None, rlimits.launch)
    monkeypatch.setattr(levels, "LEVELS", (level,))
    monkeypatch.setattr("cocos.executor.doctor.LEVELS", (level,))
    monkeypatch.setattr("cocos.executor.pool.self_test", lambda *arguments: None)  # it would refuse the level
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "seccomp breaks its promise that private files cannot be read" in text
    assert rows(text)["private files cannot be read"] == {"seccomp": "BROKEN"}


def test_the_victims_are_removed(tmp_path, monkeypatch):
    if not (level := offered("namespaces", "seccomp")):
        pytest.skip("no isolation level is offered here")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Executor(num_workers=1, sandbox=level) as executor:
        assert broken_promises(executor).keys().isdisjoint(p for p in PROMISES if level in p.levels)
    assert list(tmp_path.iterdir()) == []


def test_bubblewrap_says_itself_why_it_does_not_start(tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: Failed to make / slave: Invalid argument' >&2\nexit 1\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    code = "from cocos.executor.sandboxes.namespaces import missing_reason; print(missing_reason())"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = run_python(code, as_root=True)
    assert done.stdout.strip() == (
        "bubblewrap does not work here (bwrap: Failed to make / slave: Invalid argument)"
    ), done.stderr


def test_a_sandbox_that_ends_while_it_starts_leaves_no_process(tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        "os.write(int(sys.argv[sys.argv.index('--info-fd') + 1]), b'{\"child-pid\": 999999999}')\n"
        "time.sleep(60)\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    code = (  # in a process of its own: the executors that tests share replace workers at any time
        "import os\n"
        "from cocos.executor import Limits\n"
        "from cocos.executor.sandboxes import namespaces\n"
        "from cocos.executor.sandboxes.interpreter import Interpreter\n"
        "from tests.support.executor import processes_below\n"
        "try:\n"
        "    namespaces.launch(Limits(), Interpreter())\n"
        "except FileNotFoundError as error:\n"
        "    print('999999999' in str(error), processes_below(os.getpid()) == [os.getpid()])"
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = run_python(code, as_root=True)
    assert done.stdout.split() == ["True", "True"], done.stderr
