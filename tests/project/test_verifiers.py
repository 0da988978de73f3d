"""The environment of examples/verifiers_cocos, played by verifiers and compared with `cocos eval`."""

import json
import os
import subprocess
import tomllib

import pytest

from cocos.problems import Problem, save_problems
from tests.support import endpoint_server
from tests.support.evaluation import evaluated, rows
from tests.support.paths import ROOT

PYTHON = os.environ.get("COCOS_VERIFIERS_PYTHON")
EXAMPLE = ROOT / "examples/verifiers_cocos"
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{EXAMPLE}"}
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.processes,
    pytest.mark.skipif(not PYTHON, reason="COCOS_VERIFIERS_PYTHON names no interpreter with verifiers"),
]

RIGHT, WRONG = "def f(x):\n    return 2 * x", "def f(x):\n    return x + 2"
# The answer to a first prompt, and to every other one; None: the endpoint fails.
ANSWERS = {
    "right": (RIGHT, RIGHT),
    "repaired": (WRONG, RIGHT),
    "spoiled": (RIGHT, WRONG),
    "lost": (WRONG, None),
    "silent": ("", RIGHT),
    "hostile": ("import os\nos._exit(0)", "class E:\n    __eq__ = lambda *_: True\n\ndef f(x):\n    return E()"),
    "long": (f"{RIGHT}\n\nprint(", RIGHT),
}  # fmt: skip
PROBLEMS = [
    Problem(name, f"Double a {name} number.", ("assert f(2) == 4",), hidden_test_list=("assert f(3) == 6",))
    for name in ANSWERS
] + [Problem("told", "Double a repaired number.", ("assert f(2) == 4", "assert f(3) == 6"))]


def behave(handler, request):
    """Answer as ANSWERS says."""
    messages = request["body"]["messages"]
    name = messages[0]["content"].split("Double a ")[1].split()[0]
    is_told = len(messages) > 1 or "# not" in messages[0]["content"]
    code = ANSWERS[name][is_told]
    if code is None:
        endpoint_server.status(400)(handler, request)
    elif name == "long" and not is_told:  # truncated, and a fence without an end
        endpoint_server.text(f"```python\n{code}", finish_reason="length")(handler, request)
    else:
        endpoint_server.text(code and f"```python\n{code}\n```")(handler, request)


def traces(folder, data, base_url, *words):
    """Play the problems with vf-eval; return the traces by task_id."""
    command = [
        os.path.join(os.path.dirname(PYTHON), "vf-eval"),
        *words,
        "--env.taskset.data",
        data,
        "--model",
        "m",
    ]
    command += ["--client.base-url", base_url, "--no-rich", "--output-dir", folder]
    done = subprocess.run(list(map(str, command)), env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    [file] = folder.glob("*/traces.jsonl")
    episodes = [json.loads(line) for line in file.read_text().splitlines()]
    return {episode["task"]["data"]["id"]: episode["traces"][0] for episode in episodes}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({}, ()),
        ({"feedback": "error", "early_stop": True}, ("--env.feedback", "error", "--env.early-stop")),
        (
            {"carry": "counterexamples", "feedback": "error", "visible_tests": 1},
            ("--env.carry", "counterexamples", "--env.feedback", "error", "--env.taskset.visible-tests", 1),
        ),
    ],
)
def test_verifiers_and_cocos_eval_ask_and_score_the_same(rules, words, tmp_path):
    data = tmp_path / "problems.jsonl"
    save_problems(PROBLEMS, data)
    with endpoint_server.serve() as endpoint:
        endpoint.behaviours.append(behave)
        ours = evaluated(
            **{"model_name_or_path": "m", "test_data": str(data), "output_dir": str(tmp_path / "ours")},
            **{"generator": "api", "base_url": endpoint.base_url, "protocol": "repair", "num_turns": 3},
            **{"max_infra_share": 1.0, "max_retries": 0},
            **rules,
        )
        asked = {json.dumps(body["messages"]) for body in endpoint.bodies}
        endpoint.requests.clear()
        theirs = traces(tmp_path / "theirs", data, endpoint.base_url, "@", EXAMPLE / "eval.toml", *words)
        assert {json.dumps(body["messages"]) for body in endpoint.bodies} == asked
    assert len(theirs) == len(PROBLEMS)
    for row in rows(tmp_path / "ours"):
        trace, turns = theirs[row["task_id"]], row["turns"]
        if any(turn["infra_error"] for turn in turns):
            assert (trace["ok"], trace["rewards"], trace["metrics"]) == (False, {}, {})
            continue
        statuses = [[verdict["status"] for verdict in turn["verdicts"]] for turn in turns]
        assert trace["ok"] and trace["info"]["verdicts"] == statuses
        assert [reward["score"] for reward in trace["rewards"].values()] == [turn["reward"] for turn in turns]
        assert [trace["metrics"][f"acc_t{t}"] for t in (1, 2, 3)] == [turn["is_right"] for turn in turns]
    scored = [trace["metrics"] for trace in theirs.values() if trace["ok"]]
    assert len(scored) == ours["num_scored"]
    for name in scored[0]:
        mean = sum(metrics[name] for metrics in scored) / len(scored)
        assert mean == pytest.approx(ours["metrics"][name]["value"]), name


def test_what_an_outage_and_a_cheat_earn(tmp_path):
    data = tmp_path / "problems.jsonl"
    save_problems(PROBLEMS, data)
    with endpoint_server.serve() as endpoint:
        endpoint.behaviours.append(behave)
        words = ("verifiers-cocos", "--no-push", "--env.num-turns", 3, "--env.reward", "binary")
        played = traces(tmp_path, data, endpoint.base_url, *words)
    assert [error["type"] for error in played["lost"]["errors"]] == ["ProviderError", "EnvError"]
    weighted = {
        name: sum(reward["score"] * reward["weight"] for reward in trace["rewards"].values())
        for name, trace in played.items()
        if trace["ok"]
    }
    # gamma = 1/2 and T = 3: R = r_1 (1/4 - 1/2) + r_2 (1/2 - 1) + r_3; a truncated answer has no program
    assert weighted == {
        **{"right": 0.25, "repaired": 0.5, "told": 0.5, "silent": 0.5, "long": 0.5},
        **{"spoiled": -0.25, "hostile": 0.0},
    }


def test_the_configuration_of_prime_rl_names_options_that_exist():
    orchestrator = tomllib.loads((EXAMPLE / "rl.toml").read_text())["orchestrator"]
    blocks = [source["env"] for part in ("train", "eval") for source in orchestrator[part]["source"]]
    code = (
        "import json, sys, verifiers.v1 as vf\nfor env in json.loads(sys.argv[1]): vf.resolve_env_config(env)"
    )
    done = subprocess.run(
        [PYTHON, "-c", code, json.dumps(blocks)], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert len(blocks) == 2 and done.returncode == 0, done.stderr[-3000:]


def test_a_program_that_was_not_executed_leaves_no_reward():
    code = """
import verifiers.v1 as vf
from cocos.executor import ExecutionResult, Status, Verdict
from cocos.generation import Completion
from cocos.problems import Problem
from cocos.trajectories import Trajectory, Turn
env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "verifiers-cocos"}}))
results = [ExecutionResult((Verdict(Status.PASSED),)), ExecutionResult((), "the worker died")]
turns = tuple(Turn((), Completion((), ""), "", result) for result in results)
task = vf.TraceTask(type="ProblemTask", data=vf.TaskData())
trace = vf.Trace(task=task, agent=vf.AgentInfo(config=vf.AgentConfig()))
try:
    env.score(trace, Trajectory(Problem("1", "t", ("assert True",)), turns=turns))
except vf.EnvError as error:
    print(error, trace.rewards, trace.metrics)
"""
    done = subprocess.run([PYTHON, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stdout == "a program was not executed, so there is no reward: the worker died {} {}\n", (
        done.stderr
    )
