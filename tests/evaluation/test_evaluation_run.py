"""Runs of test.py: interruption, resumption, several processes, and changed configurations."""

import json
import os
import random
import signal
import sys
import time
from dataclasses import replace
from importlib.metadata import version

import pytest

from cocos.executor import ExecutorError
from cocos.files.durable import FolderLock, save_json
from cocos.files.json_lines import DataError
from cocos.generation import Completion
from cocos.problems import Problem, load_problems, save_problems
from cocos.report.finished_runs import load_runs
from tests.support.commands import start, succeed, succeed_as_two_ranks
from tests.support.evaluation import Drawing, adding, evaluated, rows
from tests.support.executor import offered
from tests.support.paths import TOY

pytestmark = pytest.mark.processes  # every evaluation starts an executor of its own


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "adding.jsonl"
    save_problems(adding(200), path)
    return path


def options(problems, folder, **more):
    return {
        "test_data": str(problems),
        "output_dir": str(folder),
        "model_name_or_path": "drawing",
        "batch_size": 4,
        "num_turns": 3,
        "temperature": [0.8, 0.2],
        "early_stop": True,
        "feedback": "error",
        **more,
    }


# -- interrupted --


EVALUATION = """
import json, sys
from tests.support.evaluation import Drawing, evaluated
evaluated(Drawing(), **json.loads(sys.argv[1]))
"""
AGENT = {"agent": "reflect", "feedback": "none", "early_stop": False, "temperature": [0.8, 0.9]}


@pytest.mark.parametrize(
    ("player", "num_kills"),
    [pytest.param({}, 8, id="turn loop"), pytest.param(AGENT, 4, id="agent", marks=pytest.mark.nightly)],
)
def test_a_run_killed_often_and_resumed_has_the_rows_of_a_run_that_was_not_interrupted(
    problems, tmp_path, player, num_kills
):
    whole = evaluated(Drawing(), **options(problems, tmp_path / "whole", **player))
    expected = rows(tmp_path / "whole")
    # 1 of 4 programs is right
    assert len(expected) == 200 and 0.15 < whole["metrics"]["acc_t1"]["value"] < 0.35

    folder, draw = tmp_path / "killed", random.Random(5)
    samples = folder / "samples.jsonl"
    given = json.dumps(options(problems, folder, resume=True, **player))
    words = (sys.executable, "-c", EVALUATION, given)

    def size() -> int:
        return samples.stat().st_size if samples.exists() else 0

    kills, torn, seen = 0, 0, [0]
    while kills < num_kills:
        running = start(*words)
        until, enough = time.monotonic() + draw.uniform(0, 0.6), size() + draw.randint(1, 20_000)
        by_clock = draw.random() < 0.3  # some are killed while they start, the others while they write
        while time.monotonic() < until if by_clock else size() < enough:
            time.sleep(0.001)
            assert running.is_running(), "finished before the last kill"
        os.kill(running.pid, signal.SIGKILL)
        assert running.finish().returncode == -signal.SIGKILL
        kills += 1
        if size() and draw.random() < 0.5:  # imitates a last row that did not reach the disk completely
            os.truncate(samples, max(0, size() - draw.randint(1, 60)))
            torn += 1
        seen.append(size())
    succeed(*words)
    assert torn > num_kills / 6 and len(set(seen)) > num_kills / 2
    assert rows(folder) == expected


class Flaky(Drawing):
    """An endpoint that fails for some problems while it is down; counts its prompts."""

    def __init__(self, is_down):
        super().__init__()
        self.is_down, self.num_prompts = is_down, 0

    def generate(self, prompts, temperature, seeds=None):
        self.num_prompts += len(prompts)
        completions = super().generate(prompts, temperature, seeds)
        if not self.is_down:
            return completions
        return [
            Completion((), "", error="503") if seed % 8 == 3 else c
            for c, seed in zip(completions, seeds, strict=True)
        ]


def test_only_trajectories_with_an_infrastructure_failure_are_played_again(problems, tmp_path):
    given = options(problems, tmp_path / "out", limit=80, max_infra_share=1.0)
    broken = evaluated(Flaky(is_down=True), **given)
    before = rows(tmp_path / "out")
    failed = [row["task_id"] for row in before if row["turns"][-1]["infra_error"] == "503"]
    assert broken["num_scored"] == 80 - len(failed) and 5 < len(failed) < 40
    assert all(len(row["turns"]) == 3 for row in before if row["task_id"] not in failed)
    repaired = Flaky(is_down=False)
    assert evaluated(repaired, **given, resume=True)["num_scored"] == 80
    after = rows(tmp_path / "out")
    assert [row for row in after if row["task_id"] not in failed] == [
        row for row in before if row["task_id"] not in failed
    ]
    evaluated(Drawing(), **{**given, "output_dir": str(tmp_path / "whole")})
    assert after == rows(tmp_path / "whole")
    again = Flaky(is_down=False)
    evaluated(again, **given, resume=True)
    assert again.num_prompts == 0 < repaired.num_prompts


def test_an_endpoint_is_sent_only_the_prompts_of_missing_trajectories(problems, tmp_path):
    given = options(problems, tmp_path, limit=80, max_infra_share=1.0, num_turns=1, generator="api")
    given["temperature"] = [0.8]
    broken = evaluated(Flaky(is_down=True), **given)
    repaired = Flaky(is_down=False)
    evaluated(repaired, **given, concurrency=2, resume=True)  # concurrency may change
    assert repaired.num_prompts == 80 - broken["num_scored"] > 0


# -- the configuration --


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"num_turns": 2}, "num_turns was 3, is 2"),
        ({"temperature": [0.8]}, r"temperature was \[0.8, 0.2\], is \[0.8\]"),
        ({"feedback": "none", "seed": 1}, "feedback was 'error', is 'none'; seed was 42, is 1"),
        ({"visible_tests": 1}, "visible_tests was None, is 1"),
    ],
)
def test_a_run_is_not_resumed_with_other_options_unless_they_are_accepted(problems, tmp_path, changed, words):
    given = options(problems, tmp_path, limit=4)
    evaluated(Drawing(), **given)
    made = rows(tmp_path)
    with pytest.raises(ValueError, match=words):
        evaluated(Drawing(), **{**given, **changed}, resume=True)
    evaluated(Drawing(), **{**given, **changed}, resume=True, accept_changes=True)
    assert rows(tmp_path) == made  # nothing was missing
    run = json.loads((tmp_path / "run.json").read_text())
    assert len(run["changes"]) == len(changed)


def test_programs_can_import_the_packages_that_run_json_records(tmp_path):
    data, code = tmp_path / "sums.jsonl", "import numpy\ndef f(xs):\n    return int(numpy.sum(xs))"
    save_problems([Problem("1", "Add.", ("assert f([1, 2]) == 3",), code)], data)
    level = offered("namespaces", "seccomp", "rlimits")  # an image of docker may have another Python
    given = {"test_data": str(data), "answers": ["references"], "num_turns": 1, "sandbox": level}
    without = evaluated(**given, output_dir=str(tmp_path / "without"))
    assert without["errors"] == [{"ModuleNotFoundError": 1}]
    given |= {"program_packages": ["numpy"], "program_memory_mb": 2048, "output_dir": str(tmp_path / "with")}
    assert evaluated(**given)["metrics"]["acc_t1"]["value"] == 1.0
    record = json.loads((tmp_path / "with/run.json").read_text())
    assert record["packages"] == [f"numpy {version('numpy')}"]
    record["packages"] = ["numpy 1.0"]
    save_json(record, tmp_path / "with/run.json")
    with pytest.raises(ValueError, match=r"packages was \['numpy 1.0'\], is \['numpy "):
        evaluated(**given, resume=True)


def test_the_time_limit_of_a_program_follows_the_reference_of_its_problem(tmp_path):
    busy = "def f():\n    import time\n    while time.process_time() < {}:\n        pass\n    return 1"
    slow = Problem("slow", "Wait.", ("assert f() == 1",), busy.format(0.3), buggy_code=busy.format(1.2))
    same = replace(slow, task_id="same tests", code="def f(): return 1")
    fast = replace(same, task_id="fast", test_list=("assert f() < 2",))
    save_problems([slow, same, fast], tmp_path / "data.jsonl")
    given = {"test_data": str(tmp_path / "data.jsonl"), "answers": ["buggy"], "num_turns": 1}
    assert evaluated(**given, output_dir=str(tmp_path / "a"))["num_timeouts"] == 0
    # 30 x 0.3 s allow what 30 x nearly 0 s, at least 1 s, do not
    assert (
        evaluated(**given, output_dir=str(tmp_path / "b"), program_timeout_factor=30.0)["num_timeouts"] == 1
    )
    assert [row["task_id"] for row in rows(tmp_path / "b") if row["turns"][0]["is_right"]] == [
        "slow",
        "same tests",
    ]


def without_last_row(folder):
    path = folder / "samples.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def test_a_resumed_run_keeps_its_isolation_level_though_auto_would_choose_another(problems, tmp_path, capsys):
    given = options(problems, tmp_path, limit=4)
    evaluated(Drawing(), **given, sandbox="rlimits")
    without_last_row(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    record["options"]["sandbox"] = "auto"  # as on a machine that offered no better level
    save_json(record, tmp_path / "run.json")
    evaluated(Drawing(), **given, resume=True)
    line = f"isolation level rlimits, as in {tmp_path}/run.json; --sandbox auto would now choose "
    assert line in capsys.readouterr().out
    assert {turn["isolation"] for row in rows(tmp_path) for turn in row["turns"]} == {"rlimits"}
    assert json.loads((tmp_path / "run.json").read_text())["isolation"] == "rlimits"


def test_a_run_whose_isolation_level_is_not_offered_any_more_says_so_with_the_remedy(
    problems, tmp_path, monkeypatch
):
    given = options(problems, tmp_path, limit=4)
    evaluated(Drawing(), **given)
    record = json.loads((tmp_path / "run.json").read_text())
    save_json(record | {"isolation": "docker"}, tmp_path / "run.json")
    monkeypatch.setenv("SANDBOX_DOCKER_IMAGE", "no-such-image")
    with pytest.raises(
        ExecutorError, match=r"has isolation level docker: .*; to continue it at another level"
    ):
        evaluated(Drawing(), **given, resume=True)
    changed = {**given, "sandbox": "rlimits"}
    with pytest.raises(ValueError, match="isolation was 'docker', is 'rlimits'"):
        evaluated(Drawing(), **changed, resume=True)
    evaluated(Drawing(), **changed, resume=True, accept_changes=True)


def test_a_run_is_not_resumed_on_other_data(problems, tmp_path):
    data = tmp_path / "mine.jsonl"
    save_problems(adding(4), data)
    given = options(data, tmp_path / "out")
    evaluated(Drawing(), **given)
    save_problems([replace(p, text=p.text + "!") for p in adding(4)], data)
    with pytest.raises(ValueError, match=r"mine\.jsonl was '[0-9a-f]{64}', is '"):
        evaluated(Drawing(), **given, resume=True)


def test_a_run_of_an_earlier_version_is_refused_and_can_be_scored_again(problems, tmp_path):
    given = options(problems, tmp_path / "old", limit=4)
    metrics = evaluated(Drawing(), **given)
    path = tmp_path / "old/samples.jsonl"
    path.write_text(path.read_text().replace('"schema_version": 3, ', ""))
    save_json(metrics, tmp_path / "old/metrics.json")
    message = r"old/samples\.jsonl:1: the row was written by an earlier version"
    with pytest.raises(DataError, match=message):
        evaluated(Drawing(), **given, resume=True)
    with pytest.raises(DataError, match=message):
        load_runs([tmp_path / "old"])
    again = evaluated(Drawing(), **{**given, "output_dir": str(tmp_path / "new"), "answers": [str(path)]})
    of_sampled_turns = {
        name for name in metrics["metrics"] if name.startswith(("edit_ratio", "repeated", "near_repeated"))
    }
    assert of_sampled_turns and again["metrics"] == {
        name: value for name, value in metrics["metrics"].items() if name not in of_sampled_turns
    }


def test_samples_are_added_to_a_run(problems, tmp_path):
    given = options(problems, tmp_path / "two", limit=8, num_samples=2)
    evaluated(Drawing(), **given)
    first = rows(tmp_path / "two")
    metrics = evaluated(Drawing(), **{**given, "num_samples": 4}, resume=True, accept_changes=True)
    assert [row for row in rows(tmp_path / "two") if row["sample"] < 2] == first
    assert metrics["num_trajectories"] == 32 and "pass@4_t1" in metrics["pass_at_k"]
    assert metrics["speed"]["played"] == 16  # the wall time is that of the second command alone


def test_two_runs_in_one_folder_are_refused(problems, tmp_path):
    other = FolderLock(tmp_path)
    other.lock_shared()
    with pytest.raises(DataError, match="another run is writing there"):
        evaluated(Drawing(), **options(problems, tmp_path, limit=4))
    other.close()
    evaluated(Drawing(), **options(problems, tmp_path, limit=4))
    with pytest.raises(ValueError, match="contains a run; resume it with --resume or choose another"):
        evaluated(Drawing(), **options(problems, tmp_path, limit=4))


def test_the_conditions_are_recorded_in_every_row_and_in_both_json_files(problems, tmp_path):
    given = options(problems, tmp_path, limit=4, visible_tests=1, prompt_tests=0, on_repeat="tell")
    metrics = evaluated(Drawing(), **given)
    conditions = {
        "protocol": "cocos",
        "feedback": "error",
        "feedback_failures": 1,
        "early_stop": True,
        "on_repeat": "tell",
        "temperature": [0.8, 0.2],
        "visible_tests": 1,
        "prompt_tests": 0,
        "answers": [],
    }
    run = json.loads((tmp_path / "run.json").read_text())
    for result in (metrics, run, *rows(tmp_path)):
        assert conditions.items() <= result.items()
    assert run["isolation"] and all(row["num_visible_tests"] == 1 for row in rows(tmp_path))
    assert {turn["isolation"] for row in rows(tmp_path) for turn in row["turns"]} == {run["isolation"]}


# -- selection of problems --


def test_problems_are_selected_by_id_start_and_limit(problems, tmp_path):
    def chosen(name, **more):
        evaluated(Drawing(), **options(problems, tmp_path / name, num_turns=1, temperature=[0.8], **more))
        return [row["task_id"] for row in rows(tmp_path / name)]

    assert chosen("ids", task_ids=["7", "3", "150"]) == ["3", "7", "150"]
    assert chosen("part", start=10, limit=3) == ["11", "12", "13"]
    assert chosen("both", task_ids=["7", "3", "150"], start=1, limit=1) == ["7"]
    with pytest.raises(ValueError, match="has no problem '900'"):
        chosen("absent", task_ids=["3", "900"])
    with pytest.raises(ValueError, match="leaves none of the"):
        chosen("none", start=200)


def test_hidden_tests_are_scored_and_never_shown(problems, tmp_path):
    class Recording(Drawing):
        shown = ""

        def generate(self, prompts, temperature, seeds=None):
            Recording.shown += "".join(chr(code_point) for prompt in prompts for code_point in prompt)
            return [self.quote("def add(x):\n    return 2\n[DONE]") for _ in prompts]

    metrics = evaluated(
        Recording(), **options(problems, tmp_path, limit=1, visible_tests=1, early_stop=False)
    )
    assert "assert add(1) == 2" in Recording.shown and "add(0)" not in Recording.shown
    assert "The program above passes the tests." in Recording.shown
    assert metrics["metrics"]["acc_t3"]["value"] == 0.0
    assert [turn["reward"] for turn in rows(tmp_path)[0]["turns"]] == [0.5] * 3


def test_a_test_is_shown_or_told_of_or_only_scored(problems, tmp_path):
    """Of three tests, none is in the prompt, feedback uses two, and the third, which is hidden, is only scored."""
    prompts = []

    class Recording(Drawing):
        def generate(self, prompt_ids, temperature, seeds=None):
            prompts.append("".join(chr(code_point) for ids in prompt_ids for code_point in ids))
            return [self.quote("def add(x):\n    return 0\n[DONE]") for _ in prompt_ids]

    tests = ("assert add(1) == 1", "assert add(2) == 2", "assert add(0) == 0")
    save_problems([replace(load_problems(problems)[0], test_list=tests)], tmp_path / "three.jsonl")
    given = {"num_turns": 2, "visible_tests": 2, "prompt_tests": 0, "feedback": "error", "temperature": [0.0]}
    given |= {"feedback_failures": 3, "early_stop": False}
    evaluated(Recording(), **options(tmp_path / "three.jsonl", tmp_path / "out", **given))
    first, second = prompts
    assert "assert" not in first
    assert second.count("assert") == 2 and "The program above passes 0 of the 2 tests. These fail:" in second
    assert f"{tests[0]}\n\nExpected 1, got 0.\n\n{tests[1]}\n\nExpected 2, got 0." in second
    assert [turn["reward"] for turn in rows(tmp_path / "out")[0]["turns"]] == [1 / 3] * 2


# -- ranks --


def test_two_processes_make_the_rows_of_one_and_one_resumes_the_run_of_two(tmp_path):
    data = tmp_path / "toy.jsonl"
    save_problems(load_problems(TOY / "test.jsonl")[:18], data)
    given = {
        "test_data": str(data),
        "model_name_or_path": str(TOY / "base"),
        "batch_size": 4,
        "num_samples": 2,
        "temperature": [0.8],
        "max_completion_length": 24,
    }
    flags = [
        str(part)
        for name, value in given.items()
        for part in (f"--{name}", *([value] if not isinstance(value, list) else value))
    ]
    words = ("--output_dir", tmp_path / "two", "--executor_workers", 1, *flags)
    succeed_as_two_ranks(sys.executable, "test.py", *words)
    metrics = evaluated(**given, output_dir=str(tmp_path / "one"))
    expected = rows(tmp_path / "one")
    assert rows(tmp_path / "two") == expected and len(expected) == 36
    lines = (tmp_path / "two/samples.jsonl").read_text().split("\n")[:-1]
    written = json.loads((tmp_path / "two/metrics.json").read_text())
    assert written["metrics"] == metrics["metrics"] and written["executor"]["programs"] > 36

    # Imitate a kill of both processes: some rows in each file, the last one incomplete.
    (tmp_path / "two/samples.jsonl").write_text("".join(f"{line}\n" for line in lines[:5]))
    (tmp_path / "two/samples.rank1.jsonl").write_text(
        "".join(f"{line}\n" for line in lines[8:14]) + lines[14][:40]
    )
    evaluated(**given, output_dir=str(tmp_path / "two"), resume=True)
    assert rows(tmp_path / "two") == expected
    assert not (tmp_path / "two/samples.rank1.jsonl").exists()
