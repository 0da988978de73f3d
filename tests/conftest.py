"""Fixtures of several test modules, and the advice on skipped tests at the end of a run.

It imports no library that takes seconds: pytest-xdist's workers start after it is imported, and import them together.
"""

import functools
import gc
import importlib.metadata

import pytest

from cocos.executor import Executor
from cocos.problems import Problem, load_problems, save_problems, with_visible_tests
from cocos.prompts import AUXILIARY_INSTRUCTION, named_protocol
from tests.support.paths import ROOT, TOY
from tests.support.skips import remedies
from tests.support.training import toy_problems

gc.disable()  # until all modules are imported: of their objects, none is garbage
# transformers and TRL read the metadata of all packages, accelerate that of peft at every use of a model.
for name in ("packages_distributions", "metadata"):
    setattr(importlib.metadata, name, functools.cache(getattr(importlib.metadata, name)))


# Files that take longest, first: otherwise one CPU waits at the end for a long file.
LONGEST = (
    "training/test_parallel.py", "page/test_page.py", "executor/test_attacks.py", "executor/test_forgeries.py",
    "training/test_resume.py", "training/test_trainer.py", "training/test_stopping.py", "evaluation/test_first_contact.py",
    "evaluation/test_evaluation_run.py", "project/test_toy_feedback.py", "project/test_entry_points.py",
    "generation/test_generation.py", "executor/test_holes.py", "executor/test_benchmarks.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Mark every test that opens a browser as one that starts processes; put the longest files first."""
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker("processes")
    ranks = {(ROOT / "tests" / name).resolve(strict=True): rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_collection_finish(session):
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Print what to install or download to run the tests that were skipped, below all other summaries."""
    result = yield
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("to run the skipped tests")
        for line in remedies(report.longrepr[2] for report in skipped):
            terminalreporter.write_line(line)
    return result


@pytest.fixture(scope="session")
def executor():
    with Executor(num_workers=2) as running:
        yield running


@pytest.fixture
def problem():
    return Problem(
        task_id="1",
        text="Write a function to double a number.",
        test_list=("assert double(2) == 4", "assert double(0) == 0", "assert double(-1) == -2"),
        code="def double(x):\n    return 2 * x",
    )


@pytest.fixture(scope="session")
def problems_file(tmp_path_factory):
    """A file of six problems of the laboratory, with references."""
    path = tmp_path_factory.mktemp("data") / "problems.jsonl"
    save_problems(load_problems(TOY / "boost.jsonl")[:6], path)
    return path


@pytest.fixture(scope="session")
def prepare():
    """`cocos prepare` in this process: prepare("jsonl", "--input", ...) returns the exit status."""
    from cocos.commands.prepare import main
    from cocos.commands.runner import run_command

    def call(*words):
        with pytest.raises(SystemExit) as stopped:
            run_command(lambda: main([str(word) for word in words]))
        return stopped.value.code

    return call


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A folder with a two-layer Llama of random weights and a byte-level tokenizer; nothing is downloaded."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [
        named_protocol("cocos").later_turn(),
        AUXILIARY_INSTRUCTION,
        "[BEGIN]\ndef f(x):\n    return x\n[DONE]",
    ] * 4
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        special_tokens=["<pad>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def make_trainer(tmp_path, executor):
    """A function that returns a trainer on toy problems; by default 4 trajectories of 4 problems per update."""
    from cocos.assembly.given_answers import given_prompts
    from cocos.config.trl_configs import CoCoSConfig
    from cocos.generation.tokenizer import load_tokenizer
    from cocos.training.trainer import CoCoSTrainer

    def make(
        num_problems=8,
        model=str(ROOT / "data/toy/base"),
        dev_problems=(),
        peft_config=None,
        runner=executor,
        **options,
    ):
        options = {
            "output_dir": str(tmp_path / "out"),
            "model_name_or_path": "data/toy/base",
            "train_data": "data/toy/train.jsonl",
            "credit": "turn",
            "num_generations": 4,
            "per_device_train_batch_size": 16,
            "global_batch_size": 16,
            "temperature": 1.0,
            "beta": 0.0,
            "max_completion_length": 40,
            "max_steps": 2,
            "learning_rate": 3e-4,
            "lr_scheduler_type": "constant",
            "logging_steps": 1,
            "save_strategy": "no",
            "gradient_checkpointing": False,
            "report_to": "none",
            "disable_tqdm": True,
            **options,
        }
        args = CoCoSConfig(**options)
        problems = with_visible_tests(toy_problems()[:num_problems], args.visible_tests)
        return CoCoSTrainer(
            model=model,
            args=args,
            prompts=given_prompts(args.answers, problems, named_protocol("cocos")),
            dev_problems=dev_problems,
            executor=runner,
            protocol=named_protocol("cocos"),
            tokenizer=load_tokenizer(str(ROOT / "data/toy/base")),
            peft_config=peft_config,
        )

    return make
