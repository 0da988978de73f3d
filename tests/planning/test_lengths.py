"""The longest prompts that a run can make, which a vLLM engine is given room for."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from cocos.assembly.data import load_training_data
from cocos.assembly.rules import make_rules
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.generation.tokenizer import TokenTranscripts, load_tokenizer
from cocos.planning.lengths import check_prompts, longest_prompts, longest_transcript, measure_lengths
from cocos.rollout import PAPER_RULES, rollout
from cocos.trajectories import begin
from tests.support.paths import TOY

BASE = TOY / "base"


def run(*words, model=BASE):
    """Return options, data and tokenizer of a run on the laboratory's dev problems."""
    needed = ("--model_name_or_path", model, "--train_data", TOY / "dev.jsonl", "--output_dir", "nowhere")
    args = parse_options(CoCoSConfig, "", [*map(str, needed), "--report_to", "none", *map(str, words)])
    return args, load_training_data(args), load_tokenizer(BASE)


def test_without_feedback_it_is_the_longest_prompt_the_completions_and_the_instructions():
    args, data, tokenizer = run("--num_turns", 3, "--max_completion_length", 20)
    generator = TokenTranscripts(tokenizer, set())
    first = measure_lengths(data.problems, generator, data.protocol).longest_prompt
    message = data.protocol.later_turn(is_closed=False)  # after an answer that is cut off
    instruction = len(tokenizer(message, add_special_tokens=False)["input_ids"])
    prompts_T = longest_prompts(data.problems, generator, data.protocol, PAPER_RULES, 3, 20)
    assert prompts_T == [first, first + 20 + instruction, first + 2 * (20 + instruction)]
    assert longest_transcript(args, data, tokenizer) == first + 3 * 20 + 2 * instruction
    blind = run("--visible_tests", 0, "--num_turns", 2, "--max_completion_length", 20)
    assert 2 * 20 < longest_transcript(*blind) < first + 2 * 20 + instruction


TOLD = ("--feedback", "error", "--on_repeat", "tell")
FRESH = ("--carry", "counterexamples", "--feedback", "error", "--feedback_failures", 2, "--prompt_tests", 0)


@pytest.mark.parametrize("words", [TOLD, FRESH, (*FRESH, "--placebo", "other")])
def test_no_program_makes_a_longer_prompt_with_its_errors_or_values(executor, tmp_path, words):
    words = ("--num_turns", 3, "--max_completion_length", 60, *words)
    shutil.copytree(BASE, tmp_path / "model")
    config = json.loads((BASE / "config.json").read_text()) | {"max_position_embeddings": 10**6}
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    args, data, tokenizer = run(*words, model=tmp_path / "model")
    most = longest_transcript(args, data, tokenizer)
    assert most < 20_000
    name = data.problems[0].test_list[0].split("(")[0].removeprefix("assert ")
    rules = make_rules(args, [1.0], None, data.problems, args.prompt_tests)
    bodies = ("raise ValueError('\u20ac' * 900)", "return '\u00e9' * 900", "return [1] * 900")
    fails = [f"def {name}(xs): {body}" for body in bodies]
    ends = "raise ValueError('\u20ac' * 900)  # " + "\u20ac" * 900  # before any test
    for codes in (*([code, code] for code in [*fails, ends]), [ends, fails[1]], [fails[2], ends]):
        [prompt] = begin(data.problems[:1])
        prompt = replace(prompt, given=(*map(data.protocol.answer, codes), ""))
        transcripts = TokenTranscripts(tokenizer, set())
        [trajectory] = rollout([prompt], transcripts, executor, data.protocol, 3, rules)
        last = trajectory.turns[-1]
        assert re.search("Error|Expected|# not|before any test", last.feedback)
        answers = sum(len(turn.completion.token_ids) for turn in trajectory.turns)
        assert (
            len(last.prompt_ids) - answers * (args.carry == "transcript") + 3 * args.max_completion_length
            <= most
        )


def test_without_a_transcript_prompts_grow_by_tests_alone():
    _, data, tokenizer = run("--num_turns", 5, "--max_completion_length", 20, "--prompt_tests", 1)
    generator = TokenTranscripts(tokenizer, set())

    def prompts(*words):
        rules = make_rules(run("--num_turns", 5, *words)[0], [1.0])
        return longest_prompts(data.problems, generator, data.protocol, rules, 5, max_answer=20)

    by_tests = [
        max(
            len(generator.start(replace(data.protocol, prompt_tests=n).first_turn(problem), False))
            for problem in data.problems
        )
        for n in (1, 2, 3)
    ]
    assert prompts("--carry", "nothing") == [by_tests[0]] * 5
    # One more test per turn, until all three stand in the prompt.
    assert prompts("--carry", "counterexamples") == [*by_tests, by_tests[2], by_tests[2]]
    assert prompts("--carry", "counterexamples", "--feedback", "error")[4] > by_tests[2]


def test_it_never_exceeds_the_context_of_the_model():
    assert longest_transcript(*run("--num_turns", 30, "--max_completion_length", 60)) == 1024


def test_a_prompt_longer_than_the_models_context_is_refused_before_anything_is_sampled():
    _, data, tokenizer = run()
    assert check_prompts(data.problems, data.protocol, tokenizer, str(BASE)) == ""
    long = replace(data.problems[0], task_id="long", text="Double a number. " * 2000)
    with pytest.raises(
        ValueError, match=r"problem long: its prompt has \d+ tokens, more than the model's context of 1024"
    ):
        check_prompts([*data.problems, long], data.protocol, tokenizer, str(BASE))
