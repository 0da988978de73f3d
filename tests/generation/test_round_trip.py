"""Tokenizers and chat templates that do not give back what they get are refused, or a warning names the problem."""

import json
import shutil
from dataclasses import replace

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from cocos.boost.trainer import load_boost_inputs
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import BoostConfig
from cocos.generation.round_trip import prompt_warning
from cocos.generation.tokenizer import TokenTranscripts, load_tokenizer
from cocos.prompts import named_protocol
from tests.support.paths import TOY

BASE = TOY / "base"
FOLDERS = {  # kind of change -> parts of tokenizer.json
    "lower case": {"normalizer": {"type": "Lowercase"}},
    "no newlines": {"normalizer": {"type": "Replace", "pattern": {"String": "\n"}, "content": ""}},
    "one space for two": {"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}},
    "stripped ends": {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}},
    "no spaces": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": False}, "decoder": {"type": "Fuse"}},
    "bytes as they are stored": {"decoder": {"type": "Fuse"}},
}  # fmt: skip
NO_TABS = {"normalizer": {"type": "Replace", "pattern": {"String": "\t"}, "content": ""}}
UNICODE = {"normalizer": {"type": "NFKC"}}
CHAT = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}\n{% endfor %}<|assistant|>"


@pytest.fixture
def load(tmp_path):
    """A function that loads the laboratory's tokenizer with other parts."""

    def load(**parts):
        folder = shutil.copytree(BASE, tmp_path / "model", dirs_exist_ok=True)
        content = json.loads((BASE / "tokenizer.json").read_text()) | parts
        (folder / "tokenizer.json").write_text(json.dumps(content))
        return load_tokenizer(str(folder))

    return load


def warning(tokenizer, *problems, protocol="chat"):
    return prompt_warning(problems, TokenTranscripts(tokenizer, {1}), named_protocol(protocol))


@pytest.mark.parametrize("parts", FOLDERS.values(), ids=FOLDERS)
def test_a_tokenizer_that_changes_programs_is_refused_when_it_is_loaded(load, parts):
    with pytest.raises(
        ValueError, match=r"model: the tokenizer \(.* changes a program: .* becomes .*; try another"
    ):
        load(**parts)


@pytest.mark.parametrize("prefix", ["▁", ""])
def test_a_space_that_sentencepiece_adds_and_removes_is_no_change(problem, prefix):
    alphabet = [*map(chr, range(33, 127)), "▁", *(f"<0x{byte:02X}>" for byte in range(256)), "<s>", "</s>"]
    made = Tokenizer(models.BPE({token: i for i, token in enumerate(alphabet)}, [], byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁")] * bool(prefix) + [normalizers.Replace(" ", "▁")]
    )
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)] if prefix else parts)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    # The template's marks lose the space around them, as Phi's do.
    marks = [AddedToken(f"<|{role}|>", special=True, rstrip=True) for role in ("user", "assistant")]
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    tokenizer.chat_template = CHAT
    exotic = replace(problem, text=f"{problem.text} ünd 数 <s> {{}}")
    for protocol in ("cocos", "chat"):
        assert warning(tokenizer, problem, exotic, protocol=protocol) == ""


def test_exotic_characters_of_one_problem_are_a_warning_and_those_of_most_problems_no_run(load, problem):
    tokenizer = load(**UNICODE)
    exotic = replace(problem, task_id="7", text="Return x² for a number x.")
    found = warning(tokenizer, problem, exotic, protocol="cocos")
    assert "changes problem 7: " in found and r"Return x\xb2 for a" in found and "Return x2 for a" in found
    assert found.endswith("; 1 of 2 are changed: leave them out, or choose another model")
    with pytest.raises(ValueError, match="changes problem 7: "):
        warning(tokenizer, exotic, protocol="cocos")


def test_rows_of_boost_are_compared_too(load, tmp_path):
    load(**UNICODE)
    rows = [{"prompt": f"{word}\n\n[BEGIN]", "completion": "x = 1\n[DONE]"} for word in ("two", "x²", "a\tb")]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    words = [
        "--model_name_or_path",
        tmp_path / "model",
        "--train_data",
        path,
        "--output_dir",
        tmp_path / "out",
    ]
    args = parse_options(BoostConfig, "", [str(word) for word in words])
    assert f"changes row 2 of {path}: 'x\\xb2\\n\\n[BEGIN]" in load_boost_inputs(args).warning
    load(**NO_TABS)
    with pytest.raises(ValueError, match=r"changes row 3 of .*rows\.jsonl: 'a\\tb"):
        load_boost_inputs(args)


def test_composed_characters_are_no_ascii_ones(load, problem):
    tokenizer = load(normalizer={"type": "NFC"})  # Qwen's
    decomposed = replace(problem, task_id="9", text="Is 'cafe\u0301' a word?")
    assert "changes problem 9: " in warning(tokenizer, problem, decomposed, protocol="cocos")


def test_a_lost_tab_of_one_reference_is_no_run(load, problem):
    tokenizer = load(**NO_TABS)
    tabs = replace(problem, task_id="8", code="def double(x):\n\treturn 2 * x")
    with pytest.raises(
        ValueError, match=r"changes problem 8: .*\\n\\treturn 2 \* x' becomes .*\\nreturn 2 \* x'"
    ):
        warning(tokenizer, *[problem] * 9, tabs, protocol="cocos")


def test_a_chat_template_that_leaves_out_the_message_is_no_run(problem):
    tokenizer = load_tokenizer(str(BASE))
    tokenizer.chat_template = CHAT
    assert warning(tokenizer, problem) == ""
    # A template for lists of texts and pictures finds neither in a text.
    tokenizer.chat_template = (
        "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}"
    )
    with pytest.raises(ValueError, match="or its chat template changes problem 1: "):
        warning(tokenizer, problem)
