"""README's commands, read from it and run in their order on a CSV file of 15 rows."""

import csv
import json
import re
import shutil
from itertools import islice

import pytest

from tests.support.commands import ENVIRONMENT, command, free_port, succeed, write_shim
from tests.support.paths import ROOT, TOY

pytestmark = pytest.mark.processes

README = (ROOT / "README.md").read_text()
# What a test adds to the commands of both stages: the defaults are 1000 and 1500 updates.
SMALL = {
    r"(?:cocos boost|boost_train\.py)": "--max_steps 2 --global_batch_size 8",
    r"(?:cocos train|[ ]train\.py)": "--max_steps 1 --global_batch_size 8 --max_completion_length 40 --max_truncated_share 1",
}


def commands(title):
    """Return the commands in a section of README."""
    section = README.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [block for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) if not block.startswith("{")]


QUICK, PIPELINE, EIGHT_GPUS = commands("Train")
SETTINGS, LOOP, STAGES = re.fullmatch(r"(.*?\n)(for .*?\ndone\n)(.*)", PIPELINE, re.DOTALL).groups()


def run(folder, *blocks):
    """Run commands of README in a folder, with the laboratory's base model, one process and a free port; return what they print."""
    script = "\n".join(blocks).replace("\\\n", "")
    script = re.sub(r"base_model=\S+", f"base_model={TOY / 'base'}", script)
    for name, options in SMALL.items():
        script = re.sub(rf"{name} .*", rf"\g<0> {options}", script)
    script = script.replace("--num_gpus 8", f"--num_gpus 1 --master_port {free_port()}")
    path = f"{folder}/bin:{ENVIRONMENT['PATH']}"
    return succeed("bash", "-euc", f"cd {folder}\n{script}", PATH=path).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with mine.csv, and with what README's commands expect to find in a clone."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "bin").mkdir()
    write_shim(folder / "bin/cocos")
    for name in ("boost", "configs", "train.py", "test.py"):
        (folder / name).symlink_to(ROOT / name)
    rows = [json.loads(line) for line in islice((TOY / "boost.jsonl").open(), 15)]
    with (folder / "mine.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer", "tests"])
        writer.writerows([row["text"], row["code"], "\n".join(row["test_list"])] for row in rows)
    run(folder, *commands("Prepare your problems"), SETTINGS, LOOP)
    return folder


def num_lines(path):
    return len(path.read_text().splitlines())


def test_fifteen_problems_become_three_splits_and_boost_rows(folder):
    sizes = [num_lines(folder / f"data/mine/{split}.jsonl") for split in ("train", "validation", "test")]
    assert sum(sizes) == 15 and min(sizes) > 0
    # two attempts per problem, two rows per attempt; every reference is a correction
    rows = [num_lines(folder / f"outputs/boost_{split}.jsonl") for split in ("train", "validation")]
    assert rows == [4 * size for size in sizes[:2]]


@pytest.mark.nightly
def test_both_stages_and_the_evaluation_work_as_written(folder):
    run(folder, SETTINGS, STAGES)
    assert (folder / "outputs/cocos/model.safetensors").exists()
    assert num_lines(folder / "outputs/eval/samples.jsonl") == num_lines(folder / "data/mine/test.jsonl")
    assert (folder / "outputs/eval/report.html").exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="deepspeed compiles its CPU operators with g++")
@pytest.mark.nightly
def test_both_stages_work_with_deepspeed(folder):
    run(folder, SETTINGS, EIGHT_GPUS)
    assert (folder / "outputs/cocos8/model.safetensors").exists()


@pytest.mark.nightly
def test_the_first_training_command_checks_problems_of_ones_own(folder):
    words = QUICK.split()
    words += ["--dev_data", "data/mine/validation.jsonl", "--model_name_or_path", str(TOY / "base")]
    # the laboratory's model has no chat template
    words += ["--protocol", "cocos"]
    done = command(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "20 updates" in done.stdout
