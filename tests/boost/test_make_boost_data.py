"""scripts/make_boost_data.py as a command: interrupted and continued, and with contradictory options."""

import json
import shlex
import shutil
import sys
from dataclasses import replace

import pytest

from cocos.commands.boost_data import next_command
from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.command_line import parse_options
from cocos.config.training_options import BoostOptions
from cocos.problems import save_problems
from tests.support.commands import complaint, succeed
from tests.support.paths import TOY


def make(problems, output, *words):
    return (
        *(sys.executable, "scripts/make_boost_data.py", "--model_name_or_path", TOY / "base"),
        *("--train_data", problems),
        *("--output", output, "--max_completion_length", 48, "--temperature", 1.0, *words),
    )


def test_the_next_command_is_accepted_as_it_is_printed():
    args = BoostDataConfig(model_name_or_path="my model", train_data="t.jsonl", output="my rows/rows.jsonl")
    words = shlex.split(next_command(args))
    assert words[:2] == ["cocos", "boost"]
    options = parse_options(BoostOptions, "", words[2:])
    assert (options.model_name_or_path, options.train_data) == ("my model", "my rows/rows.jsonl")
    assert options.output_dir == "my rows/rows_boost"


@pytest.mark.processes
def test_a_continued_run_writes_what_an_uninterrupted_run_writes(problems_file, tmp_path):
    words = ("--batch_size", 2, "--corrections", "any", "--num_corrections", 2, "--pairs_per_problem", 1)
    done = succeed(*make(problems_file, tmp_path / "rows.json", *words))
    assert "tokens per row: median" in done.stdout and "keep a right attempt" in done.stdout
    whole, log = (tmp_path / "rows.json").read_bytes(), tmp_path / "rows.json.attempts.jsonl"
    attempts = log.read_bytes()
    rows = json.loads(whole)
    # In a .json file, prompts end with the marker.
    assert {row["prompt"].rsplit("\n", 1)[-1] for row in rows} == {"[BEGIN]", "[CORRECT]"}
    # An interrupted log: the header, the first of three batches, and an incomplete line.
    log.write_bytes(b"\n".join(attempts.split(b"\n")[:2]) + b"\n[{")
    (tmp_path / "rows.json").unlink()
    succeed(*make(problems_file, tmp_path / "rows.json", *words))
    assert (tmp_path / "rows.json").read_bytes() == whole and log.read_bytes() == attempts


@pytest.mark.processes
def test_a_log_of_attempts_is_not_continued_with_other_examples_in_the_prompt(problems_file, tmp_path):
    examples = tmp_path / "examples.jsonl"
    rows = [json.loads(line) for line in problems_file.read_text().splitlines()]
    examples.write_text(json.dumps(rows[0]) + "\n")
    words = ("--protocol", "cocos-fewshot", "--few_shot_data", examples)
    succeed(*make(problems_file, tmp_path / "rows.jsonl", *words))
    examples.write_text(json.dumps(rows[1]) + "\n")  # the same name
    refused = complaint(*make(problems_file, tmp_path / "rows.jsonl", *words))
    assert "rows.jsonl.attempts.jsonl: was made with few_shot_data" in refused


@pytest.mark.processes
def test_references_are_further_attempts_on_request(problems_file, tmp_path):
    succeed(*make(problems_file, tmp_path / "rows.jsonl"))
    (tmp_path / "rows.jsonl").rename(tmp_path / "without.jsonl")
    # The second command takes the attempts from the same log.
    succeed(*make(problems_file, tmp_path / "rows.jsonl", "--reference_attempts", "true"))
    without, with_references = (
        (tmp_path / name).read_text().splitlines() for name in ("without.jsonl", "rows.jsonl")
    )
    assert with_references[: len(without)] == without
    problems = [json.loads(line) for line in problems_file.read_text().splitlines()]
    added = [json.loads(line)["completion"] for line in with_references[len(without) :]]
    assert added == [f"{problem['code']}\n[DONE]" for problem in problems for _ in range(2)]


@pytest.mark.processes
def test_the_samples_of_an_evaluation_are_attempts_and_nothing_is_sampled(problem, tmp_path):
    """A right program, one that fails the visible test, and one that fails a hidden test alone."""
    programs = {
        "right": "def double(x):\n    return 2 * x",
        "wrong": "def double(x):\n    return x + 1",
        "wrong where it is hidden": "def double(x):\n    return x * x",
    }
    save_problems([problem], tmp_path / "problems.jsonl")
    rows = [{"task_id": "1", "answers": [f"{program}\n[DONE]"]} for program in programs.values()]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = tmp_path / "problems.jsonl"
    succeed(
        *(sys.executable, "test.py", "--test_data", data, "--answers", tmp_path / "answers.jsonl"),
        *("--num_turns", 1, "--num_samples", 3, "--visible_tests", 1, "--output_dir", tmp_path / "samples"),
    )
    succeed(
        *make(data, tmp_path / "rows.jsonl", "--samples", tmp_path / "samples", "--corrections", "own"),
        *("--feedback", "error", "--first_turns", "right", "--early_stop", "true", "--prompt_tests", 1),
    )
    first, second = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    answer = f"{programs['right']}\n[DONE]"
    assert (first["completion"], second["completion"]) == (answer, answer)
    assert second["prompt"].startswith(f"{first['prompt']}{programs['wrong']}\n[DONE]")
    assert "assert double(2) == 4\n\nExpected 4, got 3." in second["prompt"]
    assert "double(0)" not in second["prompt"]
    # A planted bug is told the visible test alone, too.
    words = ("--samples", tmp_path / "samples", "--corrections", "own", "--planted_bugs", 3)
    succeed(
        *make(data, tmp_path / "planted.jsonl", *words, "--feedback", "error"), *("--first_turns", "right")
    )
    planted = [json.loads(line) for line in (tmp_path / "planted.jsonl").read_text().splitlines()]
    assert len(planted) > 3 and {row["completion"] for row in planted} == {answer}
    assert not any("double(0)" in row["prompt"].partition("[BEGIN]")[2] for row in planted)
    # Without a transcript, the second row is the task with the failed test.
    words = ("--samples", tmp_path / "samples", "--corrections", "own", "--first_turns", "right")
    carry = ("--carry", "counterexamples", "--prompt_tests", 0, "--prompt_signature", "true")
    succeed(*make(data, tmp_path / "fresh.jsonl", *words, *carry))
    first, second = map(json.loads, (tmp_path / "fresh.jsonl").read_text().splitlines())
    line, test = "Your code should contain the line `def double(x):`.", "assert double(2) == 4"
    assert first["prompt"].endswith(f"{line}\n\n[BEGIN]\n") and second["completion"] == answer
    assert second["prompt"].endswith(f"{line} Your code should pass these tests:\n\n{test}\n\n[BEGIN]\n")
    # Where the samples' prompt had all tests, whoever sees fewer would learn to guess their answers.
    samples = (tmp_path / "samples/samples.jsonl").read_text().splitlines()
    all_shown = [json.loads(line) | {"num_visible_tests": 3, "visible_tests": None} for line in samples]
    (tmp_path / "samples/samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in all_shown))
    own = ("--samples", tmp_path / "samples", "--corrections", "own", "--prompt_tests")
    assert "none of 3 attempts is right" in complaint(*make(data, tmp_path / "none.jsonl", *own, 2))
    succeed(*make(data, tmp_path / "all.jsonl", *own, 3))
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 6
    # Other problems under these ids are refused.
    save_problems([replace(problem, text="Write a function to halve a number.")], data)
    words = ("--samples", tmp_path / "samples", "--corrections", "own")
    assert "problem '1' of" in complaint(*make(data, tmp_path / "other.jsonl", *words))


@pytest.mark.processes
def test_a_start_that_fails_leaves_nothing_and_a_file_of_the_users_own_is_not_overwritten(
    problems_file, tmp_path
):
    damaged = shutil.copytree(TOY / "base", tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"cut off")
    rows = tmp_path / "new" / "rows.jsonl"
    assert "the file is damaged" in complaint(*make(problems_file, rows, "--model_name_or_path", damaged))
    assert not rows.parent.exists()
    (tmp_path / "mine").write_text("mine")
    assert "mine exists; remove it or choose" in complaint(*make(problems_file, tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.processes
def test_options_without_effect_or_out_of_range_are_errors(problems_file, tmp_path):
    line = complaint(
        *make(problems_file, tmp_path / "r", "--corrections", "reference", "--num_corrections", 1)
    )
    assert "--num_corrections has no effect with --corrections reference" in line
    line = complaint(
        *make(problems_file, tmp_path / "r", "--corrections", "own", "--reference_attempts", "true")
    )
    assert "--reference_attempts has no effect with --corrections own" in line
    assert "it must lie in [0, 1]" in complaint(*make(problems_file, tmp_path / "r", "--keep_share", 1.5))
    line = complaint(*make(problems_file, tmp_path / "r", "--planted_bugs", 1))
    assert "--planted_bugs needs --corrections own, not any" in line
