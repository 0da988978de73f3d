"""The transformers generator: the end of completions, batching, caching and sampling; chat transcripts."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import torch
from torch.overrides import TorchFunctionMode
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    GPT2Config,
    Lfm2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
)
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_generator
from cocos.generation import fixed_steps
from cocos.generation.batch import MAX_PADDING, batches, passes
from cocos.generation.grouped_attention import grouped_attention
from cocos.generation.huggingface import HuggingFaceGenerator, load_model, slowness
from cocos.generation.sampling import BLOCK_IDS, CPU_ROWS, sample_ids, uniform_draws
from cocos.generation.tokenizer import TokenTranscripts, eos_token_ids, load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import DONE, named_protocol
from tests.support.paths import ROOT

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
    first = [named_protocol("cocos").first_turn(p) for p in load_problems(ROOT / "data/toy/test.jsonl")[:10]]
    return [tokenizer(text)["input_ids"] for text in first]


@pytest.mark.parametrize("block", [256, 8])
def test_steps_of_fixed_shape_give_the_same_answers(model, tokenizer, prompts, block, monkeypatch):
    """A GPU replays them as a graph, a processor runs them one by one. The second call reuses the first's cache."""
    monkeypatch.setattr(fixed_steps, "BLOCK", block)
    answers = []
    for is_fixed in (False, True):
        generator = HuggingFaceGenerator(model, tokenizer, 32)
        generator.has_fixed_steps = is_fixed
        first = generator.generate(prompts[:6] + prompts[:2], 0.8, seeds=range(8))
        later = [[*prompt, *c.token_ids, *prompts[9]] for prompt, c in zip(prompts, first, strict=False)]
        second = generator.generate(later, 0.0)
        answers.append([c.token_ids for c in first + second])
    assert answers[0] == answers[1]
    assert len({len(ids) for ids in answers[0]}) > 1, "rows that end together would not test ended rows"


def test_greedy_answers_do_not_depend_on_the_batch(model, tokenizer, prompts):
    assert len({len(prompt) for prompt in prompts}) > 1, "prompts of equal length would not test padding"
    batched = HuggingFaceGenerator(model, tokenizer, 32).generate(prompts, 0.0)
    split = HuggingFaceGenerator(model, tokenizer, 32, batch_size=3).generate(prompts, 0.0)
    alone = [HuggingFaceGenerator(model, tokenizer, 32).generate([prompt], 0.0)[0] for prompt in prompts]
    assert [c.token_ids for c in batched] == [c.token_ids for c in alone] == [c.token_ids for c in split]


def test_an_answer_ends_with_done_and_nothing_after_it(model, tokenizer, prompts):
    for completion in HuggingFaceGenerator(model, tokenizer, 48).generate(prompts, 0.0):
        assert completion.text.count(DONE) == 1 and completion.text.endswith(DONE)
        assert tokenizer.decode(list(completion.token_ids)) == completion.text
        assert not completion.is_truncated and not completion.is_eos


def test_an_answer_that_reaches_the_limit_is_truncated(model, tokenizer, prompts):
    for completion in HuggingFaceGenerator(model, tokenizer, 4).generate(prompts, 0.0):
        assert len(completion.token_ids) == 4
        assert completion.is_truncated


@pytest.mark.parametrize("pad_is_eos", [False, True])
def test_generation_stops_at_every_eos_id_and_keeps_it(model, tokenizer, prompts, pad_is_eos):
    """Declare the third token of a greedy completion an end-of-sequence id; the completion must end there."""
    greedy = HuggingFaceGenerator(model, tokenizer, 16).generate(prompts[:1], 0.0)[0].token_ids
    stop = greedy[2]
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, stop]
    other = load_tokenizer(TOY)
    if pad_is_eos:
        other.pad_token = other.eos_token
    assert eos_token_ids(model.generation_config, other) == {tokenizer.eos_token_id, stop}
    completion = HuggingFaceGenerator(model, other, 16).generate(prompts[:1], 0.0)[0]
    assert completion.token_ids == greedy[: greedy.index(stop) + 1]
    assert completion.is_eos and not completion.is_truncated


def test_a_sampled_pad_id_inside_a_completion_is_kept(model, tokenizer, prompts):
    pad, [a, b] = tokenizer.pad_token_id, prompts[0][:2]
    assert pad != tokenizer.eos_token_id
    completion = HuggingFaceGenerator(model, tokenizer, 4).completion([a, pad, b, pad], duration_s=0.0)
    assert completion.token_ids == (a, pad, b, pad)
    assert completion.is_truncated


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_that_computes_nan_stops_with_a_message(model, tokenizer, prompts, temperature):
    with torch.no_grad():
        next(iter(model.parameters())).fill_(torch.nan)
    generator = HuggingFaceGenerator(model, tokenizer, 4)
    with pytest.raises(ValueError, match=r"computes NaN in torch.float32.* --dtype float32"):
        generator.generate(prompts[:2], temperature, [1, 2])


def test_sampling_defaults_of_the_checkpoint_have_no_effect(model, tokenizer, prompts):
    plain = HuggingFaceGenerator(model, tokenizer, 24).generate(prompts, 0.0)
    biased = load_model(TOY)
    biased.generation_config.repetition_penalty = 5.0
    biased.generation_config.no_repeat_ngram_size = 1
    biased.generation_config.do_sample = True
    leaked = HuggingFaceGenerator(biased, tokenizer, 24).generate(prompts, 0.0)
    assert [c.token_ids for c in leaked] == [c.token_ids for c in plain]


def test_sampling_covers_the_whole_distribution(model, tokenizer, prompts):
    """Without top-k or nucleus truncation, 400 draws of one token at T = 3 give more than 50 different ones."""
    generator = HuggingFaceGenerator(model, tokenizer, 1)
    torch.manual_seed(0)
    drawn = {completion.token_ids for completion in generator.generate([prompts[0]] * 400, temperature=3.0)}
    assert len(drawn) > 50


def test_a_tokenizer_without_pad_token_pads_with_eos(tmp_path, tokenizer):
    other = load_tokenizer(TOY)
    other.pad_token = None
    other.save_pretrained(tmp_path)
    AutoModelForCausalLM.from_pretrained(TOY).save_pretrained(tmp_path)
    assert load_tokenizer(str(tmp_path)).pad_token_id == tokenizer.eos_token_id


def test_a_missing_checkpoint_is_an_error_that_names_it():
    with pytest.raises(
        ValueError, match=r"outputs/nowhere: no such folder; give a checkpoint folder or a hub id"
    ):
        load_model("./outputs/nowhere")


def test_a_tokenizer_with_neither_pad_nor_eos_token_is_rejected_with_the_remedy(tmp_path):
    bare = load_tokenizer(TOY)
    bare.pad_token = bare.eos_token = None
    AutoModelForCausalLM.from_pretrained(TOY).save_pretrained(tmp_path)
    bare.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="neither a pad nor an eos token; name one in its"):
        load_tokenizer(str(tmp_path))


def test_weights_and_tokenizers_that_cannot_be_loaded_name_the_checkpoint(tmp_path):
    folder = shutil.copytree(TOY, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 8}))
    with pytest.raises(ValueError, match=f"{folder}: the shapes above do not fit its config.json"):
        load_model(str(folder))
    for content in ("{", '{"a": 1}'):
        (folder / "tokenizer.json").write_text(content)
        with pytest.raises(ValueError, match=f"{folder}: the tokenizer cannot be loaded"):
            load_tokenizer(str(folder))


def test_a_prompt_beyond_a_table_of_learned_positions_is_refused_with_the_numbers(tokenizer):
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=16, n_layer=1, n_head=2)
    generator = HuggingFaceGenerator(AutoModelForCausalLM.from_config(config), tokenizer, 20)
    assert generator.context_length == 32
    assert generator.generate([[5] * 12], 0.0)
    with pytest.raises(ValueError, match="a prompt of 13 tokens and 20 new ones exceed the 32 positions"):
        generator.generate([[5] * 13], 0.0)


def play(generator, prompts, messages, batch_size=None):
    """Play three turns of every prompt, `batch_size` trajectories at a time, and return their completions."""
    played = []
    for start in range(0, len(prompts), batch_size or len(prompts)):
        part = slice(start, start + (batch_size or len(prompts)))
        transcripts, turns = [list(prompt) for prompt in prompts[part]], []
        for turn in range(3):
            turns.append(generator.generate(transcripts, 0.0))
            transcripts = [
                [*transcript, *completion.kept_ids, *message[turn]]
                for transcript, completion, message in zip(
                    transcripts, turns[-1], messages[part], strict=True
                )
            ]
        played += [[c.token_ids for c in completions] for completions in zip(*turns, strict=True)]
    return played


def random_ids(rng, most):
    return [rng.randrange(5, 600) for _ in range(rng.randint(1, most))]


@pytest.fixture(scope="module")
def conversations():
    """Prompts of random ids and lengths, with three messages for each."""
    rng = Random(0)
    return [random_ids(rng, 40) for _ in range(9)], [
        [random_ids(rng, 12) for _ in range(3)] for _ in range(9)
    ]


def small(config, **kwargs):
    """Return a model of two layers with random weights, scaled so that no two logits are nearly equal."""
    torch.manual_seed(1)
    sizes = {"vocab_size": 607, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = AutoModelForCausalLM.from_config(
        config(**sizes, pad_token_id=0, tie_word_embeddings=False, **kwargs)
    )
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(40)
    return model.eval()


MODELS = {
    "the toy": lambda: load_model(TOY),
    "grouped heads": lambda: small(Qwen2Config, intermediate_size=64, num_key_value_heads=2),
    "one key head": lambda: small(LlamaConfig, intermediate_size=64, num_key_value_heads=1, head_dim=16),
    "a sliding window": lambda: small(
        MistralConfig, intermediate_size=64, num_key_value_heads=2, sliding_window=9
    ),
    "learned positions": lambda: small(GPT2Config),
    "a recurrent state": lambda: small(
        Lfm2Config, intermediate_size=64, num_key_value_heads=2, layer_types=["conv", "full_attention"]
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_three_batched_turns_equal_model_generate_on_each_transcript_alone(tokenizer, conversations, name):
    """Padding, cached keys and values, and rows of different lengths do not change greedy ids."""
    model = MODELS[name]()
    model.generation_config.eos_token_id = list(range(1, 607, 9))
    prompts, messages = conversations
    length = 12

    class Alone(HuggingFaceGenerator):
        def generate(self, prompts, temperature, seeds=None):
            config = GenerationConfig(
                max_new_tokens=length, eos_token_id=sorted(self.eos_ids), pad_token_id=0
            )
            rows = [
                self.model.generate(torch.tensor([p]), generation_config=config)[0, len(p) :] for p in prompts
            ]
            return [self.completion(row.tolist(), 0.0) for row in rows]

    alone = play(Alone(model, tokenizer), prompts, messages)
    assert len({len(ids) for turns in alone for ids in turns}) > 3
    for size in (None, 4):
        assert (
            play(HuggingFaceGenerator(model, tokenizer, length, batch_size=size), prompts, messages, size)
            == alone
        )
    # More trajectories at a time than fit into a batch: some transcripts are cached, others evicted.
    assert play(HuggingFaceGenerator(model, tokenizer, length, batch_size=4), prompts, messages) == alone


def test_batched_turns_equal_single_ones_under_autocast(model, tokenizer, prompts):
    """Training with --bf16 samples so. Keys are float32 then, because the rotation is, and values bfloat16."""
    messages = [[prompt, prompt, []] for prompt in prompts]
    with torch.autocast("cpu", torch.bfloat16):
        generator = HuggingFaceGenerator(model, tokenizer, 24, batch_size=5)
        batched = play(generator, prompts, messages, 5)
        alone = play(HuggingFaceGenerator(model, tokenizer, 24), prompts, messages, 1)
    assert {states.dtype for states in generator.cache.transcripts[0].layers[0]} == {
        torch.float32,
        torch.bfloat16,
    }
    # All of them where this was written; elsewhere bfloat16 may round a near tie to the other id.
    assert sum(one == other for one, other in zip(batched, alone, strict=True)) >= len(prompts) - 1


@pytest.fixture
def computed(model):
    """Number of ids that each forward pass of `model` computes, including padding."""
    sizes = []
    model.register_forward_pre_hook(
        lambda _, __, kwargs: sizes.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    return sizes


def continued(prompts, completions, message):
    return [[*p, *c.kept_ids, *message] for p, c in zip(prompts, completions, strict=True)]


def test_a_turn_computes_only_its_new_ids(model, tokenizer, prompts, computed):
    """The last sampled id and the 3 ids of the message are new, for all lengths of prompts and answers."""
    generator = HuggingFaceGenerator(model, tokenizer, 24, batch_size=10)
    first = generator.generate(prompts, 0.0)
    assert len({len(c.token_ids) for c in first}) > 1
    assert not any(c.is_eos for c in first)
    computed.clear()
    second = generator.generate(continued(prompts, first, [7, 8, 9]), 0.0)
    assert computed[0] == 10 * (1 + 3)
    fresh = HuggingFaceGenerator(model, tokenizer, 24).generate(continued(prompts, first, [7, 8, 9]), 0.0)
    assert [c.token_ids for c in second] == [c.token_ids for c in fresh]


def test_a_repeated_turn_computes_one_id_and_evicts_nothing(model, tokenizer, prompts, computed):
    generator = HuggingFaceGenerator(model, tokenizer, 24, batch_size=10)
    first = generator.generate(prompts, 0.0)
    computed.clear()
    again = generator.generate(prompts[4:6], 0.0)
    assert computed[0] == 2 and [c.token_ids for c in again] == [c.token_ids for c in first[4:6]]
    computed.clear()
    generator.generate(continued(prompts, first, [7, 8, 9]), 0.0)
    assert computed[0] == 10 * (1 + 3)


def test_a_common_beginning_is_computed_once(model, tokenizer, prompts, computed):
    """Ten prompts behind few-shot examples of 150 ids: a pass of 150 ids, then what follows them."""
    examples = [5 + i % 90 for i in range(150)]
    behind = [[*examples, *prompt] for prompt in prompts]
    generator = HuggingFaceGenerator(model, tokenizer, 24, batch_size=10)
    made = generator.generate(behind, 0.0)
    start, *rest = computed
    longest, first_ids = max(map(len, prompts)), {prompt[0] for prompt in prompts}
    assert len(first_ids) > 1 or start > 150  # prompts may begin with the same ids, too
    assert 150 <= start < 150 + longest and sum(rest[:2]) <= 2 * 10 * longest
    computed.clear()
    alone = [c for p in behind for c in HuggingFaceGenerator(model, tokenizer, 24).generate([p], 0.0)]
    assert computed[0] == len(behind[0])
    assert [c.token_ids for c in made] == [c.token_ids for c in alone]


def test_the_cache_holds_at_most_a_batch_and_evicts_the_oldest(model, tokenizer, prompts):
    generator = HuggingFaceGenerator(model, tokenizer, 4, batch_size=3)
    for part in (prompts, prompts[:2], prompts[5:6], prompts):
        generator.generate(part, 0.0)
        assert len(generator.cache.transcripts) <= 3
        stored = {tuple(transcript.ids[: len(p)]) for transcript in generator.cache.transcripts for p in part}
        assert stored & {tuple(p) for p in part}


def test_ended_rows_leave_the_batch_at_once(model, tokenizer, prompts, computed):
    """A decoding step computes one id per row that has not ended, whichever rows end first."""
    model.generation_config.eos_token_id = list(range(4, 604, 12))
    generator = HuggingFaceGenerator(model, tokenizer, 24, batch_size=10)
    completions = generator.generate(prompts, 3.0, range(10))
    lengths = [len(c.token_ids) for c in completions]
    assert len(set(lengths)) > 4 and lengths != sorted(lengths)
    steps = [sum(length > step for length in lengths) for step in range(1, max(lengths))]
    assert computed[-len(steps) :] == steps
    alone = HuggingFaceGenerator(model, tokenizer, 24, batch_size=1).generate(prompts, 3.0, range(10))
    assert [c.token_ids for c in completions] == [c.token_ids for c in alone]


def test_a_prompt_that_would_pad_the_others_too_much_gets_a_batch_of_its_own(model, tokenizer):
    assert MAX_PADDING == 32_768
    assert batches([5, 3, 4, 3], 3) == [[1, 3, 2], [0]]
    assert batches([10] * 40 + [829], 64) == [[*range(41)]]  # 40 x 819 = 32,760
    assert batches([10] * 40 + [830], 64) == [[*range(40)], [40]]
    assert batches([10] * 20 + [829, 830, 1700], 64) == [[*range(22)], [22]]  # 20 x 819 + 21 + 22 x 870
    assert batches([], 4) == []
    # Both batches are still cached in the next turn, also if all prompts may share one.
    prompts = [
        [5 + (i * (row + 1)) % 600 for i in range(length)] for row, length in enumerate([40] * 40 + [900])
    ]
    generator = HuggingFaceGenerator(model, tokenizer, 2)
    first = generator.generate(prompts, 0.0)
    assert len(generator.cache.transcripts) == 41
    assert (
        first[40].token_ids
        == HuggingFaceGenerator(model, tokenizer, 2).generate(prompts[40:], 0.0)[0].token_ids
    )


def test_new_prompts_of_similar_length_share_a_pass(model, tokenizer, computed):
    """112 is within an eighth of 100, 130 is not; two prompts of at most 131 ids are enough for a pass."""
    lengths = (300, 112, 100, 131, 100, 130, 100)
    assert passes(lengths) == [([2, 4, 6, 1], 112), ([5, 3], 131), ([0], 300)]
    prompts = [[5 + (i * (row + 1)) % 600 for i in range(length)] for row, length in enumerate(lengths)]
    generator = HuggingFaceGenerator(model, tokenizer, 6, batch_size=7)
    together = generator.generate(prompts, 0.0)
    assert computed[:3] == [4 * 112, 2 * 131, 300] and computed[3] <= 7
    alone = HuggingFaceGenerator(model, tokenizer, 6, batch_size=1).generate(prompts, 0.0)
    assert [c.token_ids for c in together] == [c.token_ids for c in alone]


def test_prompts_with_a_stored_beginning_share_a_pass_if_as_many_of_their_ids_are_new(
    model, tokenizer, computed
):
    """60 ids, as of a system message, are stored; a long prompt does not widen the passes of the others."""
    shared = [5 + 7 * i % 600 for i in range(60)]
    lengths = (700, 125, 120, 130, 300)
    prompts = [
        [*shared, *(5 + (i * (row + 2)) % 600 for i in range(length))] for row, length in enumerate(lengths)
    ]
    generator = HuggingFaceGenerator(model, tokenizer, 6, batch_size=6)
    generator.generate([[*shared, 9]], 0.0)
    computed.clear()
    first = generator.generate(prompts, 0.0)
    assert computed[:3] == [3 * 130, 300, 700] and computed[3] <= 5
    # In the second turn, rows have 4 new ids, or 400.
    messages = [[7] * (400 if row == 1 else 3) for row in range(5)]
    second_prompts = [
        [*p, *c.kept_ids, *message] for p, c, message in zip(prompts, first, messages, strict=True)
    ]
    computed.clear()
    second = generator.generate(second_prompts, 0.0)
    assert computed[:2] == [4 * 4, 401] and computed[2] <= 5
    for turn, turn_prompts in ((first, prompts), (second, second_prompts)):
        alone = HuggingFaceGenerator(model, tokenizer, 6, batch_size=1).generate(turn_prompts, 0.0)
        assert [c.token_ids for c in turn] == [c.token_ids for c in alone]


def test_equal_prompts_are_computed_once(model, tokenizer, prompts, computed):
    generator = HuggingFaceGenerator(model, tokenizer, 12)
    siblings = generator.generate([prompts[0]] * 6 + [prompts[1]] * 2, temperature=1.0)
    assert computed[0] == 2 * max(map(len, prompts[:2]))
    assert len({c.token_ids for c in siblings[:6]}) > 1
    alone = HuggingFaceGenerator(model, tokenizer, 12)
    apart = [alone.generate([prompts[0]], 1.0, [seed])[0].token_ids for seed in range(6)]
    together = alone.generate([prompts[0]] * 6, 1.0, range(6))
    assert [c.token_ids for c in together] == apart


def test_a_sampled_completion_depends_on_prompt_and_seed_alone(model, tokenizer, prompts):
    sampled = {
        size: HuggingFaceGenerator(model, tokenizer, 24, size).generate(prompts, 1.0, range(10))
        for size in (None, 1, 4)
    }
    assert len({tuple(c.token_ids for c in completions) for completions in sampled.values()}) == 1
    generator = HuggingFaceGenerator(model, tokenizer, 24, 4)
    backwards = generator.generate(prompts[::-1], 1.0, range(10)[::-1])
    assert [c.token_ids for c in backwards[::-1]] == [c.token_ids for c in sampled[None]]
    assert generator.generate(prompts, 1.0, range(1, 11)) != sampled[None]


def test_without_seeds_sampling_follows_the_random_state_of_the_process(model, tokenizer, prompts):
    generator = HuggingFaceGenerator(model, tokenizer, 24)
    torch.manual_seed(3)
    first, second = generator.generate(prompts, 1.0), generator.generate(prompts, 1.0)
    torch.manual_seed(3)
    assert [c.token_ids for c in generator.generate(prompts, 1.0)] == [c.token_ids for c in first]
    assert [c.token_ids for c in second] != [c.token_ids for c in first]


def test_a_temperature_applies_to_one_call(model, tokenizer, prompts):
    generator = HuggingFaceGenerator(model, tokenizer, 24)
    greedy, sampled, again = (generator.generate(prompts, temperature) for temperature in (0.0, 2.0, 0.0))
    assert [c.token_ids for c in again] == [c.token_ids for c in greedy]
    assert [c.token_ids for c in sampled] != [c.token_ids for c in greedy]


def test_ids_are_drawn_with_their_probability():
    """Of 1,000 evenly spaced draws, p * 1000 select an id of probability p, up to rounding at either end."""
    logits = torch.tensor([0.0, -1e9, 2.0, 1.0, -3.0])
    draws = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    for temperature in (0.5, 1.0, 3.0):
        counts = torch.bincount(sample_ids(logits.expand(1000, -1), temperature, draws)[0], minlength=5)
        expected = 1000 * (logits / temperature).softmax(-1)
        assert (counts - expected).abs().max() <= 1
        assert counts[1] == 0


@pytest.mark.parametrize("size", [1023, 1025, 151_936])
def test_blocks_of_a_large_vocabulary_select_the_ids_of_one_cumulative_sum(size):
    logits = 3 * torch.randn(64, size, generator=torch.Generator().manual_seed(0))
    draws = uniform_draws(range(64), 4).T
    cumulative = (logits.double() / 0.8).softmax(-1).cumsum(-1)
    for draw in draws:
        expected = torch.searchsorted(cumulative, draw[:, None] * cumulative[:, -1:], right=True)[:, 0]
        ids, logps = sample_ids(logits, 0.8, draw)
        assert ids.tolist() == expected.tolist()
        exact = (logits.double() / 0.8).log_softmax(-1).gather(1, ids[:, None])[:, 0]
        assert logps.tolist() == pytest.approx(exact.tolist(), abs=1e-5)
    assert sample_ids(logits, 0.8, None)[1] is None, "greedy decoding draws nothing"


@pytest.mark.parametrize("size", [5, 1025])
def test_ids_are_drawn_without_a_cumulative_sum_that_a_gpu_refuses_when_it_is_deterministic(size):
    """--full_determinism makes CUDA refuse cumulative sums of floating-point numbers."""

    class Strict(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            is_sum = getattr(function, "__name__", "") in ("cumsum", "cumsum_")
            assert not (is_sum and args[0].is_floating_point()), "cumsum_cuda_kernel is not deterministic"
            return function(*args, **(kwargs or {}))

    with Strict():
        with pytest.raises(AssertionError, match="not deterministic"):
            torch.ones(3).cumsum(-1)
        assert sample_ids(torch.zeros(1, size), 1.0, torch.tensor([0.5]))[0].item() == size // 2


def test_the_output_layer_of_frozen_weights_is_not_copied_for_every_prompt(model, tokenizer, prompts):
    """torch.matmul repeats the weights per row if they need no gradient and its input is not contiguous."""
    vocabulary = model.config.vocab_size
    model.requires_grad_(False)
    try:
        with torch.profiler.profile(record_shapes=True) as profile:
            HuggingFaceGenerator(model, tokenizer, 2).generate(prompts, 0.0)
    finally:
        model.requires_grad_(True)
    products = [event.input_shapes for event in profile.events() if event.name in ("aten::mm", "aten::bmm")]
    of_output_layer = [shapes for shapes in products if any(vocabulary in shape for shape in shapes)]
    assert of_output_layer and all(len(shape) == 2 for shapes in of_output_layer for shape in shapes)


def test_a_model_that_accepts_no_cache_is_rejected(tokenizer):
    with pytest.raises(ValueError, match="MambaForCausalLM takes no past_key_values"):
        HuggingFaceGenerator(small(MambaConfig), tokenizer)


TEMPLATE = (
    "{% for m in messages %}<|open|>{{ m.role }}\n{{ m.content | trim }}<|close|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|open|>assistant\n{% endif %}"
)


@pytest.fixture
def chat_tokenizer():
    """The toy tokenizer with a chat template that has a special token for the end of a turn."""
    tokenizer = load_tokenizer(TOY)
    tokenizer.add_special_tokens({"extra_special_tokens": ["<|open|>", "<|close|>"]})
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.mark.parametrize("end", ["<|close|>", "<eos>", None])
def test_a_chat_transcript_has_the_ids_of_the_rendered_conversation(chat_tokenizer, end):
    """The completion ends with the end of turn, with another end-of-sequence id, or at the limit."""
    eos = chat_tokenizer.convert_tokens_to_ids(["<|close|>", "<eos>"])
    transcripts = TokenTranscripts(chat_tokenizer, eos)
    words, answers = named_protocol("chat"), ["```python\nx = 1\n```", "Sorry.\nys = [x for x in xs]"]
    messages = [{"role": "user", "content": "Write a function."}]
    ids = transcripts.start(messages[0]["content"], is_chat=True)
    for text in answers:
        sampled = chat_tokenizer(text, add_special_tokens=False)[
            "input_ids"
        ] + chat_tokenizer.convert_tokens_to_ids([end] if end else [])
        completion = transcripts.completion(sampled, 0.0)
        assert (completion.text, completion.is_eos, completion.is_truncated) == (text, bool(end), not end)
        ids = transcripts.extend(ids, completion, words.later_turn(), is_chat=True)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": words.later_turn()}]
        whole = chat_tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert chat_tokenizer.decode(ids) == whole
        assert ids == chat_tokenizer(whole, add_special_tokens=False)["input_ids"]


def test_a_chat_keeps_sampled_ids_that_differ_from_the_encoding_of_their_text(chat_tokenizer):
    transcripts = TokenTranscripts(chat_tokenizer, [chat_tokenizer.convert_tokens_to_ids("<|close|>")])
    letters = [chat_tokenizer.convert_tokens_to_ids(letter) for letter in "return"]
    assert chat_tokenizer.decode(letters) == "return" and chat_tokenizer("return")["input_ids"] != letters
    prompt = transcripts.start("Go.", is_chat=True)
    longer = transcripts.extend(prompt, transcripts.completion(letters, 0.0), "Again.", is_chat=True)
    assert longer[: len(prompt) + 6] == prompt + letters


def test_a_chat_with_a_model_that_has_no_template_is_rejected_with_the_remedy(tokenizer):
    with pytest.raises(ValueError, match="no chat template; choose --protocol cocos or cocos-fewshot"):
        TokenTranscripts(tokenizer, []).start("Go.", is_chat=True)


def test_a_system_message_stands_in_the_first_message_where_the_template_has_no_system_role(chat_tokenizer):
    with_role = TokenTranscripts(chat_tokenizer, []).start("Go.", is_chat=True, system="Be brief.")
    without = copy.deepcopy(chat_tokenizer)
    without.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        + TEMPLATE
    )
    transcripts = TokenTranscripts(without, [])
    merged = transcripts.start("Be brief.\n\nGo.", is_chat=True)
    assert transcripts.start("Go.", is_chat=True, system="Be brief.") == merged != with_role


def test_variables_of_the_chat_template_are_set_and_saved_with_the_model(chat_tokenizer, tmp_path):
    """As Qwen3's: without thoughts, the answer begins with an empty one."""
    chat_tokenizer.chat_template = TEMPLATE.replace(
        "assistant\n{% endif %}",
        "assistant\n{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}",
    )
    shutil.copytree(TOY, tmp_path / "base")
    chat_tokenizer.save_pretrained(tmp_path / "base")
    prompts = {}
    for value in (None, True, False):
        options = {"enable_thinking": value} if value is not None else None
        loaded = load_tokenizer(str(tmp_path / "base"), template_variables=options)
        transcripts = TokenTranscripts(loaded, [])
        first = transcripts.start("Go.", is_chat=True)
        prompts[value] = [
            transcripts.show(ids)
            for ids in (first, transcripts.extend(first, transcripts.quote("x"), "Again.", is_chat=True))
        ]
    shutil.copytree(TOY, tmp_path / "trained")
    loaded.save_pretrained(tmp_path / "trained")
    assert prompts[None] == prompts[True]
    assert prompts[False][0] == f"{prompts[None][0]}<think></think>"
    assert prompts[False][1].count("<think></think>") == 2
    saved = TokenTranscripts(load_tokenizer(str(tmp_path / "trained")), [])
    assert saved.show(saved.start("Go.", is_chat=True)) == prompts[False][0]
    with pytest.raises(ValueError, match="does not use enable_thought; leave it out"):
        load_tokenizer(str(tmp_path / "base"), template_variables={"enable_thought": False})


def test_a_chat_template_is_chosen_by_its_name_and_saved_as_the_default_one(chat_tokenizer, tmp_path):
    templates = {name: TEMPLATE.replace("user", f"{name} user") for name in ("rag", "tool_use")}
    chat_tokenizer.chat_template = templates
    folder = shutil.copytree(TOY, tmp_path / "base")
    chat_tokenizer.save_pretrained(folder)

    def first_prompt(folder, **options):
        transcripts = TokenTranscripts(load_tokenizer(str(folder), **options), [])
        return transcripts.show(transcripts.start("Go.", is_chat=True, system="Be brief."))

    with pytest.raises(
        ValueError, match=r"none by default; choose one: --chat_template (rag or tool_use|tool_use or rag)$"
    ):
        first_prompt(folder)
    with pytest.raises(
        ValueError, match=r"--chat_template x: .* has no chat template of that name; its names are "
    ):
        first_prompt(folder, chat_template="x")
    chat_tokenizer.chat_template = templates["rag"]
    transcripts = TokenTranscripts(chat_tokenizer, [])
    expected = transcripts.show(transcripts.start("Go.", is_chat=True, system="Be brief."))
    assert first_prompt(folder, chat_template="rag") == expected
    trained = shutil.copytree(TOY, tmp_path / "trained")
    load_tokenizer(str(folder), chat_template="rag").save_pretrained(trained)
    assert first_prompt(trained) == first_prompt(trained, chat_template="rag") == expected


TOOL_TEMPLATE = (
    "{% if tools %}<|open|>tools\n{{ tools | tojson }} as <tool_call>{...}</tool_call><|close|>\n{% endif %}"
    + TEMPLATE
)
CALL = '{"name": "f", "arguments": {"code": "x = 1"}}\n</tool_call>'


def test_tools_stand_in_the_prompt_which_starts_the_call_and_a_call_is_answered_by_the_tool(chat_tokenizer):
    chat_tokenizer.chat_template = TOOL_TEMPLATE
    transcripts = TokenTranscripts(chat_tokenizer, [chat_tokenizer.convert_tokens_to_ids("<|close|>")])
    tools = [{"type": "function", "function": {"name": "f", "description": "Run.", "parameters": {}}}]
    prompt = transcripts.start("Go.", is_chat=True, system="Be brief.", tools=tools)
    shown = transcripts.show(prompt)
    assert shown.startswith("<|open|>tools\n[{") and '"name": "f"' in shown
    assert shown.endswith(
        "<|open|>system\nBe brief.<|close|>\n<|open|>user\nGo.<|close|>\n<|open|>assistant\n<tool_call>\n"
    )
    for answer, role in ((CALL, "tool"), ("I am done.", "user")):
        completion = transcripts.quote(answer)
        longer = transcripts.extend(prompt, completion, "2 of 3 pass.", True, role)
        assert transcripts.show(longer) == (
            f"{shown}{answer}<|close|>\n<|open|>{role}\n2 of 3 pass.<|close|>\n<|open|>assistant\n"
        )


def test_a_template_without_tools_is_rejected_with_the_remedy(chat_tokenizer):
    with pytest.raises(ValueError, match="a chat template without tools; choose another --agent"):
        TokenTranscripts(chat_tokenizer, []).start("Go.", is_chat=True, tools=[{"type": "function"}])


def test_a_missing_vllm_is_an_error_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    options = {"model_name_or_path": TOY, "test_data": "x", "output_dir": "y"}
    with pytest.raises(ValueError, match=r"pip install .*\[vllm\]"):
        open_generator(EvalConfig(**options, generator="vllm"))


RANK = """
import sys, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from cocos.generation import GenerationStopped, Progress
from cocos.generation.huggingface import HuggingFaceGenerator, load_model
from cocos.generation.tokenizer import load_tokenizer

toy, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=2)
tokenizer = load_tokenizer(toy)
prompts = [[5 + i, 40, 60 + i, 9] for i in range(7)][: 2 if rank else 7]
whole = HuggingFaceGenerator(load_model(toy), tokenizer, 9 + 4 * rank)
sharded = load_model(toy)
for layer in sharded.model.layers:
    fully_shard(layer)
fully_shard(sharded)
generator = HuggingFaceGenerator(sharded, tokenizer, 9 + 4 * rank, batch_size=3)
assert generator.is_collective and not whole.is_collective
for part in (prompts, prompts[:1]):
    expected = [c.token_ids for c in whole.generate(part, 0.0)]
    assert [c.token_ids for c in generator.generate(part, 0.0)] == expected
steps = []


class Counter(Progress):
    def add(self, num_tokens, num_ended):
        steps.append(num_tokens)


generator.progress = Counter()
generator.is_stopped = lambda: rank == 1 and len(steps) == 4  # the other rank hears of it in the same step
try:
    generator.generate(prompts, 0.0)
except GenerationStopped:
    print("stopped after", len(steps))
print("equal")
"""


@pytest.mark.processes
@pytest.mark.nightly
def test_sharded_ranks_finish_together_with_different_numbers_of_prompts(tmp_path):
    """One rank has seven prompts in three batches, the other two longer answers in one batch (FSDP2)."""
    command = [sys.executable, "-c", RANK, TOY]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meet")], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    try:
        expected = ["stopped", "after", "4", "equal"]
        assert [rank.communicate(timeout=300)[0].split() for rank in ranks] == [expected, expected]
    finally:
        for rank in ranks:
            rank.kill()


def test_a_processor_that_emulates_bfloat16_is_a_note():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert not slowness("float32", cpu, "hint") and not slowness("bfloat16", gpu, "hint")
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if "avx512_bf16" in flags or "amx_bf16" in flags:
        assert not slowness("bfloat16", cpu, "hint")
    elif "avx2" in flags and "avx512f" not in flags:
        assert "hint" in slowness("bfloat16", cpu, "hint")


@pytest.mark.parametrize("num_queries", [1, 3])
@pytest.mark.parametrize("has_mask", [True, False])
def test_attention_without_copies_of_keys_is_that_of_transformers(num_queries, has_mask):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, heads, n, 4) for heads, n in ((6, num_queries), (2, 7), (2, 7)))
    layer = torch.nn.Module()
    layer.num_key_value_groups, layer.is_causal = 3, False
    mask = torch.ones(2, 1, num_queries, 7, dtype=torch.bool)
    mask[0, ..., :3] = False
    arguments = (layer, query, key, value, mask if has_mask else None)
    for scaling in (None, 0.3):
        functions = (grouped_attention, sdpa_attention_forward)
        found, expected = (function(*arguments, scaling=scaling)[0] for function in functions)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("rows", [1, 2 * CPU_ROWS + 1])
def test_ids_that_are_sampled_in_parts_are_those_of_each_row_alone(rows):
    torch.manual_seed(0)
    logits, draws = torch.randn(rows, 2 * BLOCK_IDS + 5) * 4, torch.rand(rows, dtype=torch.float64)
    ids, logps = sample_ids(logits, 0.7, draws)
    alone = [sample_ids(row[None], 0.7, draw[None]) for row, draw in zip(logits, draws, strict=True)]
    assert ids.tolist() == [int(one) for one, _ in alone] and ids.shape == logps.shape == (rows,)
    torch.testing.assert_close(logps, torch.cat([logp for _, logp in alone]))
