"""The laboratory: its problems are as documented, and its scripts reproduce the committed files."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import make_toy_problems as toy
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from cocos.problems import Problem, load_problems
from cocos.prompts import answer, named_protocol
from tests.support.paths import ROOT, TOY

FILES = ("train", "boost", "dev", "test")


def run_script(name: str, *arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(ROOT / "scripts" / name), *arguments]
    subprocess.run(command, check=True, env=environment, cwd=ROOT, capture_output=True, timeout=300)


def passes(code: str, tests: tuple[str, ...]) -> bool:
    """Run the laboratory's own programs, which are harmless, without the executor."""
    namespace: dict = {}
    exec(code, namespace)
    try:
        for test in tests:
            exec(test, namespace)
    except (AssertionError, ArithmeticError, IndexError, ValueError):
        return False
    return True


@pytest.fixture(scope="module")
def problems() -> dict[str, list[Problem]]:
    return {name: load_problems(TOY / f"{name}.jsonl") for name in FILES}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(TOY / "base")


@pytest.mark.processes
def test_the_script_writes_the_shipped_problems_byte_for_byte(tmp_path):
    run_script("make_toy_problems.py", "--output_dir", str(tmp_path))
    for name in FILES:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (TOY / f"{name}.jsonl").read_bytes(), name


def test_no_held_out_composition_is_trained_on(problems):
    said = {name: {re.sub(r"\d", "n", p.text) for p in rows} for name, rows in problems.items()}
    assert not (said["test"] | said["dev"]) & (said["train"] | said["boost"])
    assert not said["test"] & said["dev"]


def test_held_out_problems_use_no_operation_that_training_lacks(problems):
    words = {name: {w for p in rows for w in p.text.split()} for name, rows in problems.items()}
    assert words["test"] | words["dev"] <= words["train"]


@pytest.mark.processes
def test_three_asserts_distinguish_a_reference_from_every_wrong_program(problems):
    compositions = defaultdict(list)
    for composition, n in itertools.product(toy.compositions(), toy.NUMBERS):
        compositions[toy.write_code("f", n, *(op.code for op in composition))].append((composition, n))
    for problem in problems["test"] + problems["dev"] + problems["boost"]:
        assert len(problem.test_list) == 3
        assert passes(problem.code, problem.test_list), problem.task_id
        name = problem.code.split()[1].split("(")[0]
        written = compositions[problem.code.replace(name, "f", 1)]
        assert written
        for composition, n in written:
            wrong = [toy.write_code(name, n, *codes) for codes in toy.wrong_programs(composition)]
            assert not any(passes(code, problem.test_list) for code in wrong), problem.task_id


def test_problems_for_reinforcement_learning_come_without_solutions(problems):
    assert not any(p.code for p in problems["train"])


def test_base_is_small_complete_and_ready_for_batches(tokenizer):
    model = AutoModelForCausalLM.from_pretrained(TOY / "base")
    assert sum(file.stat().st_size for file in (TOY / "base").iterdir()) <= 4 * 2**20
    assert model.get_input_embeddings().num_embeddings == len(tokenizer)
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    assert (
        json.loads((TOY / "base" / "generation_config.json").read_text())["eos_token_id"]
        == tokenizer.eos_token_id
    )


def test_no_token_spans_a_turn_boundary(problems, tokenizer):
    words = named_protocol("cocos")
    for problem in problems["test"]:
        parts = [words.first_turn(problem), answer(problem.code), words.later_turn(), answer(problem.code)]
        joined = tokenizer("".join(parts))["input_ids"]
        assert joined == [i for part in parts for i in tokenizer(part)["input_ids"]]
        assert tokenizer.decode(joined) == "".join(parts)


@pytest.mark.processes
@pytest.mark.nightly
def test_a_few_pretraining_steps_write_a_model_that_loads(tmp_path):
    run_script("make_toy_base.py", "--steps", "2", "--batch_size", "2", "--output_dir", str(tmp_path))
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(tmp_path))
    assert (tmp_path / "tokenizer.json").read_bytes() == (TOY / "base" / "tokenizer.json").read_bytes()
