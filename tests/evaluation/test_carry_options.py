"""Every protocol, carry, feedback and engine together: refused in one line, or played over two turns."""

import shutil
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from transformers import AutoTokenizer

from cocos.assembly.prompts import prompt_protocol
from cocos.carry import CARRIES
from cocos.config.boost_data_config import BoostDataConfig
from cocos.config.cocos_options import CoCoSOptions
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_generator, open_player
from cocos.literals import Feedback
from cocos.problems import save_problems
from cocos.prompts import FENCE_REQUEST
from cocos.trajectories import begin
from tests.generation.test_vllm_offline import engine as vllm  # noqa: F401 (a fixture)
from tests.support.endpoint_server import serve, text

CHATS = ("chat", "repair", "fix")
PROTOCOLS = ("cocos", "cocos-fewshot", *CHATS, "own")
REFUSED = {("counterexamples", "verdict"), ("nothing", "verdict"), ("nothing", "error")}
ALL = list(product(PROTOCOLS, CARRIES, get_args(Feedback)))
WRONG = "def double(x):\n    return 5"


@pytest.fixture(params=["hf", "api", "vllm"])
def engine(request, tiny_model, tmp_path, monkeypatch):
    """Options of an engine: the tiny model with a chat template, a server, or vLLM's imitation."""
    if request.param == "api":
        with serve() as endpoint:
            endpoint.behaviours = [text(WRONG)]
            yield {"generator": "api", "base_url": endpoint.base_url, "model_name_or_path": "m"}
        return
    model = shutil.copytree(tiny_model, tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}> {{ m.content }}\n{% endfor %}<answer> "
    tokenizer.save_pretrained(model)
    if request.param == "vllm":
        request.getfixturevalue("vllm")
        monkeypatch.setenv("BATCHES", "1000")
    yield {"generator": request.param, "model_name_or_path": str(model)}


def options(protocol, carry, feedback, folder, **more):
    words = {"few_shot_data": str(folder / "examples.jsonl")} if protocol == "cocos-fewshot" else {}
    words |= {"prompt_file": str(folder / "own.yaml")} if protocol == "own" else {"protocol": protocol}
    return words | {"carry": carry, "feedback": feedback, "prompt_tests": 0} | more


@pytest.mark.processes
def test_every_row_that_is_accepted_is_played_over_two_turns(engine, problem, executor, tmp_path):
    save_problems([replace(problem, task_id="0", text="Halve a number.")], tmp_path / "examples.jsonl")
    own = "first_turn: 'Turn {attempt}. {text} {tests}'\nlater_turn: '{feedback}Again.'\nis_chat: false\n"
    (tmp_path / "own.yaml").write_text(own)
    common = {"test_data": "x", "output_dir": "y", "max_completion_length": 4, "temperature": [0.0]}
    generator = open_generator(EvalConfig(**common, **engine), lambda line: None)
    played = 0
    for protocol, carry, feedback in ALL:
        if (carry, feedback) in REFUSED:
            continue
        args = EvalConfig(**options(protocol, carry, feedback, tmp_path), **common, **engine)
        [trajectory] = open_player(args, generator, executor, prompt_protocol(args))(begin([problem]))
        first, second = trajectory.turns
        assert not first.completion.error and not second.completion.error and not first.result.all_passed
        asked = second.request
        if carry == "transcript":
            assert generator.show(second.prompt_ids).startswith(generator.show(first.prompt_ids))
            assert ("0 of the 3 tests" in asked) == (feedback == "verdict") or feedback == "error"
        elif protocol == "own":
            assert asked.startswith("Turn 2. Write a function to double a number.")
        elif carry == "nothing":
            assert second.prompt_ids == first.prompt_ids
        assert (FENCE_REQUEST in asked) == (protocol in CHATS)
        if carry == "counterexamples":
            assert "assert double(2) == 4" in asked and "assert double(0)" not in asked
            assert ("assert double(2) == 4  # " in asked) == (feedback == "error")
            assert "assert double(2)" not in first.request
        played += 1
    assert played == len(PROTOCOLS) * 6


@pytest.mark.parametrize("kind", [EvalConfig, CoCoSOptions, BoostDataConfig])
def test_every_row_that_is_refused_says_why_in_one_line(kind, tmp_path):
    """The same rows in evaluation, in training and for Boost data."""
    needed = {
        EvalConfig: {"test_data": "x", "output_dir": "y", "model_name_or_path": "m"},
        CoCoSOptions: {"train_data": "x", "output_dir": "y"},
        BoostDataConfig: {"train_data": "x", "output": "y", "model_name_or_path": "m"},
    }
    refused = set()
    for protocol, carry, feedback in ALL:
        try:
            kind(**options(protocol, carry, feedback, tmp_path, **needed[kind]))
        except ValueError as error:
            assert "\n" not in str(error) and f"--feedback {feedback}" in str(error)
            assert f"--carry {carry}" in str(error)
            refused.add((protocol, carry, feedback))
    assert refused == {(protocol, *row) for protocol in PROTOCOLS for row in REFUSED}
