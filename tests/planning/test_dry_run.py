"""The report and the warnings of --dry_run, which neither loads weights nor writes files."""

import json
import math
import re
import shlex
import shutil
import sys
from dataclasses import replace

import pytest
from trl.trainer.utils import RepeatSampler

from cocos.assembly.data import load_training_data
from cocos.boost.dry_run import boost_dry_run
from cocos.boost.trainer import load_boost_inputs
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import BoostConfig, CoCoSConfig
from cocos.generation.tokenizer import load_tokenizer
from cocos.planning.dry_run import dry_run, run_updates
from cocos.planning.memory import NF4, run_layout
from cocos.problems import load_problems, save_problems
from cocos.prompts import named_protocol
from tests.support.commands import command, free_port
from tests.support.paths import ROOT, TOY

RECIPES = ("cocos", "score_stage1", "score_stage2")  # for GPUs
PROBLEMS = load_problems(TOY / "boost.jsonl")[:20]
FEW = ("--max_completion_length", "24", "--rloo_k", "4", "--per_device_train_batch_size", "4")


@pytest.fixture(scope="module")
def bare_base(tmp_path_factory):
    """The laboratory's base without its weights."""
    folder = tmp_path_factory.mktemp("models") / "base"
    shutil.copytree(TOY / "base", folder, ignore=shutil.ignore_patterns("*.safetensors"))
    return folder


@pytest.fixture(scope="module")
def problems_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "problems.jsonl"
    save_problems(PROBLEMS, path)
    return path


def report(model, data, *flags) -> str:
    """Return the report of a dry run with these flags, made in this process."""
    needed = ["--model_name_or_path", str(model), "--train_data", str(data), "--output_dir", "nowhere"]
    args = parse_options(CoCoSConfig, "", [*needed, *FEW, "--report_to", "none", *flags])
    return dry_run(args, load_training_data(args), load_tokenizer(args.model_name_or_path))


def warnings_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("warning: ")]


@pytest.mark.processes
def test_a_dry_run_needs_no_weights_and_writes_no_files(bare_base, problems_file, tmp_path):
    done = command(
        *(sys.executable, "train.py", "--config", "configs/toy/cocos.yaml"),
        *("--model_name_or_path", bare_base),
        *("--train_data", problems_file, "--dev_data", problems_file, "--output_dir", tmp_path / "out"),
        *("--global_batch_size", 8, "--per_device_train_batch_size", 4, "--max_steps", 30, "--dry_run"),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(tmp_path.iterdir()) == []
    text = done.stdout
    first, cocos = PROBLEMS[0], named_protocol("cocos")
    assert f"{cocos.first_turn(first)}\n--- prompt of turn 2" in text
    name = re.search(r"def (\w+)", first.code)[1]
    wrong = f"def {name}(*args):\n    return None\n[DONE]"
    assert f"{cocos.first_turn(first)}{wrong}{cocos.later_turn()}\n---\n" in text
    assert "930,816 parameters, context 1024 tokens" in text
    assert f"the reference of task {first.task_id} passes 3 of 3 tests" in text
    # k = 4: 8 trajectories are 2 problems, 2 turns make 16 rows and programs; 20 problems are 10 updates
    assert "30 updates of 8 trajectories (2 problems x 4), 16 rows and 16 programs each; 3.0 passes" in text
    assert "memory, estimated for rows of " in text
    assert re.search(
        r"needs 0\.\d GiB per process, fits in this machine's \d+\.\d GiB", text
    ) and text.rstrip().endswith("no warnings")


def test_a_dry_run_shows_what_a_wrong_program_would_be_told_and_that_it_makes_transcripts_longer(
    bare_base, problems_file
):
    rules = ("--num_turns", "3", "--feedback", "error", "--early_stop", "--on_repeat", "tell")
    text = report(bare_base, problems_file, *rules, "--prompt_tests", "1", "--global_batch_size", "8")
    first = PROBLEMS[0]
    name = re.search(r"def (\w+)", first.code)[1]
    wrong = f"def {name}(*args):\n    return None\n[DONE]"
    feedback = f"{wrong}\n\nThe program above passes 0 of the 3 tests. This one fails:\n\n{first.test_list[0]}\n\nExpected "
    assert text.count("--- prompt of turn ") == 3
    assert (
        text.count(feedback) == 3 and text.count("The program above is the same as the one before it.") == 1
    )
    assert f"the reference of task {first.task_id} passes 3 of 3 tests" in text
    assert "20 problems, 0 for dev; 60 visible tests (20 in prompts), 0 hidden" in text
    silent = report(bare_base, problems_file, "--num_turns", "3", "--global_batch_size", "8")
    longest, shortest = (int(re.search(r"last prompt up to (\d+),", t)[1]) for t in (text, silent))
    assert longest > shortest + 2 * 50 - 60  # two messages; the first prompt shows fewer tests
    rows = [int(re.search(r"rows of (\d+) tokens", t)[1]) for t in (text, silent)]
    assert rows[0] - rows[1] == longest - shortest


def test_a_dry_run_without_a_transcript_shows_the_failed_tests_and_plans_for_them(bare_base, problems_file):
    rules = ("--num_turns", "3", "--carry", "counterexamples", "--prompt_tests", "0")
    text = report(bare_base, problems_file, *rules, "--global_batch_size", "8")
    first = PROBLEMS[0]
    for turn in (1, 2, 3):
        tests = dict.fromkeys(range(turn - 1), ())
        message = named_protocol("cocos", prompt_tests=0).first_turn(first, tests)
        assert re.search(rf"--- prompt of turn {turn}, \d+ tokens ---\n{re.escape(message)}\n-", text)
    last = int(re.search(r"last prompt up to (\d+),", text)[1])
    assert f"rows of {last + 24} tokens" in text


def test_a_dry_run_shows_given_first_turns(bare_base, problems_file, tmp_path):
    # Rows of one problem with equal answers would be one prompt.
    answers = ((0, 1), (1, 1), (1, 2))
    lines = [{"task_id": PROBLEMS[n].task_id, "answers": [f"def given(): {i}\n[DONE]"]} for n, i in answers]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    text = report(
        bare_base, problems_file, "--answers", str(tmp_path / "answers.jsonl"), "--global_batch_size", "4"
    )
    assert "data: 2 problems, 0 for dev; 6 visible tests, 0 hidden; 3 prompts with given answers" in text
    assert "[BEGIN]\ndef given(): 1\n[DONE]\n\nThere might" in text


@pytest.mark.processes
def test_the_dry_run_of_the_recipes_runs(bare_base, problems_file, tmp_path):
    [line] = re.findall(
        r"^cocos (train --config configs/cocos\.yaml.*--dry_run)$",
        (ROOT / "docs/training.md").read_text(),
        re.M,
    )
    done = command(
        *(sys.executable, "-m", "cocos", *shlex.split(line)),  # the recipe's model and data are replaced
        *("--model_name_or_path", bare_base, "--train_data", problems_file, "--dev_data", problems_file),
        *("--output_dir", tmp_path / "out", "--max_steps", 100),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # A batch has 64 problems, the file has 20; two turns of 512 new tokens exceed a context of 1,024.
    found = warnings_of(done.stdout)
    assert (
        len(found) == 2 and "20 problems are fewer than the 64" in found[0] and "context of 1024" in found[1]
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("sampler", ["vLLM", "transformers"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_plan_of_a_recipe_names_updates_and_memory(bare_base, recipe, sampler, tmp_path, monkeypatch):
    is_installed = sampler == "vLLM"
    monkeypatch.setattr("cocos.config.trl_configs.find_spec", lambda name: name if is_installed else None)
    save_problems(load_problems(TOY / "boost.jsonl")[:64], tmp_path / "problems.jsonl")
    words = ("--config", ROOT / f"configs/{recipe}.yaml", "--model_name_or_path", bare_base)
    words += ("--train_data", tmp_path / "problems.jsonl", "--dev_data", "", "--report_to", "none")
    words += ("--output_dir", tmp_path / "out")
    args = parse_options(CoCoSConfig, "", [*map(str, words)])
    text = dry_run(args, load_training_data(args), load_tokenizer(args.model_name_or_path))
    assert f"training: {args.max_steps} updates of {args.global_batch_size} trajectories" in text
    assert re.search(r"needs \d+\.\d GiB per ", text)
    assert ("beside vLLM's 30% of its memory" in text) is is_installed


@pytest.mark.processes
@pytest.mark.nightly
def test_under_deepspeed_one_rank_prints_the_report(bare_base, problems_file, tmp_path):
    done = command(
        *("deepspeed", "--num_gpus", 2, "--master_port", free_port(), "train.py"),
        *("--deepspeed", "configs/deepspeed/zero3.json", "--model_name_or_path", bare_base),
        *("--train_data", problems_file, "--output_dir", tmp_path / "out", "--bf16", "true"),
        *(*FEW, "--global_batch_size", 16, "--report_to", "none", "--dry_run"),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("2 process(es), ZeRO stage 3 or FSDP") == 1
    assert "930,816 parameters" in done.stdout  # all of them, although ZeRO-3 would have divided the model
    assert "updates of 16 trajectories (4 problems x 4)" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
@pytest.mark.nightly
def test_every_recipe_has_a_plan_for_eight_ranks_with_vllm_and_without(bare_base, tmp_path):
    """Eight processes of one launcher, without GPUs, plan all recipes; the first one prints."""
    save_problems(load_problems(TOY / "boost.jsonl")[:64], tmp_path / "problems.jsonl")
    recipes = [ROOT / f"configs/{name}.yaml" for name in RECIPES]
    words = shlex.split("--deepspeed configs/deepspeed/zero2.json --bf16 true --report_to none --dry_run")
    words += ["--model_name_or_path", str(bare_base), "--train_data", str(tmp_path / "problems.jsonl")]
    words += ["--dev_data", "", "--output_dir", str(tmp_path / "out")]
    samplers = ("vLLM", "transformers")
    runs = [[sampler, "--config", str(recipe), *words] for recipe in recipes for sampler in samplers]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    done = command(
        *("deepspeed", "--num_gpus", 8, "--master_port", free_port(), "tests/support/recipe_plans.py"),
        tmp_path / "runs.json",
        timeout_s=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r"8 process\(es\), ZeRO stage 2", done.stdout)) == len(runs) == 6
    needs = re.findall(r"needs \d+\.\d GiB per \w+( beside vLLM's)?", done.stdout)
    assert [bool(engine) for engine in needs] == [sampler == "vLLM" for sampler, *_ in runs]
    assert not (tmp_path / "out").exists()


@pytest.mark.processes
def test_the_boost_report_shows_the_first_row_of_each_turn_and_its_trained_part(bare_base, tmp_path):
    rows = [
        {"prompt": "double\n\n[BEGIN]", "completion": "def f(x):\n    return x\n[DONE]"},
        {"prompt": "double\n\n[BEGIN]\nWRONG\n[DONE]\n\n[CORRECT]", "completion": "RIGHT\n[DONE]"},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    words = ("--model_name_or_path", bare_base, "--train_data", path, "--output_dir", tmp_path / "out")
    done = command(
        *(sys.executable, "boost/boost_train.py", "--config", "configs/toy/boost.yaml", *words, "--dry_run")
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not trained ---\ndouble\n\n[BEGIN]\n\n--- trained ---\ndef f(x):" in done.stdout
    assert "WRONG\n[DONE]\n\n[CORRECT]\n\n--- trained ---\nRIGHT\n[DONE]\n---" in done.stdout
    assert "30 updates of 32 rows; 480.0 passes" in done.stdout
    [passes] = warnings_of(done.stdout)
    assert "480 passes over the data, more than 20" in passes and "give --num_train_epochs" in passes
    assert [file.name for file in tmp_path.iterdir()] == ["rows.json"]
    path.write_text(json.dumps([{"prompt": "double\n\n[BEGIN]", "completion": "x = 1\n" * 400}]))
    flags = [part for word in words for part in [str(word)]]
    args = parse_options(BoostConfig, "", [*flags, "--report_to", "none"])
    _, context = warnings_of(boost_dry_run(args, load_boost_inputs(args)))
    assert "beyond the model's context of 1024" in context


def test_a_missing_model_or_data_file_is_an_error(bare_base, problems_file):
    with pytest.raises(ValueError, match=r"\./nowhere: no such folder"):
        report("./nowhere", problems_file, "--global_batch_size", "16")
    with pytest.raises(ValueError, match=r"nowhere\.jsonl: no such file"):
        report(bare_base, "nowhere.jsonl", "--global_batch_size", "16")


def test_options_that_would_fail_give_warnings(bare_base, problems_file, tmp_path):
    fine = ("--global_batch_size", "16")
    assert warnings_of(report(bare_base, problems_file, *fine)) == []
    # 96 trajectories are 24 problems x 4, but there are only 20 problems
    # 1500 updates of the 20 problems, more than 300 passes
    batch, passes = warnings_of(report(bare_base, problems_file, "--global_batch_size", "96"))
    assert "1500 passes over the data, more than 300" in passes and "lower --max_steps" in passes
    assert "20 problems are fewer than the 24 that are sampled together, so each of them is sampled" in batch
    [context] = warnings_of(report(bare_base, problems_file, *fine, "--num_turns", "40"))
    assert "turn 40 may reach" in context and "context of 1024" in context
    [cut] = warnings_of(report(bare_base, problems_file, *fine, "--max_completion_length", "4"))
    assert re.search(r"a reference takes \d+ tokens, more than --max_completion_length 4", cut)
    broken = tmp_path / "broken.jsonl"
    save_problems([replace(PROBLEMS[0], code="def mint(xs):\n    return 0"), *PROBLEMS[1:]], broken)
    [reference] = warnings_of(report(bare_base, broken, *fine))
    assert f"the reference of task {PROBLEMS[0].task_id} does not pass its tests" in reference
    awaited = "import asyncio\nasync def g():\n    return mint([0])\nassert asyncio.run(g()) is not None"
    save_problems([replace(PROBLEMS[0], test_list=(awaited,)), *PROBLEMS[1:]], broken)
    [unpaid] = warnings_of(report(bare_base, broken, *fine))
    assert f"1 tests of task {PROBLEMS[0].task_id} earn nothing" in unpaid and "async" in unpaid
    assert warnings_of(report(bare_base, broken, *fine, "--reward_in_child", "true")) == []


def test_a_problem_without_reference_is_played_with_a_placeholder(bare_base, tmp_path):
    path = tmp_path / "bare.jsonl"
    save_problems([replace(problem, code="") for problem in PROBLEMS], path)
    text = report(bare_base, path, "--global_batch_size", "16", "--num_turns", "3", "--credit", "last")
    name = re.search(r"(\w+)\(", PROBLEMS[0].test_list[0])[1]
    assert text.count(f"def {name}(*args):\n    return None\n[DONE]") == 1 + 2  # in turns 2 and 3
    assert "a placeholder (no reference) of task boost-0 passes 0 of 3 tests" in text
    assert "16 rows and 48 programs each" in text  # `last` trains one turn of three


@pytest.mark.parametrize(
    ("flags", "bytes_each"),
    [
        ((), (4, 8, 4, 4)),
        (("--bf16", "true"), (4, 8, 4, 2)),
        (("--use_peft", "true", "--dtype", "bfloat16"), (4, 8, 2, 2)),
        (("--use_peft", "true", "--dtype", "bfloat16", "--load_in_4bit", "true"), (2, 4, NF4, 2)),
    ],
)
def test_precision_follows_the_options(flags, bytes_each):
    layout = run_layout(options(*flags), None)
    assert (layout.weights, layout.optimizer, layout.frozen, layout.compute) == bytes_each
    assert (layout.zero_stage, layout.num_gpus) == (0, 1)


def options(*words) -> CoCoSConfig:
    needed = ("--model_name_or_path", "m", "--train_data", "t", "--output_dir", "o", "--report_to", "none")
    return parse_options(CoCoSConfig, "", [*map(str, (*needed, *words))])


@pytest.mark.parametrize(
    ("problems", "rollout", "iterations"), [(374, 64, 1), (374, 128, 2), (63, 64, 1), (128, 64, 3)]
)
def test_a_pass_has_as_many_updates_as_trls_sampler_yields_and_says_what_it_leaves_out(
    problems, rollout, iterations
):
    words = ("--global_batch_size", 2 * rollout, "--rloo_k", 2, "--num_iterations", iterations)
    updates = run_updates(options(*words, "--num_train_epochs", 1), problems)
    given = problems * math.ceil(rollout / problems)  # CoCoSTrainer repeats too few problems
    sampler = list(RepeatSampler(range(given), 2, rollout, repeat_count=iterations))
    assert updates.number == len(sampler) / (2 * rollout)
    left_out = problems - len({*sampler} & {*range(problems)}) if problems > rollout else 0
    assert updates.passes == pytest.approx(1 - left_out / problems)
    expected = f"{left_out} of {problems} problems are left out of each pass" if left_out else ""
    assert updates.warning.startswith(expected) and bool(updates.warning) == bool(left_out)
