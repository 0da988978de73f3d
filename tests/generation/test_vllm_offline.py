"""vLLM's offline engine as an imitation with its interface; scripts/check_vllm.sh runs the real one."""

import gc
import json
import multiprocessing
import os
import sys

import pytest

from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_generator
from tests.support.commands import command
from tests.support.paths import ROOT

TOY = str(ROOT / "data/toy/base")
# Answers every prompt with the same id, and dies at the request after BATCHES: with an error, or, if KILLED is
# set, by SIGKILL of its process, for which the request waits as vLLM's does.
IMITATION = """
import json, multiprocessing, os, threading, time, types

class EngineDeadError(Exception):
    pass

class SamplingParams:
    def __init__(self, **options):
        self.options = options

class LLM:
    def __init__(self, **options):
        with open(os.environ["ENGINE_OPTIONS"], "w") as file:
            json.dump(options, file)
        if options["model"] == os.environ.get("UNREADABLE"):
            raise RuntimeError("Engine core initialization failed. See root cause above.")
        config = types.SimpleNamespace(max_model_len=512)
        # Like vLLM's, this process is no daemon: at the exit, multiprocessing waits for its end.
        self.process = multiprocessing.get_context("fork").Process(target=time.sleep, args=[600])
        self.process.start()
        core = types.SimpleNamespace(shutdown=self.process.terminate)
        self.llm_engine = types.SimpleNamespace(model_config=config, engine_core=core)
        self.left = int(os.environ["BATCHES"])
        self.itself = self  # nothing but the garbage collection frees it

    def generate(self, prompts, params, use_tqdm):
        self.left -= 1
        if self.left < 0 and "KILLED" in os.environ:
            self.process.kill()
            threading.Event().wait()
        if self.left < 0:
            raise EngineDeadError("EngineCore encountered an issue. See stack trace (above) for the root cause.")
        output = types.SimpleNamespace(outputs=[types.SimpleNamespace(token_ids=[9, 9])])
        return [output for _ in prompts]
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A folder with the imitation, on the path of this process and of those that it starts."""
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/__init__.py").write_text(IMITATION)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ENGINE_OPTIONS", str(tmp_path / "options.json"))
    monkeypatch.setenv("BATCHES", "1")
    yield tmp_path
    sys.modules.pop("vllm", None)
    for process in multiprocessing.active_children():  # of an engine in this process
        process.kill()


def config(folder, **options):
    return EvalConfig(
        model_name_or_path=TOY, test_data="x", output_dir=str(folder / "out"), generator="vllm", **options
    )


@pytest.mark.parametrize(("dtype", "expected"), [("auto", "float32"), ("bfloat16", "bfloat16")])
def test_the_engine_computes_in_the_type_of_the_transformers_generator(engine, dtype, expected):
    """`auto` of vLLM itself would turn this float32 checkpoint into bfloat16."""
    lines = []
    generator = open_generator(config(engine, dtype=dtype), lines.append)
    options = json.loads((engine / "options.json").read_text())
    assert (options["dtype"], options["enable_chunked_prefill"]) == (expected, False)
    assert lines == [f"{TOY} in vLLM in {expected}"] and generator.context_length == 512
    assert [c.token_ids for c in generator.generate([[5], [6]], 0.0)] == [(9, 9)] * 2


def test_a_model_that_the_engine_cannot_load_is_named(engine, monkeypatch):
    monkeypatch.setenv("UNREADABLE", TOY)
    with pytest.raises(ValueError, match=f"vLLM cannot load {TOY} .RuntimeError: Engine core"):
        open_generator(config(engine))


def test_an_engine_that_is_collected_ends_its_process(engine):
    generator = open_generator(config(engine))
    [process] = generator.processes
    assert process.is_alive()
    del generator
    gc.collect()
    process.join(20)
    assert not process.is_alive()


def played(engine, **environment):
    """Return test.py's run of six problems in batches of three."""
    words = (sys.executable, ROOT / "test.py", "--generator", "vllm", "--model_name_or_path", TOY)
    words += ("--test_data", ROOT / "data/toy/dev.jsonl", "--limit", 6, "--num_turns", 1, "--batch_size", 3)
    words += ("--output_dir", engine / "out")
    environment = {name: os.environ[name] for name in ("ENGINE_OPTIONS", "BATCHES")} | environment
    return command(*words, cwd=engine, PYTHONPATH=f"{engine}:{ROOT}", **environment)


@pytest.mark.processes
def test_a_finished_run_ends_with_its_engine(engine):
    run = played(engine, BATCHES="2")
    assert run.returncode == 0 and (engine / "out/metrics.json").exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("FAILED", "EngineDeadError: EngineCore encountered an issue"),
        ("KILLED", "ChildProcessError: its process ended with exit code -9"),
    ],
)
def test_an_engine_that_dies_ends_the_run_with_one_line_and_keeps_what_is_finished(engine, kind, reason):
    run = played(engine, **{kind: "1"})
    assert run.returncode == 2 and "Traceback" not in run.stderr
    [line] = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert f"vLLM cannot continue the run ({reason}" in line
    assert len((engine / "out/samples.jsonl").read_text().splitlines()) == 3
