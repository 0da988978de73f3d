"""The transformers generator: where answers end, and that batching changes nothing."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from cocos.generation.huggingface import HuggingFaceGenerator, eos_token_ids, load_model
from cocos.generation.tokens import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import DONE, protocol
from tests.conftest import ROOT

TOY = str(ROOT / "data/toy/base")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(TOY)


@pytest.fixture
def model():
    return load_model(TOY)


@pytest.fixture(scope="module")
def prompts(tokenizer):
    """Token ids of ten toy prompts of different lengths."""
    first = [protocol("cocos").first_turn(p) for p in load_problems(ROOT / "data/toy/test.jsonl")[:10]]
    return [tokenizer(text)["input_ids"] for text in first]


def test_batched_greedy_answers_equal_those_given_one_by_one(model, tokenizer, prompts):
    assert len({len(prompt) for prompt in prompts}) > 1, (
        "prompts of one length would prove nothing about padding"
    )
    batched = HuggingFaceGenerator(model, tokenizer, 32).generate(prompts)
    split = HuggingFaceGenerator(model, tokenizer, 32, batch_size=3).generate(prompts)
    alone = [HuggingFaceGenerator(model, tokenizer, 32).generate([prompt])[0] for prompt in prompts]
    assert [c.token_ids for c in batched] == [c.token_ids for c in alone] == [c.token_ids for c in split]


def test_an_answer_ends_with_done_and_nothing_after_it(model, tokenizer, prompts):
    for completion in HuggingFaceGenerator(model, tokenizer, 48).generate(prompts):
        assert completion.text.count(DONE) == 1 and completion.text.endswith(DONE)
        assert tokenizer.decode(list(completion.token_ids)) == completion.text
        assert not completion.is_truncated and not completion.is_eos


def test_an_answer_without_end_is_cut_at_the_limit_and_says_so(model, tokenizer, prompts):
    for completion in HuggingFaceGenerator(model, tokenizer, 4).generate(prompts):
        assert len(completion.token_ids) == 4
        assert completion.is_truncated


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_generation_stops_at_every_eos_id_and_keeps_it(model, tokenizer, prompts, pad_is_eos):
    """The third token of a greedy answer is declared a further end-of-sequence id: the answer must end there."""
    greedy = HuggingFaceGenerator(model, tokenizer, 16).generate(prompts[:1])[0].token_ids
    stop = greedy[2]
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, stop]
    other = load_tokenizer(TOY)
    if pad_is_eos:
        other.pad_token = other.eos_token
    assert eos_token_ids(model, other) == {tokenizer.eos_token_id, stop}
    completion = HuggingFaceGenerator(model, other, 16).generate(prompts[:1])[0]
    assert completion.token_ids == greedy[: greedy.index(stop) + 1]
    assert completion.is_eos and not completion.is_truncated


def test_a_sampled_pad_id_inside_an_answer_is_kept_because_lengths_decide(model, tokenizer, prompts):
    pad, [a, b] = tokenizer.pad_token_id, prompts[0][:2]
    assert pad != tokenizer.eos_token_id
    completion = HuggingFaceGenerator(model, tokenizer, 4).completion([a, pad, b, pad], duration_s=0.0)
    assert completion.token_ids == (a, pad, b, pad)
    assert completion.is_truncated


def test_the_checkpoints_own_sampling_defaults_do_not_leak_into_evaluation(model, tokenizer, prompts):
    plain = HuggingFaceGenerator(model, tokenizer, 24).generate(prompts)
    biased = load_model(TOY)
    biased.generation_config.repetition_penalty = 5.0
    biased.generation_config.no_repeat_ngram_size = 1
    biased.generation_config.do_sample = True
    leaked = HuggingFaceGenerator(biased, tokenizer, 24).generate(prompts)
    assert [c.token_ids for c in leaked] == [c.token_ids for c in plain]


def test_sampling_covers_the_whole_distribution(model, tokenizer, prompts):
    """Top-k and nucleus truncation are off: over 400 draws of one token, more than 50 different ones come at T = 3."""
    generator = HuggingFaceGenerator(model, tokenizer, 1, temperature=3.0)
    torch.manual_seed(0)
    drawn = {completion.token_ids for completion in generator.generate([prompts[0]] * 400)}
    assert len(drawn) > 50


def test_a_tokenizer_without_pad_token_pads_with_eos(tmp_path, tokenizer):
    other = load_tokenizer(TOY)
    other.pad_token = None
    other.save_pretrained(tmp_path)
    AutoModelForCausalLM.from_pretrained(TOY).save_pretrained(tmp_path)
    assert load_tokenizer(str(tmp_path)).pad_token_id == tokenizer.eos_token_id


def test_a_missing_checkpoint_is_named():
    with pytest.raises(
        ValueError, match=r"outputs/nowhere: no such checkpoint directory; give a directory or a hub id"
    ):
        load_model("./outputs/nowhere")


def test_a_tokenizer_with_neither_pad_nor_eos_token_is_refused_with_the_remedy(tmp_path):
    bare = load_tokenizer(TOY)
    bare.pad_token = bare.eos_token = None
    bare.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="neither a pad nor an eos token; name one in its"):
        load_tokenizer(str(tmp_path))
