"""Two ranks train what one process trains, by DDP, ZeRO and FSDP2, on processors, over gloo; at night, real launchers start them."""

import json
import os
import shutil
import sys
from itertools import chain

import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from cocos.config.ranks import num_processors
from cocos.config.trl_configs import CoCoSConfig
from cocos.problems import save_problems
from cocos.training.rollouts import equal_share
from tests.support.commands import free_port, succeed, succeed_as_two_ranks
from tests.support.paths import ROOT
from tests.support.training import toy_problems

pytestmark = pytest.mark.processes

UPDATES = 4
COMMON = {
    "model_name_or_path": "data/toy/base",
    "learning_rate": 3e-4,
    "lr_scheduler_type": "constant",
    "logging_steps": 1,
    "max_steps": UPDATES,
    "eval_steps": UPDATES // 2,
    "save_steps": UPDATES // 2,
    "save_total_limit": 2,
    "report_to": "none",
    "disable_tqdm": True,
    "seed": 9,
}
COCOS = COMMON | {
    "train_data": "data/toy/train.jsonl",
    "credit": "turn",
    "num_generations": 4,
    "num_iterations": 2,  # so that the ratio of new to old probabilities, and with it the loss, moves
    "global_batch_size": 8,
    "temperature": 1.0,
    "beta": 0.05,
    "max_completion_length": 24,
}
LORA = {"use_peft": True, "lora_r": 4, "lora_target_modules": "q_proj v_proj", "learning_rate": 3e-3}
LORA |= {"feedback": "error", "early_stop": True}  # so that ranks sample unequally many second turns
LORA |= {"carry": "counterexamples", "prompt_tests": 1}  # siblings in the same state share a baseline
AGAIN = {"carry": "nothing", "early_stop": True, "learning_rate": 1e-4}
# Whole groups stay on a rank, where the samples of a prompt are seeded in their order.
DYNAMIC = {"dynamic_sampling": 1, "credit": "last", "num_generations": 2}
ACCUMULATED = {"per_device_train_batch_size": 2}  # two ranks: two forward passes per update
WHOLE = {"per_device_train_batch_size": 8, "gradient_checkpointing": False}

# Until SIGTERM comes, and on from its checkpoint, which nothing else saves.
STOPPED = ACCUMULATED | {"dev_data": None, "save_steps": UPDATES}
CONTINUED = STOPPED | {"resume_from_checkpoint": f"THESE_RUNS/stopped/checkpoint-{UPDATES // 2}"}

# The weights after an update of plain gradient descent show every gradient.
DESCENT = {
    "per_device_train_batch_size": 4,  # a group
    "global_batch_size": 16,
    "optim": "sgd",
    "learning_rate": 0.01,
    "max_grad_norm": 0,
    "max_steps": 3,  # two updates with the first batch, one with the second, whose KL is not 0
    "save_steps": 3,
    "dev_data": None,
}
PLAIN = DESCENT | {"share_prefixes": False}

# Runs of every change: weights that stay divided, a resumed run, LoRA. The other launchers run at night.
DAILY = {"alone": {"full", "lora"}, "ddp": set(), "fsdp2": set(), "zero": {"full3", "resumed3", "lora2"}}

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="deepspeed compiles its CPU operators with g++"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Dev problems that do not divide by two ranks, and Boost rows of unequal length."""
    folder = tmp_path_factory.mktemp("data")
    save_problems(toy_problems("dev")[:5], folder / "dev.jsonl")
    answers = [f"def mint(xs):\n    return {'sorted' * (i % 3 == 0)}(xs)[:{i}]\n[DONE]" for i in range(16)]
    rows = [{"prompt": f"problem {i}\n\n[BEGIN]\n", "completion": a} for i, a in enumerate(answers)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="module")
def launch(data, tmp_path_factory, request):
    """Train under a launcher, one run after another; return the folder that holds their outputs by name."""
    is_daily = "not nightly" in request.config.option.markexpr

    def launch(layout, launcher, **runs):
        folder = tmp_path_factory.mktemp("runs")
        commands = []
        for name, options in runs.items():
            if is_daily and name not in DAILY[layout]:
                continue
            if name.startswith("boost"):
                script, options = "boost/boost_train.py", COMMON | {"global_batch_size": 8} | options
                options |= {"train_data": data / "rows.jsonl", "eval_data": data / "rows.jsonl"}
            else:
                script, options = "train.py", COCOS | {"dev_data": data / "dev.jsonl"} | options
            options |= {"output_dir": folder / name}
            given = {flag: value for flag, value in options.items() if value is not None}
            words = [word for flag, value in given.items() for word in (f"--{flag}", *str(value).split())]
            words = [word.replace("THESE_RUNS", str(folder)) for word in words]
            commands.append([script, *words])
        (folder / "runs.json").write_text(json.dumps(commands))
        words = ("tests/support/parallel_run.py", folder / "runs.json")
        given = {"PYTHONPATH": str(ROOT), "timeout_s": 600}
        num_ranks = 1 if launcher[0] == sys.executable else 2
        if is_daily and num_ranks == 2:
            printed = succeed_as_two_ranks(sys.executable, *words, **given)
        else:
            printed = succeed(*launcher, *words, **given).stdout
        processors = max(1, len(os.sched_getaffinity(0)) // num_ranks)
        assert printed.count(f"{processors} processors for this rank") == num_ranks
        return folder

    return launch


@pytest.fixture(scope="module")
def alone(launch):
    return launch(
        "alone",
        [sys.executable],
        full=WHOLE,
        lora=WHOLE | LORA,
        again=WHOLE | AGAIN,
        dynamic=WHOLE | DYNAMIC,
        boost={"per_device_train_batch_size": 8},
    )


@pytest.fixture(scope="module")
def ddp(launch):
    config = "configs/accelerate/ddp.yaml"
    launcher = ("accelerate", "launch", "--config_file", config, "--num_processes", 2)
    return launch(
        "ddp",
        [*launcher, "--main_process_port", free_port()],
        full=ACCUMULATED,
        lora=ACCUMULATED | LORA,
        again=ACCUMULATED | AGAIN,
        dynamic=ACCUMULATED | DYNAMIC,
        shared=DESCENT,
        plain=PLAIN,
        stopped=STOPPED,
        continued=CONTINUED,
        halted=STOPPED,
    )


@pytest.fixture(scope="module")
def fsdp2(launch):
    config = "configs/accelerate/fsdp2.yaml"
    launcher = ("accelerate", "launch", "--config_file", config, "--num_processes", 2)
    return launch(
        "fsdp2",
        [*launcher, "--main_process_port", free_port()],
        full=ACCUMULATED,
        resumed=ACCUMULATED | {"resume_from_checkpoint": f"THESE_RUNS/full/checkpoint-{UPDATES // 2}"},
        bf16=ACCUMULATED | {"bf16": True},
        lora=ACCUMULATED | LORA,
        again=ACCUMULATED | AGAIN,
        shared=DESCENT,
        plain=PLAIN,
        boost={"per_device_train_batch_size": 2},
        stopped=STOPPED,
        continued=CONTINUED,
        halted=STOPPED,
    )


@pytest.fixture(scope="module")
def zero(launch):
    stages = {stage: {"deepspeed": f"configs/deepspeed/zero{stage}.json"} for stage in (1, 2, 3)}
    return launch(
        "zero",
        ["deepspeed", "--num_gpus", 2, "--master_port", free_port()],
        full1=ACCUMULATED | stages[1],
        full2=ACCUMULATED | stages[2],
        full3=ACCUMULATED | stages[3],
        resumed3=ACCUMULATED
        | stages[3]
        | {"resume_from_checkpoint": f"THESE_RUNS/full3/checkpoint-{UPDATES // 2}"},
        bf163=ACCUMULATED | stages[3] | {"bf16": True},
        lora2=ACCUMULATED | LORA | stages[2],
        lora3=ACCUMULATED | LORA | stages[3],
        again3=ACCUMULATED | AGAIN | stages[3],
        # Weights that stay divided: every sampled token is a forward pass that the ranks make together. Ranks that
        # called the generator unequally often would wait for each other for ever.
        dynamic3=ACCUMULATED | DYNAMIC | stages[3] | {"ds3_gather_for_generation": False},
        boost3={"per_device_train_batch_size": 2} | stages[3],
        shared3=DESCENT | stages[3],
        plain3=PLAIN | stages[3],
        stopped3=STOPPED | stages[3],
        continued3=CONTINUED
        | stages[3]
        | {"resume_from_checkpoint": f"THESE_RUNS/stopped3/checkpoint-{UPDATES // 2}"},
        halted3=STOPPED | stages[3] | {"ds3_gather_for_generation": False},
    )


def of(layout, *names):
    """Return parameters for runs of a launcher, of which those of `make test-all` alone are marked."""
    nightly = {name: [pytest.mark.nightly] * (name not in DAILY[layout]) for name in names}
    compiler = [needs_compiler] * (layout == "zero")
    return [pytest.param(layout, name, marks=[*compiler, *nightly[name]]) for name in names]


LAYOUTS = [
    *of("ddp", "full", "lora", "again"),
    *of("zero", "full1", "full2", "full3", "lora2", "lora3", "again3"),
    *of("fsdp2", "full", "lora", "again"),
]
DRAWN = [*of("ddp", "dynamic"), *of("zero", "dynamic3")]
BF16 = [*of("zero", "bf163"), *of("fsdp2", "bf16")]
BOOST = [*of("zero", "boost3"), *of("fsdp2", "boost")]
SHARED = [*of("ddp", "shared"), *of("zero", "shared3"), *of("fsdp2", "shared")]
RESUMED = [*of("zero", "resumed3"), *of("fsdp2", "resumed")]
HALTED = [*of("ddp", "halted"), *of("zero", "halted3"), *of("fsdp2", "halted")]
SIGNALLED = [*of("ddp", "stopped"), *of("zero", "stopped3"), *of("fsdp2", "stopped")]


def logs(output, names=None, step=UPDATES):
    """What each update logged, and what the evaluation after the last one did."""
    state = json.loads((output / f"checkpoint-{step}/trainer_state.json").read_text())
    return [{k: v for k, v in log.items() if k in (names or COMPARED)} for log in state["log_history"]]


COMPARED = {
    *("loss", "grad_norm", "reward_t1", "reward_t2", "kl_t1", "kl_t2", "acc_t1", "acc_t2", "num_tokens"),
    *("draws", "prompts_drawn", "sampled_tokens_total", "frac_groups_flat"),
    *("clip_ratio/region_mean", "completion_length_t2", "engine/kl"),
    *("eval_acc_t1", "eval_better_t1_t2", "eval_loss"),
}


@pytest.mark.parametrize("layout, name", [*LAYOUTS, *DRAWN, *BOOST])
def test_two_ranks_equal_one_process_at_the_same_global_batch(alone, layout, name, request):
    """Losses, gradients and KL of every update, greedy answers after the last, and the weights that were saved."""
    folder = request.getfixturevalue(layout)
    expected = {"ddp": "DistributedDataParallel", "fsdp2": "FSDP2", "zero": f"ZeRO-{name[-1]}"}
    assert (folder / name / "layout").read_text() == expected[layout]
    single, double = logs(alone / name.rstrip("123")), logs(folder / name)
    assert len(single) == len(double) == UPDATES + 2
    for one, two in zip(single, double, strict=True):
        assert two == pytest.approx(one, rel=1e-3, abs=1e-4)
    gaps = [one["engine/kl"] for one in single if "engine/kl" in one]
    assert len(gaps) == (0 if name.startswith("boost") else UPDATES // 2)
    assert min(gaps, default=1) > 0.01, "a gap of nothing proves nothing"
    gradients = [one["grad_norm"] for one in single if "grad_norm" in one]
    assert len(gradients) == UPDATES and min(gradients) > 0.01, "a batch without gradient proves nothing"
    for kept in (".", f"checkpoint-{UPDATES}"):
        assert apart(folder / name / kept, alone / name.rstrip("123") / kept) < 1e-4


@pytest.mark.parametrize("layout, name", [*LAYOUTS, *BF16])
def test_prefixes_are_shared_in_every_layout_and_in_half_precision(layout, name, request):
    output = request.getfixturevalue(layout) / name
    ratios = [log["packing_ratio"] for log in logs(output, {"packing_ratio"}) if log]
    assert len(ratios) == UPDATES and min(ratios) > 2


@pytest.mark.parametrize("layout, name", SHARED)
def test_shared_prefixes_equal_plain_rows_on_two_ranks(layout, name, request):
    """Loss, KL, entropy, and every gradient, which is the change of the weights by plain gradient descent."""
    folder = request.getfixturevalue(layout)
    names = {"loss", "entropy", "kl_t1", "kl_t2", "clip_ratio/region_mean", "num_tokens"}
    shared, plain = (
        [log for log in logs(folder / run, names, step=3) if "loss" in log]
        for run in (name, name.replace("shared", "plain"))
    )
    assert len(shared) == 3 and abs(shared[2]["kl_t2"]) > 1e-2, "equal policies prove nothing"
    for one, other in zip(shared, plain, strict=True):
        assert one == pytest.approx(other, rel=0, abs=1e-5)
    trained, rows = folder / name, folder / name.replace("shared", "plain")
    # The gradients move the weights by up to 8e-3. Those near 1 are rounded to 1e-7.
    assert apart(trained, rows) < 4e-7
    ratios, none = (logs(output, {"packing_ratio"}, step=3) for output in (trained, rows))
    assert ratios[0]["packing_ratio"] > 2 and not any(none)


@pytest.mark.nightly
def test_groups_of_one_problem_go_to_the_same_micro_batch(ddp):
    """Two updates of two micro-batches with four problems on two ranks, and one update with the next batch."""
    seen = []
    for rank in (0, 1):
        lines = (ddp / f"shared/micro_batches-{rank}").read_text().splitlines()
        for line in lines:
            first_turns = json.loads(line)[::2]
            assert len(first_turns) == 4 and all(prompt == first_turns[0] for prompt in first_turns)
            seen.append(tuple(first_turns[0]))
    assert len(seen) == 2 * 2 * 3 and len(set(seen)) == 8


def weights(output):
    """The weights of a plain checkpoint, read as any user reads it; of an adapter, its own."""
    if (output / "adapter_model.safetensors").exists():
        return load_file(output / "adapter_model.safetensors")
    return AutoModelForCausalLM.from_pretrained(output, dtype="float32").state_dict()


def apart(output, other):
    """The largest difference between any two weights of two checkpoints."""
    ours, theirs = weights(output), weights(other)
    assert ours.keys() == theirs.keys()
    return max((ours[key] - theirs[key]).abs().max().item() for key in ours)


@pytest.mark.parametrize("layout, name", RESUMED)
def test_ranks_that_were_interrupted_and_resumed_equal_ranks_that_were_not(layout, name, request):
    folder = request.getfixturevalue(layout)
    whole = name.replace("resumed", "full")
    assert logs(folder / name) == logs(folder / whole)
    assert apart(folder / name, folder / whole) == 0
    assert (
        apart(folder / name / f"checkpoint-{UPDATES}", folder / whole / f"checkpoint-{UPDATES // 2}") > 1e-5
    )


@pytest.mark.parametrize("layout, name", SIGNALLED)
def test_sigterm_to_one_rank_stops_both_within_a_micro_batch_and_the_run_continues(layout, name, request):
    """It comes in the first of two micro-batches of update 3, to the last rank alone."""
    folder = request.getfixturevalue(layout)
    seen = [(folder / name / f"micro_batches-{rank}").read_text().count("\n") for rank in (0, 1)]
    assert seen == [2 * 2 + 1] * 2
    assert [path.name for path in (folder / name).glob("checkpoint-*")] == [f"checkpoint-{UPDATES // 2}"]
    assert not (folder / name / "config.json").exists(), "no final model"
    continued, whole = (folder / name.replace("stopped", other) for other in ("continued", "full"))
    evaluated = {"eval_acc_t1", "eval_better_t1_t2"}
    assert logs(continued) == [log for log in logs(whole) if not evaluated & log.keys()]
    assert apart(continued, whole / f"checkpoint-{UPDATES}") == 0


@pytest.mark.parametrize("layout, name", HALTED)
def test_sigterm_to_one_rank_while_both_sample_stops_both_before_the_micro_batch(layout, name, request):
    """Ranks with divided weights leave together in a decoding step; with DDP, the other one samples its share first."""
    folder = request.getfixturevalue(layout)
    seen = [(folder / name / f"micro_batches-{rank}").read_text().count("\n") for rank in (0, 1)]
    assert seen == [2 * 2] * 2
    [checkpoint] = (folder / name).glob("checkpoint-*")
    assert checkpoint.name == f"checkpoint-{UPDATES // 2}"
    assert apart(checkpoint, folder / name.replace("halted", "stopped") / checkpoint.name) == 0


@pytest.mark.parametrize("layout, name", [*LAYOUTS, *BF16])
def test_the_reference_is_the_policy_at_step_0(layout, name, request):
    first, after = [log for log in logs(request.getfixturevalue(layout) / name) if "kl_t1" in log]
    assert first["kl_t1"] == first["kl_t2"] == 0, "equal passes of equal models give equal numbers"
    assert abs(after["kl_t1"]) > 1e-4, "a policy that never leaves its reference proves nothing"


@pytest.mark.parametrize("num_items, num_ranks", [(5, 2), (4, 2), (1, 4), (7, 3)])
def test_every_rank_has_equally_many_and_all_are_there_in_order(num_items, num_ranks):
    shares = [equal_share(range(num_items), rank, num_ranks) for rank in range(num_ranks)]
    assert len({len(share) for share in shares}) == 1
    assert list(chain(*shares))[:num_items] == list(range(num_items))
    assert len(shares[0]) * num_ranks < num_items + num_ranks


@pytest.mark.parametrize("variable", ["LOCAL_WORLD_SIZE", "LOCAL_SIZE"])  # torchrun's, deepspeed's
def test_the_ranks_of_a_machine_share_its_processors(monkeypatch, variable):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(48)))
    assert num_processors() == 48
    monkeypatch.setenv(variable, "8")
    assert num_processors() == 6
    monkeypatch.setenv(variable, "64")
    assert num_processors() == 1


def test_deepspeed_without_its_launcher_is_refused(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(ValueError, match="--deepspeed needs its launcher"):
        CoCoSConfig(
            output_dir="out",
            model_name_or_path="m",
            train_data="t.jsonl",
            deepspeed="configs/deepspeed/zero2.json",
        )
