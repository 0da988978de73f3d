"""The second laboratory: one attempt solves a share of it that is known by construction, two solve it all."""

import re
from collections import defaultdict
from statistics import fmean

import pytest
import toy_corpora
from transformers import AutoModelForCausalLM, AutoTokenizer

from cocos.assembly.rules import make_rules
from cocos.config.agent_options import AgentOptions
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.metrics import correction_metrics
from cocos.problems import Problem, load_problems
from cocos.prompts import answer, feedback_message, named_protocol
from cocos.rollout import rollout
from cocos.trajectories import Rules, as_program, begin
from tests.project.test_toy import passes, run_script
from tests.support import toy_oracle
from tests.support.paths import TOY

LAB = TOY / "feedback"
FILES = {"train": 2000, "dev": 200, "test": 400, "boost": 260}
BARE = named_protocol("cocos", prompt_tests=0)


@pytest.fixture(scope="module")
def problems() -> dict[str, list[Problem]]:
    return {name: load_problems(LAB / f"{name}.jsonl") for name in FILES}


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(LAB / "base")


def by_question(problems: list[Problem]) -> dict[str, list[Problem]]:
    """Group problems by question; ids end in the letter of the reading."""
    groups = defaultdict(list)
    for problem in problems:
        groups[problem.task_id.rpartition("-")[0]].append(problem)
    return groups


@pytest.mark.processes
def test_the_script_writes_the_shipped_problems_byte_for_byte(tmp_path):
    run_script("make_toy_feedback.py", "--output_dir", str(tmp_path))
    for name in FILES:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (LAB / f"{name}.jsonl").read_bytes(), name


@pytest.mark.parametrize("name", FILES)
def test_every_reading_of_a_question_is_a_problem_so_that_one_attempt_solves_forty_percent(problems, name):
    assert len(problems[name]) == FILES[name]
    groups = list(by_question(problems[name]).values())
    assert all(len({p.text for p in group}) == 1 for group in groups)  # the texts of the readings are equal
    # One attempt gives one program per text. It is right for one of two readings, or for one of three.
    assert sum(len(group) == 2 for group in groups) == sum(len(group) == 3 for group in groups)
    assert len(groups) / len(problems[name]) == 0.4


@pytest.mark.parametrize("name", ("dev", "test", "boost"))
def test_a_wrong_reading_fails_every_test_and_the_meant_one_none(problems, name):
    for group in by_question(problems[name]).values():
        for meant in group:
            assert len(meant.test_list) == 3 and passes(meant.code, meant.test_list), meant.task_id
            for other in group:
                for test in meant.test_list if other is not meant else ():
                    assert not passes(other.code, (test,)), (meant.task_id, other.task_id)


def test_no_held_out_question_is_trained_on(problems):
    said = {name: {re.sub(r"\d", "n", p.text) for p in rows} for name, rows in problems.items()}
    assert (
        not (said["train"] | said["boost"]) & (said["dev"] | said["test"]) and not said["dev"] & said["test"]
    )
    words = {name: {word for text in texts for word in text.split()} for name, texts in said.items()}
    assert words["dev"] | words["test"] <= words["train"]
    assert not any(p.code for p in problems["train"])


def test_the_oracle_reaches_what_the_construction_says(problems, executor):
    # Half of the questions have two readings, and those are 2/5 of the problems. After a verdict the second
    # attempt finds the other one of two readings, and one of the other two: 2/5 + 2/3 * 3/5 = 0.8.
    reached = {mode: toy_oracle.measure(problems["dev"], mode, 3, executor) for mode in toy_oracle.MODES}
    assert reached == {
        "none": [pytest.approx(0.4)] * 3,
        "verdict": [pytest.approx(0.4), pytest.approx(0.8), pytest.approx(1.0)],
        "error": [pytest.approx(0.4), pytest.approx(1.0), pytest.approx(1.0)],
    }


def test_pretraining_shows_the_feedback_that_the_executor_gives(problems, executor):
    groups = list(by_question(problems["dev"]).values())
    pairs = [(meant, other.code) for group in groups for meant in group for other in group]
    results = executor.run([as_program(meant, code) for meant, code in pairs])
    for (meant, code), result in zip(pairs, results, strict=True):
        simulated = toy_corpora.run_tests(meant, code)
        for mode in ("verdict", "error"):
            feedback = [feedback_message(mode, meant, either) for either in (simulated, result)]
            # The elements of a set have no order, so its text may have another one.
            assert sorted(feedback[0]) == sorted(feedback[1]), meant.task_id


def test_no_token_spans_a_turn_boundary(problems, tokenizer):
    group = next(iter(by_question(problems["test"]).values()))
    for problem in group:
        feedback = feedback_message("error", problem, toy_corpora.run_tests(problem, group[0].code))
        parts = [BARE.first_turn(problem), answer(group[0].code), BARE.later_turn(feedback=feedback)]
        joined = tokenizer("".join(parts))["input_ids"]
        assert joined == [i for part in parts for i in tokenizer(part)["input_ids"]]
        assert tokenizer.decode(joined) == "".join(parts)


@pytest.mark.processes
def test_the_base_model_knows_the_readings_and_takes_no_notice_of_feedback(problems, tokenizer, executor):
    model = AutoModelForCausalLM.from_pretrained(LAB / "base")
    assert model.num_parameters() <= 1.5e6
    readings = {
        text: {p.code for p in problems["dev"] if p.text == text}
        for text in {p.text for p in problems["dev"]}
    }
    repeated = {}  # shares of repeated programs by kind of feedback, after right and after wrong programs
    for feedback in ("none", "error"):
        rules = Rules(feedback=feedback, temperatures=(1.0,), seed=0)
        played = rollout(
            begin(problems["dev"], 4), HuggingFaceGenerator(model, tokenizer, 24), executor, BARE, 2, rules
        )
        for turn in (0, 1):
            known = [t.turns[turn].code in readings[t.problem.text] for t in played]
            right = [t.turns[turn].result.all_passed for t in played]
            assert fmean(known) >= 0.9
            assert 0.3 <= fmean(right) <= 0.5
        repeated[feedback] = [
            fmean(
                t.turns[0].code == t.turns[1].code
                for t in played
                if t.turns[0].result.all_passed is was_right
            )
            for was_right in (True, False)
        ]
    # One half by habit, and 1/3 to 1/2 of the other half because it draws the same reading again.
    assert all(0.5 <= value <= 0.85 for shares in repeated.values() for value in shares)
    assert repeated["error"] == pytest.approx(repeated["none"], abs=0.1)


def test_a_failed_test_says_which_reading_is_meant_unless_the_program_stands_before_it(
    problems, tokenizer, executor
):
    """The base model reads tests, but not beneath its own program; placebos are worth no more than asking again."""
    model = AutoModelForCausalLM.from_pretrained(LAB / "base")
    generator, dev = HuggingFaceGenerator(model, tokenizer, 24), problems["dev"]

    def accuracy(carry, placebo="none", **rules):
        options = AgentOptions(carry=carry, placebo=placebo, early_stop=True, **rules)
        made = make_rules(options, (0.0, 0.8), 0, dev, 0)
        played = rollout(begin(dev), generator, executor, BARE, 2, made)
        return correction_metrics(played)["acc_t2"].value

    asked_again = accuracy("nothing")
    assert 0.5 < asked_again < 0.75 and accuracy("transcript", feedback="error") < asked_again - 0.03
    assert accuracy("counterexamples") > 0.8
    for placebo in ("notice", "other"):
        assert accuracy("counterexamples", placebo) < asked_again + 0.05


@pytest.mark.processes
@pytest.mark.nightly
def test_the_tokenizer_follows_from_the_corpus(tmp_path):
    run_script(
        "make_toy_base.py",
        *("--lab", "feedback", "--steps", "2", "--batch_size", "2"),
        "--output_dir",
        str(tmp_path),
    )
    assert (tmp_path / "tokenizer.json").read_bytes() == (LAB / "base" / "tokenizer.json").read_bytes()
