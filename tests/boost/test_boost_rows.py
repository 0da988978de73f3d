"""Boost rows: file formats, and the trained spans, decoded back to text."""

import json
import re
from dataclasses import replace

import pytest
from transformers import AutoTokenizer

from cocos.boost.rows import BoostRow, load_rows, make_rows, save_rows, tokenize
from cocos.generation import Completion
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import DataError
from cocos.prompts import answer, named_protocol
from cocos.rollout import rollout
from cocos.trajectories import begin

COCOS = named_protocol("cocos")
WRONG = "def double(x):\n    return x * x"
RIGHT = "def double(x):\n    return 2 * x"
BOS = 0x110000


@pytest.fixture(scope="session")
def tokenizer(tiny_model):
    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture
def encode(tokenizer):
    return lambda text, is_start: tokenizer(text, add_special_tokens=is_start)["input_ids"]


class MergingGenerator(ScriptedGenerator):
    """Generator whose tokens are words, runs of spaces, and brackets with the newlines after them.

    A text in one piece thus has other ids than the same text cut after [DONE].
    """

    def __init__(self, script):
        super().__init__(script)
        self.vocabulary: dict[str, int] = {}

    def encode(self, text, is_start):
        tokens = re.findall(r"\]\n*|\w+|\s+|.", text)
        return [BOS] * is_start + [
            self.vocabulary.setdefault(token, len(self.vocabulary)) for token in tokens
        ]

    def decode(self, ids):
        tokens = list(self.vocabulary)
        return "".join(tokens[i] for i in ids if i != BOS)

    def generate(self, prompts, temperature, seeds=None):
        answers = [self.script(self.decode(prompt)) for prompt in prompts]
        return [Completion(tuple(self.encode(text, is_start=False)), text) for text in answers]


class TokenizerGenerator(MergingGenerator):
    """MergingGenerator with the tokenizer of a model."""

    def __init__(self, script, tokenizer):
        super().__init__(script)
        self.tokenizer = tokenizer

    def encode(self, text, is_start):
        return self.tokenizer(text, add_special_tokens=is_start)["input_ids"]

    def decode(self, ids):
        return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def trained_ids(features) -> list[int]:
    return [label for label in features["labels"] if label != -100]


def prompt_ids(features) -> list[int]:
    return [i for i, label in zip(features["input_ids"], features["labels"], strict=True) if label == -100]


def test_the_rows_of_a_problem_are_its_two_turns(problem):
    first, second = make_rows(problem, WRONG, RIGHT, COCOS)
    assert first == BoostRow(COCOS.first_turn(problem), f"{WRONG}\n[DONE]")
    assert second == BoostRow(
        COCOS.first_turn(problem) + f"{WRONG}\n[DONE]" + COCOS.later_turn(), f"{RIGHT}\n[DONE]"
    )
    assert second.prompt.endswith("\n\n[CORRECT]\n")


def test_saved_rows_are_loaded_unchanged(problem, tmp_path):
    rows = make_rows(replace(problem, text="Verdopple \u2028 größer"), WRONG, RIGHT, COCOS)
    save_rows(rows, tmp_path / "rows.jsonl")
    assert load_rows(tmp_path / "rows.jsonl") == rows


def test_the_readme_format_and_json_lines_give_the_same_ids(problem, tmp_path, encode):
    rows = make_rows(problem, WRONG, RIGHT, COCOS)
    save_rows(rows, tmp_path / "rows.jsonl")
    listed = [{"prompt": row.prompt.rstrip("\n"), "completion": row.completion} for row in rows]
    assert listed[0]["prompt"].endswith("\n\n[BEGIN]") and listed[1]["prompt"].endswith("\n\n[CORRECT]")
    (tmp_path / "rows.json").write_text(json.dumps(listed, indent=2))
    lines, readme = (load_rows(tmp_path / name) for name in ("rows.jsonl", "rows.json"))
    assert readme == lines
    assert [tokenize(row, encode) for row in readme] == [tokenize(row, encode) for row in lines]


def test_exactly_the_completion_is_trained(problem, tokenizer, encode):
    for row in make_rows(problem, WRONG, RIGHT, COCOS):
        features = tokenize(row, encode)
        assert tokenizer.decode(trained_ids(features)) == row.completion
        assert tokenizer.decode(prompt_ids(features)) == row.prompt
        assert tokenizer.decode(features["input_ids"]) == row.prompt + row.completion
        first_trained = features["labels"].index(trained_ids(features)[0])
        assert features["labels"][:first_trained] == [-100] * first_trained
        assert features["labels"][first_trained:] == features["input_ids"][first_trained:]


def test_a_marker_inside_the_completion_moves_no_label(problem, tokenizer, encode):
    row = BoostRow(COCOS.first_turn(problem), "s = '[BEGIN]\\n[DONE]'\n[BEGIN]\n[CORRECT]\n[DONE]")
    assert tokenizer.decode(trained_ids(tokenize(row, encode))) == row.completion


def play(problem, generator, executor, prompts, num_turns=2):
    """Play turns whose first answer is wrong and whose later answers are right."""
    [trajectory] = rollout(begin([problem]), generator, executor, prompts, num_turns)
    return trajectory.turns


def script(prompt: str) -> str:
    return answer(RIGHT if "There might be an error" in prompt else WRONG)


@pytest.mark.parametrize("name", ["cocos", "cocos-fewshot"])
def test_a_row_has_the_same_ids_as_the_turn_loop(problem, executor, name):
    prompts = named_protocol(name, [problem, problem] if name == "cocos-fewshot" else [])
    generator = MergingGenerator(script)
    turns = play(problem, generator, executor, prompts)
    for row, turn in zip(make_rows(problem, WRONG, RIGHT, prompts), turns, strict=True):
        features = tokenize(row, generator.encode)
        assert prompt_ids(features) == list(turn.prompt_ids)
        assert trained_ids(features) == list(turn.completion.token_ids)
        assert features["input_ids"].count(BOS) == 1 and features["input_ids"][0] == BOS
    whole = generator.encode(generator.decode(turns[1].prompt_ids), is_start=True)
    assert whole != list(turns[1].prompt_ids)  # so the pieces matter


def test_a_row_has_the_same_ids_as_the_turn_loop_with_a_real_tokenizer(problem, executor, tokenizer, encode):
    turns = play(problem, TokenizerGenerator(script, tokenizer), executor, COCOS)
    for row, turn in zip(make_rows(problem, WRONG, RIGHT, COCOS), turns, strict=True):
        features = tokenize(row, encode)
        assert prompt_ids(features) == list(turn.prompt_ids)
        assert trained_ids(features) == list(turn.completion.token_ids)


def test_a_row_of_three_turns_has_the_same_ids_as_the_turn_loop(problem, executor):
    generator = MergingGenerator(script)
    turns = play(problem, generator, executor, COCOS, num_turns=3)
    transcript = (
        COCOS.first_turn(problem) + answer(WRONG) + COCOS.later_turn() + answer(RIGHT) + COCOS.later_turn()
    )
    features = tokenize(BoostRow(transcript, answer(RIGHT)), generator.encode)
    assert prompt_ids(features) == list(turns[2].prompt_ids)


def test_a_row_without_trained_tokens_is_an_error(problem):
    row = BoostRow(COCOS.first_turn(problem), "\ufeff")
    with pytest.raises(DataError, match="no trained token"):
        tokenize(row, lambda text, is_start: list(map(ord, text.replace("\ufeff", ""))))


def test_a_row_that_is_too_long_is_an_error_and_never_truncated(encode):
    row = BoostRow("a [BEGIN]\n", "b\n[DONE]")
    length = len(tokenize(row, encode)["input_ids"])
    assert len(tokenize(row, encode, max_length=length)["input_ids"]) == length
    with pytest.raises(
        DataError, match=f"{length} tokens, more than --max_length {length - 1}; raise it or drop the row"
    ):
        tokenize(row, encode, max_length=length - 1)


BAD_ROWS = [
    ("a string", "def f(): 1", "expected an object with the strings 'prompt' and 'completion'"),
    ("a problem", {"text": "t", "test_list": ["x"]}, "this is a problem, from which rows are made: cocos boost-data "),
    ("no completion", {"prompt": "p"}, "expected an object with the strings 'prompt' and 'completion'"),
    ("no prompt", {"completion": "c"}, "expected an object with the strings 'prompt' and 'completion'"),
    ("a number", {"prompt": "p", "completion": 1}, "expected an object with the strings 'prompt' and 'completion'"),
    ("null", {"prompt": None, "completion": "c"}, "expected an object with the strings 'prompt' and 'completion'"),
    ("an empty completion", {"prompt": "p", "completion": " \n"}, "'completion' is empty; remove the row"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "words"), [bad[1:] for bad in BAD_ROWS], ids=[bad[0] for bad in BAD_ROWS])
def test_the_error_of_a_malformed_row_names_file_line_and_reason(tmp_path, row, words):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "p", "completion": "c"}) + "\n" + json.dumps(row))
    with pytest.raises(DataError) as caught:
        load_rows(path)
    assert str(caught.value).startswith(f"{path}:2: ") and words in str(caught.value)


def test_a_file_without_rows_or_without_json_is_an_error(tmp_path):
    for content, words in [("[]", "the file has no rows; make some with"), ('[{"prompt":', "not valid JSON")]:
        path = tmp_path / "rows.json"
        path.write_text(content)
        with pytest.raises(DataError, match=words):
            load_rows(path)
    with pytest.raises(DataError, match="no such file"):
        load_rows(tmp_path / "absent.json")
