"""Attempts that somebody watches: the text so far, the stop, and the archive of what was played."""

import io
import re
import threading
import time
import zipfile
from itertools import pairwise

import pytest

from cocos.config.eval_config import EvalConfig
from cocos.generation.scripted import ScriptedGenerator
from cocos.page import live_attempts
from cocos.page.live_attempts import LiveAttempts, begin_attempts, live_options, open_model, run_archive
from cocos.page.typed_problem import typed_problem
from cocos.problems import save_problems
from cocos.prompts import AUXILIARY_INSTRUCTION
from cocos.report.finished_runs import load_runs
from cocos.trajectories import Trajectory
from tests.support.evaluation import evaluated, rows
from tests.support.paths import TOY

WRONG, RIGHT = "def f(x):\n    return x\n[DONE]", "def f(x):\n    return 2 * x\n[DONE]"
PROBLEM = typed_problem("Write a function f that doubles a number.", "assert f(2) == 4\nassert f(0) == 0")


def options(**others):
    return EvalConfig(model_name_or_path=str(TOY / "base"), test_data="page", output_dir="page", **others)


def corrects_itself():
    return ScriptedGenerator(lambda prompt: RIGHT if AUXILIARY_INSTRUCTION in prompt else WRONG)


def finished(attempts):
    while attempts.is_running:
        time.sleep(0.01)
    return attempts


def test_every_attempt_is_made_and_the_archive_is_a_run_that_the_report_reads(executor, tmp_path):
    played = [
        finished(LiveAttempts(args, Trajectory(PROBLEM, sample), corrects_itself, executor))
        for args in (options(), options(num_turns=3))
        for sample in (0, 1)
    ]
    assert all(attempts.is_complete and attempts.end_reason == "" for attempts in played)
    archive = run_archive(played, executor)
    zipfile.ZipFile(io.BytesIO(archive)).extractall(tmp_path)
    two, three = load_runs([tmp_path / "run1", tmp_path / "run2"])
    assert (two.num_turns, three.num_turns) == (2, 3)
    assert [two.estimate(name).value for name in ("acc_t1", "acc_t2")] == [0.0, 1.0]
    assert two.statistics.right_K_T == {PROBLEM.task_id: [[False, True], [False, True]]}


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([RIGHT], "Solved at attempt 1."),
        ([WRONG, WRONG, RIGHT], "Solved at attempt 3."),
        ([WRONG, RIGHT, WRONG, WRONG], "Solved at attempt 2, and spoilt at attempt 3."),
        ([WRONG], "Not solved after 1 attempt."),
        ([WRONG, "I do not know."], "Not solved after 2 attempts."),
    ],
)
def test_the_outcome_is_a_sentence(answers, verdict, executor):
    left = list(answers)
    generator = ScriptedGenerator(lambda prompt: left.pop(0))
    args = options(num_turns=len(answers))
    assert finished(LiveAttempts(args, Trajectory(PROBLEM), lambda: generator, executor)).verdict == verdict


def test_a_program_that_passes_ends_the_attempts_if_the_visitor_wants_it(executor):
    prompts = []

    def answer(prompt):
        prompts.append(prompt)
        return RIGHT

    args = options(num_turns=4, early_stop=True)
    attempts = finished(LiveAttempts(args, Trajectory(PROBLEM), lambda: ScriptedGenerator(answer), executor))
    assert len(prompts) == 1 and attempts.verdict == "Solved at attempt 1." and attempts.is_complete


def test_attempts_that_nobody_watches_any_more_stop(executor, monkeypatch):
    """The watcher is there for the first attempt, and gone when the second begins."""
    monkeypatch.setattr(live_attempts, "UNWATCHED_S", 0.05)
    windows = ["open"]

    def answer(prompt):
        if AUXILIARY_INSTRUCTION in prompt:
            windows.clear()
            time.sleep(0.1)
        return WRONG

    generator = ScriptedGenerator(answer)
    watched = lambda: bool(windows)  # noqa: E731
    attempts = LiveAttempts(options(num_turns=5), Trajectory(PROBLEM), lambda: generator, executor, watched)
    assert finished(attempts).end_reason == "stopped, because nobody has watched for 0.05 s"
    assert len(attempts.trajectory.turns) == 2


def test_a_failure_has_its_reason_whatever_it_is(executor):
    def opened_badly(error):
        def fail():
            raise error

        return finished(LiveAttempts(options(), Trajectory(PROBLEM), fail, executor)).end_reason

    assert opened_badly(OSError()) == "OSError"
    assert (
        opened_badly(RuntimeError("out of memory"))
        == "RuntimeError: out of memory; the terminal has the details"
    )


def test_a_stop_ends_the_attempts_before_the_next_one(executor):
    waiting, go_on = threading.Event(), threading.Event()

    def answer(prompt):
        waiting.set()
        go_on.wait()
        return WRONG

    attempts = LiveAttempts(options(), Trajectory(PROBLEM), lambda: ScriptedGenerator(answer), executor)
    waiting.wait()
    attempts.stop()
    go_on.set()
    assert finished(attempts).end_reason == "stopped" and len(attempts.trajectory.turns) == 1


def test_a_model_tells_its_text_so_far_and_an_exception_stops_it_at_the_next_token():
    texts, args = [], options(max_completion_length=12)
    generator = open_model(args)
    generator.on_text = texts.append
    [completion] = generator.generate([generator.start("Write a function", False)], 0.0)
    assert len(texts) == len(completion.token_ids) > 2 and texts[-1] == completion.text
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))

    def stop(text):
        raise InterruptedError(text)

    generator.on_text = stop
    with pytest.raises(InterruptedError, match=re.escape(texts[0])):
        generator.generate([generator.start("Write a function", False)], 0.0)
    generator.on_text = None
    again = generator.generate([generator.start("Write a function", False)], 0.0)
    assert again[0].token_ids == completion.token_ids


def test_an_agent_is_watched_node_by_node_and_its_row_is_that_of_test_py(executor, tmp_path):
    watched, seen = [], []

    def answer(prompt):
        return RIGHT if "def f(x):\n    return x\n" in prompt else WRONG

    def see_and_answer(prompt):
        while not watched:
            time.sleep(0.01)
        seen.append([(turn.step.node, turn.result.all_passed) for turn in watched[0].trajectory.turns])
        return answer(prompt)

    args = options(agent="reflect", protocol="chat", num_turns=4)
    generator = ScriptedGenerator(see_and_answer)
    watched.append(LiveAttempts(args, Trajectory(PROBLEM), lambda: generator, executor))
    turns = finished(watched[0]).trajectory.turns
    assert seen == [[], [("draft", False)]]  # the first program had run before the model was asked again
    assert [turn.step.node for turn in turns if turn.step] == ["draft", "reflect"]
    assert [turn.is_carried for turn in turns] == [False, False, True, True] and watched[0].is_complete
    zipfile.ZipFile(io.BytesIO(run_archive(watched, executor))).extractall(tmp_path)
    problem = tmp_path / "problem.jsonl"
    save_problems([PROBLEM], problem)
    evaluated(
        ScriptedGenerator(answer), model_name_or_path="m", test_data=str(problem), agent="reflect",
        protocol="chat", num_turns=4, output_dir=str(tmp_path / "out"),
    )  # fmt: skip
    assert rows(tmp_path / "run1") == rows(tmp_path / "out")
    assert load_runs([tmp_path / "run1"])[0].conditions.startswith("the agent reflect")


def test_an_agent_stops_before_its_next_node_and_one_without_a_chat_is_refused(executor):
    asked, go_on = threading.Event(), threading.Event()

    def answer(prompt):
        asked.set()
        go_on.wait()
        return WRONG

    args = options(agent="react", num_turns=4)
    attempts = LiveAttempts(args, Trajectory(PROBLEM), lambda: ScriptedGenerator(answer), executor)
    asked.wait()
    attempts.stop()
    go_on.set()
    assert finished(attempts).end_reason == "stopped" and len(attempts.trajectory.turns) == 1
    with pytest.raises(ValueError, match="--agent tools needs a chat"):
        begin_attempts(PROBLEM, options(agent="tools"), [], executor)


def test_two_watchers_share_the_weights_and_nothing_else():
    one, other = open_model(options()), open_model(options())
    assert one.model is other.model and one is not other and one.cache is not other.cache


def test_a_program_to_repair_is_the_first_attempt_and_a_repetition_is_another_sample(executor):
    problem = typed_problem(PROBLEM.text, "assert f(2) == 4", buggy_code="def f(x):\n    return 3 * x")
    args = options(answers=["buggy"], max_completion_length=4)
    first = finished(begin_attempts(problem, args, [], executor))
    turn = first.trajectory.turns[0]
    assert turn.is_given and turn.result.verdicts[0].actual == "6"
    assert finished(begin_attempts(problem, args, [first], executor)).trajectory.sample == 1


@pytest.mark.parametrize(
    ("text", "agent", "answers"),
    [
        ("Repair it.", "none", ["buggy"]),
        ("Repair it:\nx = 1", "none", ["buggy"]),
        ("Repair it.", "react", ["buggy"]),
        ("Repair it:\nx = 1", "react", []),  # the prompt shows the program
    ],
)
def test_a_program_that_the_task_shows_is_no_attempt_of_an_agent(text, agent, answers):
    problem = typed_problem(text, "assert f(2) == 4", buggy_code="x = 1")
    assert live_options(problem, model_name_or_path="m", agent=agent).answers == answers


def test_a_program_to_repair_stays_in_the_prompt_whatever_others_have():
    repaired, solved = (
        typed_problem("Double.", "assert f(2) == 4", buggy_code=code) for code in ("x = 1", "")
    )
    options = {"model_name_or_path": "m", "carry": "counterexamples"}
    assert live_options(repaired, **options).carry == "transcript"
    assert live_options(solved, **options).carry == "counterexamples"


def test_what_goes_wrong_is_told(executor):
    args = options()
    args.model_name_or_path = "no/such/folder"
    assert "no/such/folder" in finished(begin_attempts(PROBLEM, args, [], executor)).end_reason
