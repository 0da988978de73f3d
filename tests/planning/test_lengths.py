"""The longest transcript that a run can make, which a vLLM engine is given room for."""

import json
import shutil

from cocos.assembly.data import load_training_data
from cocos.assembly.rules import make_rules
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.generation.tokenizer import load_tokenizer
from cocos.planning.dry_run import FixedAnswerGenerator
from cocos.planning.lengths import longest_transcript, measure_lengths
from cocos.rollout import rollout
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
    generator = FixedAnswerGenerator(tokenizer, "")
    lengths = measure_lengths(data.problems, generator, data.protocol)
    by_hand = lengths.longest_prompt + 3 * 20 + 2 * lengths.instruction
    assert longest_transcript(args, data, tokenizer) == by_hand


def test_no_program_makes_a_longer_transcript_with_its_errors_or_values(executor, tmp_path):
    words = ("--num_turns", 2, "--max_completion_length", 60, "--feedback", "error", "--on_repeat", "tell")
    shutil.copytree(BASE, tmp_path / "model")
    config = json.loads((BASE / "config.json").read_text()) | {"max_position_embeddings": 10**6}
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    args, data, tokenizer = run(*words, model=tmp_path / "model")
    most = longest_transcript(args, data, tokenizer)
    assert most < 10_000
    name = data.problems[0].test_list[0].split("(")[0].removeprefix("assert ")
    for body in ("raise ValueError('\u20ac' * 900)", "return '\u00e9' * 900", "return [1] * 900"):
        generator = FixedAnswerGenerator(tokenizer, f"def {name}(xs): {body}")
        rules = make_rules(args, [1.0])
        [trajectory] = rollout(begin(data.problems[:1]), generator, executor, data.protocol, 2, rules)
        last = trajectory.turns[-1]
        assert "Error" in last.feedback or "Expected" in last.feedback
        assert len(last.prompt_ids) + args.max_completion_length <= most


def test_it_never_exceeds_the_context_of_the_model():
    assert longest_transcript(*run("--num_turns", 30, "--max_completion_length", 60)) == 1024
