"""The programs of cocos/executor/README.md and docs/executor.md, run as they stand there, outside of the clone."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path

import pytest

from tests.support.commands import command
from tests.support.executor import offered
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        not offered("docker", "namespaces", "seccomp"), reason="the page asks for level seccomp"
    ),
]

# pip takes a clone on this path for an installed package.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
PAGE = "".join((ROOT / name).read_text() for name in ("cocos/executor/README.md", "docs/executor.md"))
# The first line of each program is a comment with its name.
PROGRAMS = {
    code.split()[1]: code for code in re.findall(r"```python\n(# \w+\.py\n.*?\n)```\n", PAGE, re.DOTALL)
}
VERIFIERS_PYTHON = os.environ.get("COCOS_VERIFIERS_PYTHON")


def run_program(name, folder):
    """Run a program of the page in a folder, with the modules of this clone; return what it prints last."""
    (folder / name).write_text(PROGRAMS[name])
    done = command(sys.executable, name, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-2:]


def expected_statuses():
    """Return the statuses of the 1,000 programs, counted from what the page says of them.

    Of three neighbours the second is wrong for x = 5 only: 5 n + 1 is not 5 + n, unless n is 1. The wrong ones are
    333 - 1 (n = 1) - 1 (n = 10 is replaced). Numbers 10, 20 and 30 are endless, end the process, and lie.
    """
    wrong = 333 - 2
    right = 1000 - wrong - 3
    return Counter(passed=2 * right + wrong, failed=wrong, timeout=1, not_run=1, error=4)


def assert_two_rewards(lines):
    """Check the mean rewards of two updates: of eight programs with five tests each, so multiples of 1/40."""
    rewards = json.loads(lines[-1])
    assert len(rewards) == 2
    # The program rounds to three digits.
    assert all(0 <= reward <= 1 and abs(reward * 40 - round(reward * 40)) < 0.03 for reward in rewards)


def test_the_page_has_the_programs_that_are_tested_here():
    names = "one_program make_programs judge_programs standard_input train_with_trl code_environment in_an_event_loop"
    assert list(PROGRAMS) == [f"{name}.py" for name in names.split()]
    assert len(PROGRAMS) == PAGE.count("```python\n")


def test_the_first_program_prints_what_its_comment_says(tmp_path):
    assert run_program("one_program.py", tmp_path) == ["1 expected 4, got 3"]


def test_a_program_of_standard_input_is_judged_by_what_it_prints(tmp_path):
    assert run_program("standard_input.py", tmp_path) == [r"1 expected '10\n', got '8\n'"]


def test_a_thousand_programs_of_a_json_file_are_judged(tmp_path):
    run_program("make_programs.py", tmp_path)
    assert run_program("judge_programs.py", tmp_path)[0] == "666 of 1000 programs pass every test"
    rows = json.loads((tmp_path / "verdicts.json").read_text())
    assert Counter(status for row in rows for status in row["verdicts"]) == expected_statuses()
    assert [rows[n]["passed"] for n in (0, 1, 4, 10, 20, 30)] == [2, 2, 1, 0, 0, 0]


def test_trl_trains_with_the_reward_function(tmp_path):
    assert_two_rewards(run_program("train_with_trl.py", tmp_path))


def test_programs_run_in_an_event_loop(tmp_path):
    # Right for every third number: number % 3 is 1 where number + number % 3 is number + 1.
    assert run_program("in_an_event_loop.py", tmp_path)[-1] == "100 of 300 programs pass"


@pytest.mark.skipif(not VERIFIERS_PYTHON, reason="COCOS_VERIFIERS_PYTHON names no interpreter with verifiers")
def test_verifiers_scores_answers_with_the_environment(tmp_path):
    (tmp_path / "code_environment.py").write_text(PROGRAMS["code_environment.py"])
    done = subprocess.run(
        [VERIFIERS_PYTHON, "code_environment.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [1.0, 0.5]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this clone, built from a copy of the files that git tracks."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    words = ["tar", "--create", "--null", "--files-from=-", "--file", folder / "source.tar"]
    subprocess.run(words, cwd=ROOT, input=tracked, check=True)
    (folder / "source").mkdir()
    subprocess.run(["tar", "-x", "-f", folder / "source.tar", "-C", folder / "source"], check=True)
    words = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
        folder / "source",
    ]
    subprocess.run([sys.executable, "-m", "pip", *words], env=ENVIRONMENT, check=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def fresh_environment(folder, wheel):
    """Return the interpreter of a new environment that has the wheel and pyseccomp, without a registry."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin/python"
    words = ["--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, "-m", "pip", *words], env=ENVIRONMENT, check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for file in importlib.metadata.files("pyseccomp"):
        (packages / file).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(file.locate(), packages / file)
    return python, packages


def run_in(python, name, folder):
    """Run a program of the page with an interpreter that knows nothing of this clone; return what it prints."""
    (folder / name).write_text(PROGRAMS[name])
    environment = ENVIRONMENT | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([python, name], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()


@pytest.mark.nightly
def test_the_wheel_alone_runs_the_programs_in_an_empty_environment(wheel, tmp_path):
    python, packages = fresh_environment(tmp_path / "venv", wheel)
    code = (
        "import sys; from cocos.executor import Executor, Limits, Program; import cocos\n"
        "third_party = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(cocos.__file__, *sorted(third_party - {'__main__'}))"
    )
    seen = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True
    )
    assert seen.stdout.split() == [str(packages / "cocos/__init__.py"), "cocos"]
    run_in(python, "make_programs.py", tmp_path)
    assert run_in(python, "judge_programs.py", tmp_path)[0] == "666 of 1000 programs pass every test"
    assert run_in(python, "in_an_event_loop.py", tmp_path)[-1] == "100 of 300 programs pass"


@pytest.mark.nightly
def test_trl_trains_with_the_wheel_outside_of_the_clone(wheel, tmp_path):
    python, packages = fresh_environment(tmp_path / "venv", wheel)
    # TRL and what it needs, from this environment; the wheel comes first.
    [installed] = {
        str(Path(str(importlib.metadata.distribution(name).locate_file("")))) for name in ("trl", "torch")
    }
    (packages / "installed.pth").write_text(installed + "\n")
    assert_two_rewards(run_in(python, "train_with_trl.py", tmp_path))
