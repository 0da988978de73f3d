"""Checkpoint folders and hub ids that cannot be loaded: each fault is one line with its remedy."""

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub.errors import HTTPError
from peft import LoraConfig, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from transformers import AutoModelForCausalLM

from cocos.generation.checkpoint_files import adapter_base, check_checkpoint, tokenizer_source
from cocos.generation.huggingface import load_model
from cocos.generation.tokenizer import load_tokenizer
from tests.support.paths import TOY

BASE = TOY / "base"


@pytest.fixture
def folder(tmp_path):
    """Return a copy of the laboratory's base model."""
    return shutil.copytree(BASE, tmp_path / "model")


def fault(name, **options):
    """Return the message with which a checkpoint is refused."""
    with pytest.raises(ValueError) as refused:
        check_checkpoint(str(name), **options)
    return str(refused.value)


def shard(folder, missing=False):
    """Turn a folder's weights into one shard and its index; the index may name a second, missing one."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors"} | (
        {"b": "model-00002-of-00002.safetensors"} if missing else {}
    )
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def test_a_complete_folder_is_accepted_whole_or_in_shards(folder):
    check_checkpoint(str(folder))
    shard(folder)
    check_checkpoint(str(folder))


def test_a_cut_off_file_of_weights_is_named(folder):
    weights = folder / "model.safetensors"
    size = weights.stat().st_size
    with open(weights, "r+b") as file:
        file.truncate(1000)
    assert fault(folder).startswith(f"{weights}: the file is damaged (")
    assert fault(folder).endswith("); download or copy it again")
    shutil.copy(BASE / "model.safetensors", weights)
    with open(weights, "r+b") as file:
        file.truncate(size - 1)
    assert f"{weights}: the file is damaged (" in fault(folder)


@pytest.mark.parametrize("start", [b"garbage!", b"\xff" * 8, b"\x04" + b"\0" * 7 + b"[[]]", b""])
def test_a_file_that_is_no_safetensors_is_damaged(folder, start):
    (folder / "model.safetensors").write_bytes(start)
    assert "model.safetensors: the file is damaged (" in fault(folder)


def test_a_pointer_of_git_lfs_is_recognised(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    assert "a pointer of Git LFS, not the file itself; run `git lfs pull`" in fault(folder)


def test_a_missing_shard_is_named(folder):
    shard(folder, missing=True)
    assert "names model-00002-of-00002.safetensors, which is missing; download" in fault(folder)


def test_each_missing_file_of_a_folder_is_named(folder):
    (folder / "model.safetensors").unlink()
    assert "the folder has no weights (model.safetensors)" in fault(folder)
    shutil.copy(BASE / "model.safetensors", folder)
    for path in folder.glob("token*"):
        path.unlink()
    assert "the folder has no tokenizer (tokenizer.json); copy" in fault(folder)
    (folder / "config.json").write_text("{")
    assert "config.json: not valid JSON" in fault(folder)
    (folder / "config.json").unlink()
    assert fault(folder) == f"{folder}: the folder has no config.json; give the folder of a saved model"


def test_a_training_folder_names_its_newest_checkpoint(folder):
    run = folder.parent
    assert fault(run) == f"{run}: the folder has no config.json; did you mean {folder}?"


def test_a_gguf_file_says_how_to_use_it(tmp_path):
    path = tmp_path / "model.gguf"
    path.touch()
    for name in (path, tmp_path):
        assert "convert it with `python scripts/import_gguf.py FILE.gguf FOLDER`, or serve it" in fault(name)


def test_a_mistyped_folder_is_missing_at_once_and_the_similar_one_is_named(folder, tmp_path, monkeypatch):
    assert fault(tmp_path / "modle").endswith(f"modle: no such folder; did you mean {folder}?")
    assert "no such folder; give a checkpoint folder or a hub id like org/name" in fault("./nowhere")
    monkeypatch.chdir(tmp_path.parent)
    room = tmp_path.name  # with one slash, the name could be a hub id, but this folder exists here
    assert (
        fault(f"{room}/modle")
        == f"model {room}/modle: no such folder in {room}; did you mean {folder.relative_to(tmp_path.parent)}?"
    )
    assert f"for the hub's model: hf download {room}/other --local-dir" in fault(f"{room}/other")


@pytest.mark.parametrize("is_offline", [True, False])
def test_a_model_that_the_hub_does_not_give_is_named_where_it_is(folder, tmp_path, monkeypatch, is_offline):
    def refuse(*args, **options):
        raise HTTPError("Connection refused")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cocos.generation.checkpoint_files.is_offline_mode", lambda: is_offline)
    monkeypatch.setattr("cocos.generation.checkpoint_files.get_hf_file_metadata", refuse)
    assert "check the " in fault("org/Tiny-1B")
    (tmp_path / "models").mkdir()
    folder.rename(tmp_path / "models/Tiny-1B")
    assert fault("org/Tiny-1B").endswith(
        "; for the copy in this folder give --model_name_or_path models/Tiny-1B"
    )


def test_an_adapter_is_checked_together_with_its_base_model(folder, tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    config = adapter / "adapter_config.json"
    lora = {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
    config.write_text(json.dumps(lora))
    assert "base_model_name_or_path is None; give the base model's name" in fault(adapter)
    for base in ("", 5, ["x"]):
        config.write_text(json.dumps(lora | {"base_model_name_or_path": base}))
        assert f"base_model_name_or_path is {base!r}; give the base model's name" in fault(adapter)
    config.write_text(json.dumps(lora | {"base_model_name_or_path": str(folder)}))
    assert "the folder has no weights (adapter_model.safetensors)" in fault(adapter)
    shutil.copy(BASE / "model.safetensors", adapter / "adapter_model.safetensors")
    check_checkpoint(str(adapter))
    relative = f"{folder.parent.name}/{folder.name}"  # of a folder above the adapter: where the run started
    config.write_text(json.dumps(lora | {"base_model_name_or_path": relative}))
    assert Path(adapter_base(adapter)).samefile(folder)
    check_checkpoint(str(adapter))
    config.write_text(json.dumps(lora | {"base_model_name_or_path": "elsewhere/base"}))
    assert f"set base_model_name_or_path in {config} to its path" in fault(adapter)
    config.write_text(json.dumps(lora | {"base_model_name_or_path": str(folder)}))
    (folder / "model.safetensors").unlink()
    assert "an adapter of the base model" in fault(adapter)


def test_an_adapter_is_not_the_base_of_an_adapter(folder, tmp_path):
    """A run saved as `outputs/org/name` finds itself where it looks for the hub's `org/name`."""
    run = tmp_path / "outputs/org/name"
    for adapter in (run, run / "checkpoint-20"):
        adapter.mkdir(parents=True)
        shutil.copy(BASE / "model.safetensors", adapter / "adapter_model.safetensors")
        lora = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "org/name"}
        (adapter / "adapter_config.json").write_text(json.dumps(lora))
        assert adapter_base(adapter) == tokenizer_source(str(adapter)) == "org/name"
        assert "the base model 'org/name', which is no whole model here" in fault(adapter)
    shutil.copytree(folder, tmp_path / "org/name")
    assert Path(adapter_base(run)).samefile(tmp_path / "org/name")
    check_checkpoint(str(run))


def test_an_architecture_that_transformers_does_not_know_is_named(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "nosuch"}))
    words = "model_type 'nosuch' is unknown to transformers "
    assert fault(folder).startswith(f"{folder}/config.json: {words}")


GPTQ = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
OTHER_MODELS = [  # keys of config.json, and words of the line
    (
        {"model_type": "own", "auto_map": {"AutoConfig": "org/own--configuration_own.OwnConfig"}},
        "a model with code of its own (configuration_own.py), which is not run here; serve it and use --generator api",
    ),
    ({"architectures": ["OwnLlama"], "auto_map": {"AutoModelForCausalLM": "modeling_own.OwnLlama"}}, "a model with code of its own (modeling_own.py)"),
    ({"model_type": "qwen2_vl", "architectures": None}, "qwen2_vl is a vision-language model; choose a causal"),
    ({"model_type": "bart", "architectures": ["BartForConditionalGeneration"]}, "is an encoder-decoder; choose"),
    ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "is an encoder; choose"),
    ({"architectures": ["LlamaForSequenceClassification"]}, "is a classifier or reward model; choose"),
    ({"architectures": ["LlamaModel"], "tie_word_embeddings": False}, "is a model without a language-model head"),
    ({"model_type": "vits", "architectures": ["VitsModel"]}, "; choose a causal language model"),
    ({"model_type": None}, "model_type None is unknown to transformers"),
    ({"architectures": "LlamaForCausalLM"}, "architectures is 'LlamaForCausalLM', not a list; correct it"),
    (GPTQ, "quantised by gptq, which cannot be loaded here ("),
    ({"quantization_config": {"quant_method": "exl2"}}, "quantised by exl2, which transformers "),
    ({"quantization": {"group_size": 64, "bits": 4}}, "quantised by MLX, which transformers "),
]  # fmt: skip


def reconfigure(folder, keys):
    config = json.loads((BASE / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | keys))


@pytest.mark.parametrize(("keys", "words"), OTHER_MODELS)
def test_a_model_that_cannot_be_evaluated_is_named_by_its_kind_in_one_short_line(folder, keys, words):
    reconfigure(folder, keys)
    message = fault(folder)
    assert message.startswith(f"{folder}/config.json: ") and words in message
    assert len(message) - len(str(folder)) < 400 and "\n" not in message


@pytest.mark.parametrize(
    "keys",
    [
        {
            "auto_map": {"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"}
        },  # code that transformers has, too
        {"architectures": None},
        {"architectures": ["LlamaModel"]},  # the embeddings are its head
        {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]},  # text is enough
    ],
)
def test_a_causal_language_model_is_accepted_however_it_is_saved(folder, keys):
    reconfigure(folder, keys)
    assert str(check_checkpoint(str(folder))).endswith("; it can be evaluated and trained")


def test_code_of_a_model_is_accepted_where_it_is_trusted(folder):
    reconfigure(folder, OTHER_MODELS[0][0])
    check_checkpoint(str(folder), trusts_code=True)


def test_quantised_weights_cannot_be_trained_and_those_of_qlora_only_under_an_adapter(folder):
    reconfigure(folder, GPTQ)
    kind = check_checkpoint(str(folder), needs_weights=False)
    assert "cannot be trained, nor an adapter on them; choose the plain model" in kind.training_fault(True)
    assert "LlamaForCausalLM, quantised by gptq; it can be evaluated, not trained" in str(kind)
    reconfigure(folder, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}})
    kind = check_checkpoint(str(folder), needs_weights=False)
    assert kind.training_fault(use_peft=True) == ""
    assert "add --use_peft true" in kind.training_fault(use_peft=False)
    assert str(kind).endswith("; it can be evaluated and trained with --use_peft true")


@pytest.fixture
def adapter(folder, tmp_path):
    """Return an adapter of the base model, with other keys of its configuration."""

    def make(**keys):
        made = tmp_path / "adapter"
        if not made.exists():
            model = get_peft_model(
                AutoModelForCausalLM.from_pretrained(folder), LoraConfig(task_type="CAUSAL_LM")
            )
            model.save_pretrained(made)
        config = json.loads((made / "adapter_config.json").read_text())
        (made / "adapter_config.json").write_text(json.dumps(config | keys))
        return made

    return make


def test_an_adapter_beside_its_bases_configuration_is_loaded_and_beside_a_whole_model_is_not(adapter, folder):
    made = adapter()
    shutil.copy(folder / "config.json", made)
    words = (
        f"LORA adapter of {folder} (LlamaForCausalLM); it can be evaluated and trained with --use_peft true"
    )
    assert str(check_checkpoint(str(made))) == f"{made}: {words}"
    assert isinstance(load_model(str(made)).model.layers[0].self_attn.q_proj, BaseTunerLayer)
    shutil.copy(folder / "model.safetensors", made)
    assert "the folder has an adapter and a whole model; move adapter_config.json" in fault(made)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"peft_type": "QUANTUMLORA"}, "peft_type 'QUANTUMLORA' is unknown to peft "),
        ({"peft_type": "PROMPT_TUNING"}, "adapters of the kind PROMPT_TUNING are not supported; choose a LoRA"),
        ({"task_type": "SEQ_CLS"}, "task_type is SEQ_CLS, not CAUSAL_LM; choose an adapter of a language model"),
        ({"peft_type": ["LORA"]}, "peft_type is ['LORA'], not a str; correct it"),
    ],
)  # fmt: skip
def test_an_adapter_that_is_no_part_of_a_language_model_is_named_by_its_kind(adapter, keys, words):
    made = adapter(**keys)
    assert fault(made).startswith(f"{made}/adapter_config.json: {words}")


def test_an_adapter_without_a_tokenizer_has_that_of_its_base_and_else_its_own(adapter, folder):
    made = adapter()
    assert load_tokenizer(str(made)).get_vocab() == load_tokenizer(str(folder)).get_vocab()
    own = load_tokenizer(str(folder))
    own.add_tokens(["<own>"])
    own.save_pretrained(made)
    assert "<own>" in load_tokenizer(str(made)).get_vocab()


def test_an_adapter_of_a_quantised_base_is_refused_like_the_base(adapter, folder):
    made = adapter()
    reconfigure(folder, GPTQ)
    assert f"an adapter of the base model '{folder}': {folder}/config.json: quantised by gptq" in fault(made)
    assert check_checkpoint(str(made), needs_weights=False).training_fault(use_peft=True)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("zero_to_fp32.py", "it has DeepSpeed's shards, which `python zero_to_fp32.py . .` in it joins"),
        ("pytorch_model_fsdp_0/__0_0.distcp", "it has FSDP's shards"),
        ("consolidated.00.pth", "its weights are in the format of Meta or Mistral"),
        ("onnx/model.onnx", "its weights are ONNX's"),
        ("optimizer.pt", "it has the state of a training without the model"),
        ("training_args.bin", "give the folder of a saved model"),
    ],
)
def test_a_folder_without_weights_for_transformers_says_what_it_has(folder, file, words):
    (folder / "model.safetensors").unlink()
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).touch()
    assert f"the folder has no weights (model.safetensors); {words}" in fault(folder)
    (folder / "config.json").unlink()
    assert f"the folder has no config.json; {words}" in fault(folder)


def test_a_pointer_in_place_of_the_tokenizer_is_recognised(folder):
    (folder / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    assert fault(folder).startswith(f"{folder}/tokenizer.json: a pointer of Git LFS, not the file itself")


def test_a_model_whose_files_lack_weights_is_not_loaded_with_random_ones(folder):
    reconfigure(folder, {"tie_word_embeddings": False})
    with pytest.raises(ValueError, match=r"its files lack 1 weights of the model \(lm_head\.weight\)"):
        load_model(str(folder))
