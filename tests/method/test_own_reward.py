"""`--reward module:function`: what it returns is the reward, and what is wrong with it is one line."""

import sys

import pytest

from cocos.assembly.objective import load_reward
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.trajectories import Trajectory, Turn

PROBLEM = Problem(task_id="7", text="Double.", test_list=("assert f(1) == 2",), code="")
FAILED = ExecutionResult((Verdict(Status.FAILED),))
OUTAGE = ExecutionResult((), infra_error="no worker")


def trajectory(*results):
    turns = [Turn((), Completion((), "x"), "a = 1", result) for result in results]
    return Trajectory(PROBLEM, turns=tuple(turns))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes the body of `reward(t)` into a module of its own, and loads it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(body):
        name = f"own_module_{tmp_path.name}"  # modules of different names, because imports are kept
        (tmp_path / f"{name}.py").write_text(f"import math\ndef reward(t):\n    {body}\n")
        return load_reward(f"{name}:reward")

    return write


def test_the_function_of_a_module_in_the_current_folder_gives_a_number_per_turn(written):
    reward = written("return [0.25, 2]")
    assert reward(trajectory(FAILED, FAILED)) == [0.25, 2.0]


def test_a_turn_that_the_executor_could_not_run_has_no_reward_whatever_the_function_says(written):
    assert written("return [1.0, None]")(trajectory(OUTAGE, FAILED)) == [None, None]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [1.0]", "returned 1 rewards for 2 turns; return one number per turn"),
        ("return [1.0, 1.0, 1.0]", "returned 3 rewards for 2 turns"),
        ("return 1.0", "returned float; return a list with one number per turn"),
        ("return 'ab'", "returned str; return a list"),
        ("return None", "returned NoneType; return a list"),
        ("return [0.0, math.nan]", "the reward of turn 2 is nan (float); return a number from -1e+09 to 1e+09"),
        ("return [1e308, -1e308]", "the reward of turn 1 is 1e+308 (float); return a number from"),
        ("return [0, 10 ** 400]", "the reward of turn 2 is 1000000"),
        ("return [-math.inf, 0.0]", "the reward of turn 1 is -inf (float)"),
        ("return ['1', 0.0]", "the reward of turn 1 is '1' (str)"),
        ("return [1j, 0.0]", "the reward of turn 1 is 1j (complex)"),
        ("return [t.absent]", "AttributeError: 'Trajectory' object has no attribute 'absent' (own_module"),
        ("return [1 / 0]", "ZeroDivisionError: division by zero (own_module"),
    ],
)  # fmt: skip
def test_a_wrong_result_names_function_problem_and_turn(written, body, words):
    reward = written(body)
    with pytest.raises(ValueError) as caught:
        reward(trajectory(FAILED, FAILED))
    assert str(caught.value).startswith(f"--reward {reward.name}, problem '7': ")
    assert words in str(caught.value)


def test_numbers_of_numpy_are_numbers(written):
    import numpy as np

    reward = written("import numpy as np; return [np.float32(0.5), np.int64(1)]")
    assert np.allclose(reward(trajectory(FAILED, FAILED)), [0.5, 1.0])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (":reward", "give module:function"),
        ("module:", "give module:function"),
        ("no_such_module:reward", "there is no module no_such_module; it is looked for in "),
        ("json.absent:reward", "there is no module json.absent"),
        ("here/rewards.py:short", "a path is no module; start in the folder of the file and give rewards:short"),
        ("rewards.py:short", "give rewards:short"),
        ("textwrap:absent", "textwrap.py has no function absent; it has dedent, fill"),
        ("textwrap:TextWrapper.fill", "has no function TextWrapper.fill"),
        ("sys:maxsize", "sys has no function maxsize"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_named(name, words):
    with pytest.raises(ValueError) as caught:
        load_reward(name)
    assert str(caught.value).startswith(f"--reward {name}: ") and words in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def reward(t) return 1", "SyntaxError: expected ':' (broken_0.py, line 1); mend the module"),
        ("import absent_package", "broken_1 needs absent_package, which is not installed"),
        ("1 / 0", "ZeroDivisionError: division by zero (broken_2.py, line 1); mend the module"),
    ],
)
def test_a_module_that_fails_is_named_with_its_line(source, words, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    name = next(f"broken_{n}" for n in range(3) if f"broken_{n}" in words)
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(ValueError) as caught:
        load_reward(f"{name}:reward")
    assert words in str(caught.value)
