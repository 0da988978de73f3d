"""LoRA from end to end on the toy model: an adapter from Boost, trained further, resumed, evaluated and merged."""

import json
import shutil
import sys

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from cocos.generation.adapters import base_model, merged
from tests.support.commands import WITHOUT_CHARTS, complaint, succeed
from tests.support.paths import ROOT, TOY
from tests.support.training import short_run

pytestmark = pytest.mark.processes

LORA = ("--use_peft", "true", "--lora_r", 4, "--lora_target_modules", "all-linear")
OPTIONS = ("--save_steps", 1, "--logging_steps", 1, "--max_steps", 2, "--learning_rate", 1e-3)


@pytest.fixture(scope="module")
def boost(tmp_path_factory):
    """The folder of an adapter that Boost has trained on the toy model's own rows."""
    folder = tmp_path_factory.mktemp("adapters")
    prompt = "You are an expert Python programmer, and here is your task: double it. [BEGIN]"
    rows = [{"prompt": prompt, "completion": f"\ndef f(x):\n    return {i} * x\n[DONE]"} for i in range(8)]
    (folder / "rows.json").write_text(json.dumps(rows))
    succeed(
        sys.executable, "boost/boost_train.py", "--model_name_or_path", TOY / "base", "--train_data",
        folder / "rows.json", "--output_dir", folder / "boost", "--global_batch_size", 8, "--max_steps", 4,
        "--learning_rate", 1e-2, "--report_to", "none", *LORA,
    )  # fmt: skip
    return folder / "boost"


@pytest.fixture(scope="module")
def trained(boost, data, tmp_path_factory):
    """The folder of a run of train.py that has trained that adapter further, with a KL penalty."""
    out = tmp_path_factory.mktemp("cocos")
    words = ("train.py", *short_run(data, out, *OPTIONS, "--model_name_or_path", boost))
    words += ("--use_peft", "true", "--beta", 0.05)
    succeed(sys.executable, *words)
    return out, words


def tensors(folder):
    return load_file(folder / "adapter_model.safetensors")


def test_train_continues_boosts_adapter_on_the_same_base(boost, trained):
    out, _ = trained
    assert base_model(str(out)) == base_model(str(boost)) == str(TOY / "base")
    before, after = tensors(boost), tensors(out)
    assert before.keys() == after.keys()
    # Two updates of at most 1e-3 each away from Boost's adapter, which itself is not the one of a new adapter.
    assert max((after[name] - before[name]).abs().max() for name in before) == pytest.approx(2e-3, rel=0.5)
    assert max(before[name].abs().max() for name in before if "lora_B" in name) > 1e-2
    assert not (out / "ref").exists() and not (out / "checkpoint-1/ref").exists()
    [first, *_] = json.loads((out / "checkpoint-2/trainer_state.json").read_text())["log_history"]
    # The reference is Boost's model, not the base: the policy equals it before the first update.
    assert first["kl_t1"] == pytest.approx(0, abs=1e-6) and first["kl_t2"] == pytest.approx(0, abs=1e-6)
    card = (out / "README.md").read_text()
    assert "an adapter of `toy/base`, a LoRA adapter was trained" in card and str(TOY) not in card


def test_a_resumed_adapter_ends_as_if_uninterrupted(trained, tmp_path):
    out, words = trained
    shutil.copytree(out / "checkpoint-1", tmp_path / "checkpoint-1")
    again = [tmp_path if word == out else word for word in words]
    succeed(sys.executable, *again, "--resume_from_checkpoint", "last")
    for name, tensor in tensors(out).items():
        torch.testing.assert_close(tensors(tmp_path)[name], tensor, atol=1e-6, rtol=0, msg=name)


@pytest.mark.parametrize("words", [(), ("--dry_run",)])
def test_without_use_peft_an_adapter_is_refused_in_one_line(boost, data, tmp_path, words):
    words = ("train.py", *short_run(data, tmp_path / "x", *OPTIONS, "--model_name_or_path", boost), *words)
    line = complaint(sys.executable, *words)
    assert "is a LoRA adapter; add --use_peft true" in line
    assert "merge it to train all weights: cocos export" in line


def test_the_merged_model_is_base_plus_adapter_and_a_checkpoint_for_everything(boost, tmp_path):
    succeed(sys.executable, "-m", "cocos", "export", boost, tmp_path / "merged")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    assert plain.dtype == torch.float32
    base = AutoModelForCausalLM.from_pretrained(TOY / "base", dtype=torch.float32)
    ids = torch.randint(5, 200, (2, 30), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        alone = base(ids).logits
        expected = PeftModel.from_pretrained(base, boost)(ids).logits
        found = plain(ids).logits
        from_memory = merged(str(boost))(ids).logits
    assert (expected - alone).abs().max() > 0.1
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert torch.equal(found, from_memory)
    results = {}
    for name, model in (("adapter", boost), ("merged", tmp_path / "merged")):
        succeed(
            sys.executable, "test.py", "--model_name_or_path", model, "--test_data", TOY / "dev.jsonl",
            "--limit", 8, "--max_completion_length", 30, "--dtype", "float32", "--output_dir", tmp_path / f"of-{name}",
            **WITHOUT_CHARTS,
        )  # fmt: skip
        lines = (tmp_path / f"of-{name}" / "samples.jsonl").read_text().splitlines()
        results[name] = [[turn["completion"] for turn in json.loads(line)["turns"]] for line in lines]
    assert results["adapter"] == results["merged"] and len(results["merged"]) == 8


def test_a_whole_model_is_exported_in_the_chosen_data_type(tmp_path):
    out = tmp_path / "half"
    succeed(sys.executable, "-m", "cocos", "export", ROOT / "data/toy/base", out, "--dtype", "bfloat16")
    exported = AutoModelForCausalLM.from_pretrained(out, dtype="auto")
    assert exported.dtype == torch.bfloat16 and (out / "tokenizer.json").exists()
    original = AutoModelForCausalLM.from_pretrained(TOY / "base", dtype=torch.bfloat16)
    ours, theirs = exported.state_dict(), original.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    line = complaint(sys.executable, "-m", "cocos", "export", ROOT / "data/toy/base", out)
    assert "half contains config.json; choose a new or an empty folder" in line


def test_the_gguf_converter_is_called_on_the_exported_checkpoint_and_named_if_it_is_missing(tmp_path):
    words = (sys.executable, "-m", "cocos", "export", ROOT / "data/toy/base", tmp_path / "out", "--gguf")
    assert f"no convert_hf_to_gguf.py in {tmp_path}" in complaint(*words, "--llama_cpp", tmp_path)
    (tmp_path / "convert_hf_to_gguf.py").write_text(
        "import pathlib, sys\nassert pathlib.Path(sys.argv[1], 'config.json').exists()\n"
        "pathlib.Path(sys.argv[3]).write_text('gguf')\n"
    )
    succeed(*words, "--llama_cpp", tmp_path)
    assert (tmp_path / "out/model.gguf").read_text() == "gguf"
    assert 'TEMPLATE "{{ .Prompt }}"' in (tmp_path / "out/Modelfile").read_text()
