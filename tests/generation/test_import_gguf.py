"""scripts/import_gguf.py: the folder computes what the GGUF file describes, with plain transformers."""

import json

import gguf
import pytest
import torch
from import_gguf import import_gguf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from cocos.generation.huggingface import load_model
from cocos.generation.tokenizer import load_tokenizer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>"
TEXT = "x =  12 if y else  3\n    7"
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def trained_tokenizer(split):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*split, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["x  =  1", "    y", "if  x  else  y", "\n    z"] * 4, trainer)
    return tokenizer


def small_llama():
    """Return a Llama with grouped heads, whose matrices are those that Q8_0 blocks can represent."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                blocks = gguf.quants.quantize(weight.numpy(), gguf.GGMLQuantizationType.Q8_0)
                weight.copy_(torch.from_numpy(gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q8_0)))
            else:
                weight.uniform_(0.5, 1.5)
    return model.eval()


def write_gguf(path, model, tokenizer, pre):
    """Write a model as llama.cpp's converter does: the rows of a head's queries and keys are interleaved."""
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(16)
    writer.add_vocab_size(config.vocab_size)
    vocab = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocab)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in vocab])
    writer.add_token_merges([" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight":  # tied
            continue
        for mine, theirs in NAMES.items():
            name = name.replace(mine, theirs)
        name = name.replace("model.layers.", "blk.").replace("model.embed_tokens", "token_embd")
        name = name.replace("model.norm", "output_norm")
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
        count = next((count for part, count in heads.items() if f"{part}." in name), 0)
        array = weight.numpy()
        if count:
            array = array.reshape(count, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        if array.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def source():
    """Return a model and a tokenizer that splits digits, as SmolLM2's does."""
    return small_llama(), trained_tokenizer([pre_tokenizers.Digits(individual_digits=True)])


@pytest.fixture(scope="module")
def file(source, tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.gguf", *source, "smollm")


def test_the_folder_has_the_weights_token_ids_and_template_of_the_file(source, file, tmp_path):
    model, tokenizer = source
    folder = tmp_path / "models" / "small"
    summary = import_gguf(file, folder)
    imported = load_tokenizer(str(folder))
    assert (
        summary == f"{folder}: {model.num_parameters():,} parameters, {len(imported)} tokens, a chat template"
    )
    assert [path.name for path in folder.parent.iterdir()] == ["small"]
    (tmp_path / "new").touch()
    assert {path.stat().st_mode for path in folder.iterdir()} == {(tmp_path / "new").stat().st_mode}
    for loaded in (load_model(str(folder)), AutoModelForCausalLM.from_pretrained(folder)):
        assert loaded.dtype == torch.float32 and not hasattr(loaded.config, "quantization_config")
        ids = torch.tensor([tokenizer.encode(TEXT).ids])
        with torch.no_grad():
            torch.testing.assert_close(loaded(ids).logits, model(ids).logits)
    assert (loaded.generation_config.eos_token_id, loaded.generation_config.pad_token_id) == (2, 2)
    assert imported(TEXT)["input_ids"] == tokenizer.encode(TEXT).ids
    assert imported.decode(imported(TEXT)["input_ids"]) == TEXT
    assert (imported.eos_token, imported.pad_token, imported.model_max_length) == (
        "<|im_end|>",
        "<|im_end|>",
        128,
    )
    chat = imported.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    assert chat == "<|im_start|>x<|im_end|><|im_start|>"
    ids = imported(chat)["input_ids"]
    assert ids == [1, tokenizer.token_to_id("x"), 2, 1]
    assert imported.decode(ids, skip_special_tokens=True) == "x"


def test_transformers_alone_does_not_isolate_digits(source, file):
    """If this fails, transformers reads smollm's pre-tokenizer and the script's DIGIT_SPLITS can go."""
    plain = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    assert plain(TEXT)["input_ids"] != source[1].encode(TEXT).ids


def test_a_pre_tokenizer_that_is_not_known_is_a_warning(source, tmp_path, capsys):
    other = write_gguf(tmp_path / "other.gguf", *source, "viking")
    import_gguf(other, tmp_path / "other")
    warning = "other.gguf: transformers does not know its pre-tokenizer viking and uses GPT-2's"
    assert warning in capsys.readouterr().err
    plain = trained_tokenizer([])
    import_gguf(write_gguf(tmp_path / "gpt2.gguf", source[0], plain, "gpt-2"), tmp_path / "gpt2")
    assert "pre-tokenizer" not in capsys.readouterr().err
    assert load_tokenizer(str(tmp_path / "gpt2"))(TEXT)["input_ids"] == plain.encode(TEXT).ids


def test_what_cannot_be_imported_is_refused(file, tmp_path):
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(ValueError, match=r"empty\.gguf: not a GGUF file"):
        import_gguf(tmp_path / "empty.gguf", tmp_path / "new")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=f"{tmp_path} contains notes.txt; choose a new or an empty folder"):
        import_gguf(file, tmp_path)
