"""What a finished run prints, and what it leaves: a model that plain transformers can use, and its card."""

import json
import re
import shutil
import stat
import sys
from dataclasses import replace

import pytest
import torch
import transformers
from transformers import TrainerState

from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.callbacks import NUM_FIRST_UPDATES
from cocos.training.checkpoints import evaluation_at, saved_step
from cocos.training.model_card import ModelCard, _licence, _origin
from tests.support.commands import succeed
from tests.support.evaluation import evaluated, rows
from tests.support.paths import TOY
from tests.support.training import short_run

pytestmark = pytest.mark.processes


def test_a_run_with_random_rewards_is_called_a_control_by_everything_it_writes(data, tmp_path):
    words = ("--reward", "random", "--max_steps", 1, "--save_strategy", "no")
    words = (sys.executable, "train.py", *short_run(data, tmp_path / "out", *words))
    said = succeed(*words, "--dry_run").stdout
    assert "warning: --reward random: every program earns 0 or 1 by chance" in said
    done = succeed(*words)
    assert "a control, not a training" in done.stderr
    assert "a control: every program earned 0 or 1 by chance" in done.stdout
    assert "**This model is a control:" in (tmp_path / "out/README.md").read_text()


def test_a_run_says_what_starts_and_what_was_made_and_nothing_else(finished, data):
    out = finished.out
    first, second, third, title, *middle, best, saved, evaluate = finished.stdout.splitlines()
    num_prompt_lines = next(i for i, line in enumerate(middle) if line.startswith("update "))
    prompt, middle = middle[:num_prompt_lines], middle[num_prompt_lines:]
    assert re.fullmatch(rf"CoCoS: {TOY / 'base'}, 0\.9 M parameters; (cpu|\w.*), \w+", first)
    sizes = "6 updates of 1 x 8 x 2 = 16 trajectories (processes x batch x accumulation)"
    assert second == f"{sizes}, 2.0 passes over 12 problems, from the start"
    assert third.startswith(f"saves to {out}; logs to tensorboard; programs isolated by ")
    assert re.fullmatch(r"best checkpoint: update [246] of 6, dev acc_t2 \d\.\d{3}", best)
    assert saved == f"model saved in {out}"
    assert evaluate == (
        f"evaluate it: cocos eval --model_name_or_path {out} --test_data {data}/test.jsonl "
        f"--output_dir {out}_eval --program_timeout_factor 10.0 --max_completion_length 40"
    )
    assert title == "first prompt:" and prompt[0].startswith("  | You are an expert Python programmer")
    assert prompt[-1] == "  | [BEGIN]" and all(line.startswith("  |") for line in prompt)
    steps = [line for line in middle if line.startswith("update ")]
    shown = (
        "update 1, update 2, update 2 dev, update 3, update 4, update 4 dev, update 5, update 6, update 6 dev"
    )
    assert ", ".join(" ".join(line.split()[: 3 if "dev" in line else 2]) for line in steps) == shown
    examples = [line for line in middle if line.startswith("  ")]
    assert len(examples) + len(steps) == len(middle) and len(examples) >= 12
    assert max(map(len, examples)) <= 96
    [level] = [line for line in finished.stderr.splitlines() if line and "Loading weights" not in line]
    assert level.startswith(f"programs isolated by {third.split()[-1]}")


def test_the_card_says_what_the_model_is_and_cites_the_method(finished):
    out = finished.out
    card = (out / "README.md").read_text()
    state = json.loads((out / "checkpoint-6/trainer_state.json").read_text())
    best = state["best_global_step"]
    right = next(log for log in state["log_history"] if log["step"] == best and "eval_acc_t1" in log)
    assert "- Start: `toy/base`, all weights were trained." in card
    assert str(out.parent) not in card and str(TOY) not in card, "paths of this machine concern nobody else"
    assert f"Weights: after update {best} of 6." in card
    assert f"| 1 | {100 * right['eval_acc_t1']:.1f} |" in card
    assert f"| 2 | {100 * right['eval_acc_t2']:.1f} | {100 * right['eval_i2c_t1_t2']:.1f} |" in card
    for name in ("train", "dev"):
        assert re.search(rf"\| .*{name}\.jsonl \| 12 \| [0-9a-f]{{64}} \|", card)
    assert "cho2025cocos" in card and "Programs were executed at the isolation level" in card
    assert not re.search(r"None\]|time machine|\{\{|\{%", card)
    [checkpoint, *_] = out.glob("checkpoint-*")
    assert f"after update {checkpoint.name[11:]} of 6" in (checkpoint / "README.md").read_text()


def test_the_card_of_stage_2_names_the_base_model_of_boost_and_its_licence(tmp_path):
    start, base = tmp_path / "boost", tmp_path / "base"
    for folder, name in ((start, str(base)), (base, "owner/model")):
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({"options": {"model_name_or_path": name}}))
    assert _origin(str(start)) == "owner/model" and _origin("owner/other") == "owner/other"
    (base / "README.md").write_text("---\ntags: [a]\nlicense: apache-2.0\n---\ntext\n")
    assert _licence(str(base)) == "apache-2.0" and _licence(str(start)) is None
    (start / "README.md").write_text("no metadata\nlicense: mit\n")
    assert _licence(str(start)) is None


def test_plain_transformers_stops_after_the_answer_as_the_card_says(finished, data, capsys, monkeypatch):
    out = finished.out
    monkeypatch.chdir(out)
    [source] = re.findall(r"```python\n(.*?)\n```\n", (out / "README.md").read_text(), re.DOTALL)
    names = {}
    exec(compile(source, "the card's example", "exec"), names)
    shown = capsys.readouterr().out
    problem = load_problems(data / "train.jsonl")[0]
    assert names["task"] == named_protocol("cocos").first_turn(problem)
    assert names["correction"] == named_protocol("cocos").later_turn()
    assert shown.startswith("def ") and shown.count("[DONE]") == 2 and shown.rstrip().endswith("[DONE]")
    assert len(names["first"][0]) < len(names["tokenizer"](names["task"]).input_ids) + 40
    # The first prompt is a prefix of the second, as in the turn loop.
    assert torch.equal(names["ids"][0, : len(names["first"][0])], names["first"][0])


def test_the_generation_config_stops_at_done_and_keeps_the_end_of_sequence(finished):
    for folder in (finished.out, finished.out / "checkpoint-6"):
        config = transformers.GenerationConfig.from_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        assert config.stop_strings == ["[DONE]"] and not config.do_sample
        assert config.eos_token_id == tokenizer.eos_token_id


def test_the_saved_model_is_evaluated_and_its_stop_string_changes_nothing(finished, data, tmp_path):
    model = shutil.copytree(finished.out, tmp_path / "model")
    given = {
        "test_data": str(data / "test.jsonl"),
        "max_completion_length": 24,
        "model_name_or_path": str(model),
    }
    evaluated(**given, output_dir=str(tmp_path / "with"))
    (model / "generation_config.json").unlink()
    evaluated(**given, output_dir=str(tmp_path / "without"))
    assert rows(tmp_path / "with") == rows(tmp_path / "without")


def test_all_files_have_the_permissions_of_new_files(finished, tmp_path):
    modes = {stat.S_IMODE(path.stat().st_mode) for path in finished.out.rglob("*") if path.is_file()}
    (tmp_path / "new").write_text("")
    assert modes == {stat.S_IMODE((tmp_path / "new").stat().st_mode)}


def test_the_first_updates_are_logged_whatever_logging_steps_is(make_trainer):
    from cocos.training.callbacks import FirstUpdates

    trainer = make_trainer(max_steps=NUM_FIRST_UPDATES + 2, logging_steps=NUM_FIRST_UPDATES + 2)
    trainer.add_callback(FirstUpdates())
    trainer.train()
    logged = [log["step"] for log in trainer.state.log_history if "loss" in log]
    assert logged == [*range(1, NUM_FIRST_UPDATES + 1), NUM_FIRST_UPDATES + 2]


def card(**options):
    """A card of a run without evaluation."""
    record = {
        "options": {"model_name_or_path": "org/base", "use_peft": False, "train_data": "train.jsonl"}
        | options,
        "data_sha256": {"train.jsonl": "0" * 64},
        "versions": {"torch": "2"},
    }
    return ModelCard("Boost", record, {"train.jsonl": 3}, "task\n\n[BEGIN]\n", "\n\nagain\n\n[CORRECT]\n")


def test_a_card_without_measurements_says_so_and_names_a_base_model_of_the_hub():
    text = card().text("models/boost", TrainerState(max_steps=4), step=4)
    assert text.startswith("---\nbase_model: org/base\n")
    assert "None: the run had no evaluation" in text and "stage 1 (Boost" in text
    assert "isolation" not in text


def test_a_card_of_an_adapter_loads_it_with_peft_and_stops_at_done():
    text = card(use_peft=True, lora_r=16).text("models/lora", TrainerState(max_steps=4), step=4)
    assert "library_name: peft" in text and "AutoPeftModelForCausalLM" in text
    assert "stop_strings=['[DONE]']" in text and "| lora_r | 16 |" in text


def test_a_card_of_a_chat_has_its_system_message():
    of_chat = replace(card(), is_chat=True, system_message="You repair.\nBe brief.")
    text = of_chat.text("models/chat", TrainerState(max_steps=4), step=4)
    assert '{"role": "system", "content": system}' in text and '    "You repair.\\n"\n    "Be brief."' in text
    alone = replace(card(), is_chat=True).text("models/chat", TrainerState(max_steps=4), step=4)
    assert "system" not in alone.partition("## Data")[0]


def test_the_dev_metrics_are_those_of_the_saved_step():
    state = TrainerState(global_step=4, best_global_step=2)
    state.log_history = [
        {"step": 2, "eval_acc_t1": 0.5},
        {"step": 2, "loss": 1.0},
        {"step": 4, "eval_acc_t1": 0.25},
    ]
    assert saved_step(state, loads_best=True) == 2 and saved_step(state, loads_best=False) == 4
    assert evaluation_at(state, 2) == {"acc_t1": 0.5} and evaluation_at(state, 3) == {}
