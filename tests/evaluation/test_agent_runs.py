"""Runs of test.py with agents: known scores on HumanEvalFix, options, and the report."""

import json

import pytest

from cocos.assembly.prompts import prompt_protocol
from cocos.assembly.rules import conditions, make_rules
from cocos.config.eval_config import EvalConfig
from cocos.problems import load_problems, save_problems
from cocos.report.finished_runs import load_runs
from cocos.report.html_report import trajectory_rows
from cocos.report.tables import bugs_table
from tests.support.data import converted
from tests.support.evaluation import evaluated, rows

AGENTS = ("reflect", "react", "tools")


@pytest.fixture(scope="module")
def humanevalfix(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "humanevalfix.jsonl"
    save_problems([problem for _, problem in converted("humanevalfix")], path)
    return path


def run(path, folder, agent, source, **options):
    return evaluated(
        test_data=str(path),
        output_dir=str(folder),
        agent=agent,
        answers=[source] * 5,
        protocol="fix",
        num_turns=5,
        batch_size=200,
        executor_workers=2,
        program_timeout_s=2.0,  # three of the buggy programs never end
        **options,
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    "agent", ["reflect", *(pytest.param(name, marks=pytest.mark.nightly) for name in AGENTS[1:])]
)
def test_references_score_1_and_buggy_programs_0_until_the_agent_gives_up(agent, humanevalfix, tmp_path):
    metrics = run(humanevalfix, tmp_path / "references", agent, "references")
    assert metrics["num_scored"] == 164
    assert [metrics["metrics"][f"acc_t{t}"]["value"] for t in range(1, 6)] == [1.0] * 5
    metrics = run(humanevalfix, tmp_path / "buggy", agent, "buggy")
    assert metrics["num_scored"] == 164
    assert [metrics["metrics"][f"acc_t{t}"]["value"] for t in range(1, 6)] == [0.0] * 5
    path = {
        "reflect": ["draft", "repeat", "repeat"],  # the first one repeats the problem's own program
        "react": ["propose"] * 3,
        "tools": ["run_code"] * 4,
    }[agent]
    for row in rows(tmp_path / "buggy"):
        assert [turn["node"] for turn in row["turns"] if "node" in turn] == path
        assert [turn["is_carried"] for turn in row["turns"]] == [False] * len(path) + [True] * (5 - len(path))
        assert row["agent"] == agent and row["max_repeats"] == 3


def test_the_report_has_the_nodes_the_kinds_of_bugs_and_a_heading_of_its_own(humanevalfix, tmp_path):
    few = tmp_path / "few.jsonl"
    save_problems(load_problems(humanevalfix)[:3], few)
    metrics = run(few, tmp_path / "out", "reflect", "buggy")
    assert (metrics["agent"], metrics["temperature"]) == ("reflect", [0.0, 0.45, 0.65, 0.85, 0.9])
    (tmp_path / "out/metrics.json").write_text(json.dumps(metrics))
    runs = load_runs([tmp_path / "out"])
    assert runs[0].conditions.startswith("the agent reflect and given answers")
    [first, *_] = trajectory_rows(runs, {})
    assert [turn.get("node") for turn in first["turns"]] == ["draft", "repeat", "repeat", None, None]
    assert sum(int(row[2]) for row in bugs_table(runs).rows) == 3


def options(**given):
    return EvalConfig(**{"model_name_or_path": "m", "test_data": "t", "output_dir": "o", **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"agent": "react", "feedback": "error"}, "--agent react has its own feedback"),
        ({"agent": "react", "early_stop": True}, "leave out --feedback, --early_stop and --on_repeat"),
        ({"agent": "tools", "visible_tests": 0}, "--agent tools needs visible tests"),
        ({"agent": "reflect", "max_repeats": 0}, "--max_repeats is 0; give 1 or more"),
        ({"feedback_failures": 2}, "--feedback_failures needs --feedback error"),
    ],
)
def test_options_that_contradict_an_agent_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        options(**given)


def test_temperatures_are_the_agents_unless_they_are_given():
    assert options().temperatures == [0.0]
    assert options(agent="reflect", num_turns=3).temperatures == [0.0, 0.45, 0.65]
    assert options(agent="tools", num_turns=10).temperatures == [0.7, 0.5, 0.3]
    assert conditions(options(agent="tools", temperature=[0.1]))["temperature"] == [0.1]
    assert make_rules(options(agent="react", feedback_failures=3), [0.0]).feedback_failures == 3


def test_a_system_prompt_is_recorded_by_name_and_checksum_and_needs_a_chat(tmp_path, humanevalfix):
    file = tmp_path / "words.txt"
    file.write_text("Repair it.\n")
    given = options(system_prompt=str(file), protocol="chat")
    assert prompt_protocol(given).system == "Repair it."
    assert str(conditions(given)["system_prompt"]).startswith("words.txt (")
    with pytest.raises(ValueError, match="--system_prompt nowhere"):
        prompt_protocol(options(system_prompt="nowhere.txt", protocol="chat"))
    with pytest.raises(
        ValueError, match="--system_prompt needs a chat; choose --protocol chat, repair or fix"
    ):
        evaluated(
            test_data=str(humanevalfix), output_dir=str(tmp_path / "out"), answers=["buggy"], num_turns=1,
            protocol="cocos", system_prompt=str(file), limit=1,
        )  # fmt: skip
