"""Faults at the start and in the middle of test.py: one line, its exit status, and what is left on the disk."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import torch

from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import chat_template_warning
from cocos.files.json_lines import read_rows
from cocos.generation.tokenizer import TokenTranscripts, load_tokenizer
from cocos.problems import save_problems
from tests.support.commands import WITHOUT_CHARTS, complaint, free_port, start, succeed
from tests.support.endpoint_server import serve, status, text
from tests.support.evaluation import Drawing, adding, evaluated, rows
from tests.support.paths import ROOT, TOY

pytestmark = pytest.mark.processes
evaluate = partial(succeed, **WITHOUT_CHARTS)
BASE = TOY / "base"
LONG = ("--limit", 32, "--batch_size", 4)  # seconds of work after the first batch


def words(folder, *options, model=BASE):
    return (
        *(sys.executable, "test.py", "--test_data", TOY / "test.jsonl", "--output_dir", folder),
        *("--model_name_or_path", model, "--max_completion_length", 48, "--executor_workers", 1, *options),
    )


def test_a_start_that_fails_leaves_nothing_and_the_next_one_works(tmp_path):
    damaged, folder = shutil.copytree(BASE, tmp_path / "damaged"), tmp_path / "out"
    with open(damaged / "model.safetensors", "r+b") as file:
        file.truncate(100_000)
    limit = ("--limit", 1)
    line = complaint(*words(folder, *limit, model=damaged))
    assert "damaged/model.safetensors: the file is damaged (" in line and not folder.exists()
    api = (*limit, "--generator", "api", "--max_retries", 0)
    url = f"http://127.0.0.1:{free_port()}/v1"
    line = complaint(*words(folder, *api, "--base_url", url, model="m"))
    assert f"nothing answers at the endpoint {url} " in line and "Connection refused" in line
    assert not folder.exists()
    assert "no key in NO_KEY" in complaint(*words(folder, *api, "--api_key_env", "NO_KEY", model="m"))
    with serve() as endpoint:
        endpoint.behaviours = [status(404, message="no such model")]
        line = complaint(
            *words(folder, *api, "--base_url", endpoint.base_url, "--protocol", "chat", model="m")
        )
        assert "does not know 'm'; check --model_name_or_path" in line and not folder.exists()
        folder.mkdir()  # a folder of the user's own stays
        complaint(*words(folder, *limit, model=damaged))
        assert list(folder.iterdir()) == []
        endpoint.behaviours = [text("x = 1")]
        done = evaluate(*words(folder, *api, "--base_url", endpoint.base_url, model="m"))
    assert f"m at {endpoint.base_url}, no API keys" in done.stdout
    assert "1 problems, 2 turns, protocol cocos; executor isolation: " in done.stdout
    assert done.stdout.endswith(f"open {folder}/report.html in a browser\n")


def test_a_chat_template_that_the_default_protocol_does_not_use_gives_a_warning(tmp_path):
    model = shutil.copytree(BASE, tmp_path / "model")
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": "{{ messages }}"}))

    def warnings(name, *options):
        done = evaluate(*words(tmp_path / name, "--limit", 1, *options, model=model))
        return [line for line in done.stderr.splitlines() if line.startswith("warning: ")]

    [warning] = warnings("default")
    assert f"{model} has a chat template" in warning and "chat models need --protocol chat" in warning
    assert warnings("given", "--protocol", "cocos") == []
    args = EvalConfig(model_name_or_path=str(model), test_data="t", output_dir="o")
    generator = TokenTranscripts(load_tokenizer(str(model)), ())
    assert chat_template_warning(args, generator)
    (model / "run.json").write_text("{}")  # of the training
    assert not chat_template_warning(args, generator)


def interrupt(arguments, is_due, times=1):
    """Send Ctrl-C to the process group of a command once `is_due` of what it has printed; return status and output."""
    running = start(*arguments)
    while not is_due(running.printed()) and running.is_running():
        time.sleep(0.005)
    for _ in range(times):
        os.killpg(running.pid, signal.SIGINT)
    done = running.finish()
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    evaluate(*words(folder, *LONG))
    return folder


@pytest.mark.parametrize(
    ("has_rows", "saved", "times"),
    [(False, "no trajectory was finished; start again", 2), (True, "trajectories are saved in", 1)],
)
def test_ctrl_c_is_one_line_and_resuming_gives_the_rows_of_an_uninterrupted_run(
    tmp_path, uninterrupted, has_rows, saved, times
):
    samples = tmp_path / "out" / "samples.jsonl"

    def is_due(printed):
        if has_rows:
            return samples.exists() and samples.stat().st_size
        return any("executor isolation" in text for text in printed)

    exit_status, output = interrupt(words(tmp_path / "out", *LONG), is_due, times)
    assert exit_status == 130 and "Traceback" not in output
    assert output.splitlines()[-1].startswith("interrupted: ") and saved in output.splitlines()[-1]
    evaluate(*words(tmp_path / "out", *LONG, "--resume"))
    assert rows(tmp_path / "out") == rows(uninterrupted)


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mount.returncode:
        pytest.skip("a small file system needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_one_line_and_resuming_plays_the_rest(tmp_path, small_disk, uninterrupted):
    (small_disk / "other").write_bytes(b"x" * 40_000)
    line = complaint(*words(small_disk / "out", *LONG))
    assert "out/samples.jsonl: cannot be written (No space left on device); make space, then continue" in line
    num_saved = (small_disk / "out" / "samples.jsonl").read_bytes().count(b"\n")
    shutil.move(small_disk / "out", tmp_path / "out")  # a disk with space
    resumed = evaluate(*words(tmp_path / "out", *LONG, "--resume"))
    assert f"resumed: {num_saved} of 32 trajectories are saved" in resumed.stdout
    assert rows(tmp_path / "out") == rows(uninterrupted)


def test_a_transcript_that_may_exceed_the_context_is_announced_and_then_named_once(tmp_path):
    small = shutil.copytree(BASE, tmp_path / "small")
    config = json.loads((small / "config.json").read_text())
    (small / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 80}))
    done = evaluate(*words(tmp_path / "out", "--limit", 4, "--batch_size", 2, model=small))
    assert done.stderr.count("more than the model's context of 80; lower --max_completion_length") == 1
    assert done.stderr.count("more than the model's context of 80; such completions are unreliable") == 1


def test_a_prompt_beyond_the_context_is_refused_with_the_name_of_its_problem(tmp_path):
    long = {"task_id": "long", "text": "Double a number. " * 20_000, "test_list": ["assert f(1) == 2"]}
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps(long) + "\n")
    line = complaint(*words(tmp_path / "out", "--test_data", path))
    assert (
        "problem long: its prompt has " in line
        and "more than the model's context of 1024; shorten it" in line
    )


def test_verbose_shows_the_first_prompt_and_all_of_every_trajectory(tmp_path):
    done = evaluate(*words(tmp_path / "out", "--limit", 2, "--batch_size", 2, "--verbose"))
    prompt, _, shown = done.stdout.partition("--- end of the prompt")
    assert prompt.count(": prompt of turn 2 ---") == 1 and "[CORRECT]\n" in prompt
    for _, row in read_rows(tmp_path / "out" / "samples.jsonl"):
        assert f"--- problem {row['task_id']}, sample 0 ---" in shown
        for part in (row["turns"][0]["completion"], row["turns"][1]["request"], *row["tests"]):
            assert all(line in shown for line in part.splitlines())
    assert shown.count("s to generate") == 4 and f"at {row['turns'][0]['isolation']}" in shown


def test_own_wording_is_what_the_model_sees_and_a_change_is_noticed(tmp_path):
    wording, folder = tmp_path / "words.yaml", tmp_path / "out"
    wording.write_text("first_turn: 'Do {text}'\nlater_turn: Again.\nis_chat: false\n")
    options = ("--prompt_file", wording, "--limit", 1)
    done = evaluate(*words(folder, *options, "--verbose"))
    assert "protocol words.yaml (" in done.stdout and "\nDo Write a function" in done.stdout
    record = json.loads((folder / "run.json").read_text())
    assert str(wording) in record["data_sha256"] and record["protocol"].startswith("words.yaml (")
    wording.write_text("first_turn: 'Do {text}!'\nlater_turn: Again.\nis_chat: false\n")
    assert "was made with another configuration" in complaint(*words(folder, *options, "--resume"))
    refused = complaint(*words(folder, *options, "--protocol", "chat"))
    assert "--prompt_file replaces --protocol" in refused
    wording.write_text("first_turn: 'Do {text}'\nlater_turn: 'Again {tests}.'\n")
    assert "unknown placeholder {tests}; the known ones are {feedback}" in complaint(*words(folder, *options))


def blocks(language=""):
    """Return the code blocks of the page on evaluation."""
    page = (ROOT / "docs/evaluation.md").read_text()
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


def test_the_commands_for_endpoints_and_the_prompt_file_of_the_page_work(tmp_path):
    wording = tmp_path / "wording.yaml"
    wording.write_text(blocks("yaml")[0])
    lines = next(block for block in blocks() if "groq" in block).replace("\\\n", " ").splitlines()
    assert len(lines) == 2
    with serve() as endpoint:
        endpoint.behaviours = [text("```python\nx = 1\n```")]
        for number, line in enumerate(lines):
            options = dict(re.findall(r"--(\w+) (\S+)", line)) | {
                "base_url": endpoint.base_url,
                "test_data": TOY / "test.jsonl",
                "output_dir": tmp_path / str(number),
                "limit": 1,
            }
            if number == 0:
                del options["protocol"]
                options["prompt_file"] = wording
            evaluate(sys.executable, "test.py", *(w for k, v in options.items() for w in (f"--{k}", v)))
    first, later = (
        endpoint.bodies[0]["messages"][0]["content"],
        endpoint.bodies[1]["messages"][-1]["content"],
    )
    assert first.startswith("Solve this task in Python: Write a function") and "assert " in first
    assert later.startswith("Read your program again.")


def test_a_full_gpu_is_an_error_with_the_options_to_lower(tmp_path):
    class Full(Drawing):
        def generate(self, prompts, temperature, seeds=None):
            raise torch.OutOfMemoryError("CUDA out of memory")

    save_problems(adding(2), tmp_path / "problems.jsonl")
    options = {"test_data": str(tmp_path / "problems.jsonl"), "output_dir": str(tmp_path / "out")}
    with pytest.raises(ValueError, match="lower --batch_size 32 or --max_completion_length, then continue"):
        evaluated(Full(), model_name_or_path="x", **options)
    assert not (tmp_path / "out").exists()
