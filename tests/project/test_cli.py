"""The command `cocos`: help, version, misspelt words, and what it imports."""

import json
import os
import shlex
import subprocess
import sys

import pytest

import cocos
from cocos.commands import COMMANDS
from cocos.files import extras
from tests.support import endpoint_server
from tests.support.commands import command, complaint, succeed
from tests.support.paths import ROOT, TOY

COCOS = (sys.executable, "-m", "cocos")
HEAVY = {"torch", "transformers", "trl", "accelerate", "datasets", "peft", "deepspeed", "numpy", "matplotlib"}

# Stands for an environment without the packages of the extras but `api`.
WITHOUT = f"""
import sys
class Without:
    def __init__(self, finder):
        self._finder = finder
        self.find_distributions = getattr(finder, 'find_distributions', lambda *args: ())
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition('.')[0] in {HEAVY!r}
        return None if hidden else self._finder.find_spec(name, path, target)
sys.meta_path = [Without(finder) for finder in sys.meta_path]
sys.argv = ['cocos', *sys.argv[1:]]
from cocos.cli import run
run()
"""


def without_torch(*words, cwd=ROOT):
    """Run `cocos` in an interpreter that finds none of the large packages."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def test_help_lists_every_command_and_version_is_the_packages():
    done = without_torch("--help")
    assert done.returncode == 0 and all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert without_torch("--version").stdout == f"cocos {cocos.__version__}\n"
    assert without_torch().returncode == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_that_needs_no_large_package(name):
    done = without_torch(name, "--help")
    if name in ("boost", "train"):  # the names of TRL's options are read from its source
        assert "trl is not installed" in done.stderr or "transformers is not installed" in done.stderr
    else:
        assert done.returncode == 0 and done.stdout.startswith("usage: "), done.stderr
        assert "Traceback" not in done.stderr
        usage, _, _ = done.stdout.partition("\n\n")
        assert usage.count("\n") <= 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evl"], "cocos has no command 'evl'; did you mean eval?"),
        (["xyzzy"], "cocos has no command 'xyzzy'; choose one of demo, prepare"),
        (["eval", "--num_turn", "3"], "unknown option: --num_turn; did you mean --num_turns?"),
        (["demo", "--output_dir", "README.md"], "--output_dir README.md is a file; give a folder"),
        (["boost_data"], "--model_name_or_path is missing"),  # an underscore is a hyphen
    ],
)
def test_a_mistake_is_one_line(words, expected):
    assert expected in complaint(*COCOS, *words)


def test_a_command_does_what_its_script_does():
    for name, script in (("eval", "test.py"), ("prepare", "scripts/prepare_data.py")):
        ours, theirs = (
            succeed(*words, "--help").stdout for words in ((*COCOS, name), (sys.executable, script))
        )
        texts = {
            text.replace(script.rpartition("/")[2], "X").replace(f"cocos {name}", "X")
            for text in (ours, theirs)
        }
        assert len(texts) == 1


@pytest.mark.processes
def test_an_endpoint_is_evaluated_and_reported_without_torch_and_matplotlib(tmp_path):
    with endpoint_server.serve() as endpoint:
        endpoint.behaviours.append(endpoint_server.text("```python\ndef f(xs):\n    return xs\n```"))
        words = ("eval", "--generator", "api", "--base_url", endpoint.base_url, "--model_name_or_path", "m")
        words += (
            "--test_data",
            "data/toy/test.jsonl",
            "--limit",
            2,
            "--protocol",
            "chat",
            "--output_dir",
            "out",
        )
        done = without_torch(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/metrics.json").read_text())["num_trajectories"] == 2
    assert "for charts: pip install" in done.stdout
    page = (tmp_path / "out/report.html").read_text()
    assert "<svg" not in page and "Self-correction" in page
    assert without_torch("report", tmp_path / "out", "--output_dir", tmp_path / "r").returncode == 0


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("eval", "--model_name_or_path", "m", "--test_data", TOY / "test.jsonl", "--output_dir", "o"), "torch"),
        (("train", "--train_data", "x", "--output_dir", "o", "--model_name_or_path", "m"), "transformers"),
        (("demo",), "torch"),
    ],
)  # fmt: skip
def test_a_missing_package_is_named_with_the_command_that_installs_it(words, needed, tmp_path):
    done = without_torch(*words, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert needed in line and f'pip install -c constraints.txt -e ".[train]" (in {ROOT})' in line


def test_a_missing_extra_of_an_installed_package_is_found_by_pip_without_an_index(monkeypatch, tmp_path):
    clone = extras.install_command("page")
    monkeypatch.setattr(extras, "is_clone", lambda: False)
    installed = extras.install_command("page")
    assert installed == 'pip install "cocos-lab[page]"' and '-e ".[page]"' in clone
    pip = (sys.executable, "-m", *shlex.split(installed), "--dry-run", "--no-index", "--no-build-isolation")
    done = command(*pip, cwd=tmp_path)
    assert done.returncode == 0 and "streamlit" in done.stdout, "the extra is read from the installation"


@pytest.mark.parametrize("words", [("doctor",), ("eval", "--help"), ("--help",)])
def test_a_closed_pipe_ends_a_command_without_a_traceback(words):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*COCOS, *words],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    os.close(write_end)
    assert done.returncode in (141, 0) and done.stderr == ""  # argparse ignores that its help was not read
    assert done.returncode == 141 or ("--help" in words and len(words) > 1)
