"""The runner of every command: exit statuses and one-line errors."""

import os
import subprocess
import sys

import pytest

from cocos.commands.runner import run_command
from cocos.executor import ExecutorError
from tests.support.paths import ROOT


def status_of(main) -> int | None:
    with pytest.raises(SystemExit) as caught:
        run_command(main)
    return caught.value.code


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize("result", [None, 0, 1])
def test_the_exit_status_is_the_value_that_main_returns(result):
    assert status_of(lambda: result) == result


@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError, ImportError, ExecutorError])
def test_a_user_error_prints_one_line_and_exits_with_status_2(kind, capsys, monkeypatch):
    monkeypatch.delenv("COCOS_TRACEBACK", raising=False)
    assert status_of(raising(kind("--gamma is 2;\n  give 1"))) == 2
    assert capsys.readouterr().err == "error: --gamma is 2; give 1 (COCOS_TRACEBACK=1 shows where)\n"


def test_a_user_error_keeps_its_traceback_on_request(monkeypatch):
    monkeypatch.setenv("COCOS_TRACEBACK", "1")
    with pytest.raises(ValueError, match="--gamma"):
        run_command(raising(ValueError("--gamma is 2")))


def test_a_program_error_keeps_its_traceback():
    with pytest.raises(AssertionError, match="ours"):
        run_command(raising(AssertionError("ours")))


def test_what_an_ascii_terminal_cannot_show_does_not_end_a_command():
    script = "from cocos.commands.runner import run_command; run_command(lambda: print('28.2 \u2192 97.2'))"
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=ascii_only, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "28.2 ? 97.2\n", "")


def test_ctrl_c_prints_one_word_and_exits_with_status_130(capsys):
    assert status_of(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_the_runner_imports_the_standard_library_only():
    code = "import sys; before = set(sys.modules); import cocos.commands.runner; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    names = set(done.stdout.split())
    assert {"cocos", "cocos.commands.runner"} <= names, done.stderr
    assert {name.partition(".")[0] for name in names} <= {"cocos", *sys.stdlib_module_names}
    assert not any(name.startswith("cocos.executor") for name in names)
