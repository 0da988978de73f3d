"""Learning rate of each update of a new and of a continued run: none is 0, and all follow from its options."""

import math
import re

import pytest
import torch
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers.optimization import get_scheduler
from transformers.trainer_utils import SchedulerType

from cocos.config.option import ROLES, option_names
from cocos.config.schedule import avoid_rate_zero, rate_before
from cocos.config.trl_configs import INHERITED, BoostConfig, CoCoSConfig
from cocos.training.changes import ADAPTIVE, FIXED, FIXED_IF_ADAPTIVE, apply_options, group_options
from tests.support.paths import ROOT

KINDS = sorted(kind.value for kind in SchedulerType)
NEEDED = {
    "cosine_with_min_lr": {"min_lr_rate": 0.1},
    "cosine_warmup_with_min_lr": {"min_lr_rate": 0.1},
    "warmup_stable_decay": {"num_decay_steps": 2},
}


def optimizer_and_schedule(kind, warmup, updates, peak=1.0, weight_decay=0.0, ours=True, **kwargs):
    torch.manual_seed(0)
    weight, bias = (torch.ones(2, requires_grad=True) for _ in range(2))
    groups = [{"params": [weight], "weight_decay": weight_decay}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = AdamW(groups, lr=peak)
    schedule = get_scheduler(kind, optimizer, warmup, updates, NEEDED.get(kind, {}) | kwargs)
    if ours:
        avoid_rate_zero(schedule, updates)
    return optimizer, schedule


def play(optimizer, schedule, updates):
    """Make updates with gradients of 1 and return the rate of each."""
    rates = []
    for _ in range(updates):
        rates.append(optimizer.param_groups[0]["lr"])
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        if isinstance(schedule, LambdaLR):
            assert schedule.get_last_lr()[0] == rates[-1], "what the log calls the rate of this update"
            schedule.step()
            assert rate_before(schedule) == rates[-1], "where DeepSpeed has already stepped it"
    return rates


def rates(kind, warmup, updates, **options):
    return play(*optimizer_and_schedule(kind, warmup, updates, **options), updates)


@pytest.mark.parametrize(
    ("kind", "warmup", "expected"),
    [
        ("linear", 0, [1, 3 / 4, 2 / 4, 1 / 4]),
        ("linear", 2, [1 / 3, 2 / 3, 1, 1 / 2]),
        ("cosine", 1, [1 / 2, 1, 3 / 4, 1 / 4]),  # cos of 0, 60 and 120 degrees
        ("constant_with_warmup", 2, [1 / 3, 2 / 3, 1, 1]),
        ("inverse_sqrt", 1, [1 / 2, 1, math.sqrt(1 / 2), math.sqrt(1 / 3)]),
        ("polynomial", 4, [1 / 5, 2 / 5, 3 / 5, 4 / 5]),  # transformers divides by 0
        ("linear", 9, [1 / 10, 2 / 10, 3 / 10, 4 / 10]),
        ("warmup_stable_decay", 1, [1 / 2, 1, 1, 1 / 2]),
        ("cosine_with_min_lr", 1, [1 / 2, 1, 0.1 + 0.9 * 3 / 4, 0.1 + 0.9 / 4]),
        ("cosine_warmup_with_min_lr", 2, [1 / 2, 1, 0.1 + 0.9 / 2, 0.1]),  # above 0 as it is
    ],
)
def test_a_warm_up_rises_to_the_peak_from_above_zero(kind, warmup, expected):
    assert rates(kind, warmup, 4) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_no_update_has_rate_zero_and_rates_after_the_warm_up_are_those_of_transformers(kind):
    for warmup, updates in ((0, 1), (0, 5), (1, 1), (1, 5), (3, 9), (5, 5), (20, 9)):
        ours = rates(kind, warmup, updates)
        assert min(ours) > 0
        if (kind, warmup >= updates) == ("polynomial", True):
            continue  # transformers divides by 0 after the last update
        theirs = rates(kind, warmup, updates, ours=False)
        assert ours[warmup:] == theirs[warmup:]
        assert ours == theirs or theirs[0] == 0


@pytest.mark.parametrize(
    ("kind", "kwargs", "update"),
    [
        ("cosine", {"num_cycles": 1.0}, 3),
        ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.0}, 4),
        ("warmup_stable_decay", {"num_stable_steps": 1, "num_decay_steps": 1}, 3),
    ],
)
def test_a_schedule_that_reaches_zero_before_its_end_is_refused(kind, kwargs, update):
    with pytest.raises(ValueError, match=rf"^update {update} of 4 would have the learning rate 0"):
        optimizer_and_schedule(kind, 0, 4, **kwargs)


@pytest.mark.parametrize("old", [kind for kind in KINDS if kind not in ADAPTIVE])  # they are refused
@pytest.mark.parametrize(
    ("new", "warmup"), [("constant", 0), ("linear", 0), ("cosine", 8), ("inverse_sqrt", 2)]
)
def test_a_continued_run_has_the_rates_of_its_own_options_at_its_place_and_the_old_moments(old, new, warmup):
    """Three updates of three, then updates 4 to 6 of six with another rate, schedule and weight decay."""
    first, schedule = optimizer_and_schedule(old, 1, 3, peak=0.1)
    play(first, schedule, 3)
    options = {"peak": 0.5, "weight_decay": 0.25}
    second, continued = optimizer_and_schedule(new, warmup, 6, **options)
    expected = rates(new, warmup, 6, **options)[3:]
    chosen = group_options(second)
    second.load_state_dict(first.state_dict())  # in transformers' order
    continued.load_state_dict(schedule.state_dict())
    apply_options(second, continued, chosen)
    moments, kept = (list(one.state.values()) for one in (first, second))
    assert all(torch.equal(a["exp_avg"], b["exp_avg"]) for a, b in zip(moments, kept, strict=True))
    assert play(second, continued, 3) == expected and min(expected) > 0
    assert [group["weight_decay"] for group in second.param_groups] == [0.25, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_resumed_with_the_same_options_has_the_rates_of_an_uninterrupted_one(kind):
    expected = rates(kind, 2, 6)
    first, schedule = optimizer_and_schedule(kind, 2, 6)
    begun = play(first, schedule, 3)
    second, resumed = optimizer_and_schedule(kind, 2, 6)
    chosen = group_options(second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    apply_options(second, resumed, chosen)
    assert begun + play(second, resumed, 3) == expected


def test_a_schedule_that_follows_from_evaluations_keeps_the_rate_that_it_has_reached():
    first, schedule = optimizer_and_schedule("reduce_lr_on_plateau", 0, 9, patience=0)
    for loss in (1.0, 2.0):
        schedule.step(loss)
    assert first.param_groups[0]["lr"] == 0.1
    second, resumed = optimizer_and_schedule("reduce_lr_on_plateau", 0, 9, patience=0)
    chosen = group_options(second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    apply_options(second, resumed, chosen)
    assert second.param_groups[0]["lr"] == 0.1


def test_a_warm_up_may_be_a_share_of_the_updates_and_a_wrong_schedule_is_one_line(make_trainer):
    trainer = make_trainer(lr_scheduler_type="linear", warmup_steps=0.2, learning_rate=0.3)
    trainer.create_optimizer_and_scheduler(10)
    assert play(trainer.optimizer, trainer.lr_scheduler, 4) == pytest.approx([0.1, 0.2, 0.3, 0.3 * 7 / 8])
    for kind, kwargs, fault in (
        ("linear", {"lr_end": 0.1}, "unexpected keyword argument 'lr_end'"),
        ("warmup_stable_decay", {}, "num_decay_steps"),
        ("cosine", {"num_cycles": 1.0}, "update 6 of 10 would have the learning rate 0"),
    ):
        with pytest.raises(ValueError, match=f"^--lr_scheduler_type {kind}, --lr_scheduler_kwargs .*{fault}"):
            make_trainer(lr_scheduler_type=kind, lr_scheduler_kwargs=kwargs, max_steps=10)


def test_the_documentation_says_of_every_option_that_results_depend_on_what_a_resumed_run_does():
    page = (ROOT / "docs/training.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", page.split("## What a resumed run changes")[1], re.M)
    documented = {name: effect for names, effect in rows for name in re.findall(r"`(\w+)`", names)}
    roles = [role for role in ROLES if role not in ("run", "executor")]
    options = {name for config in (CoCoSConfig, BoostConfig) for name in option_names(config, *roles)}
    assert documented.keys() == options | set(INHERITED)
    assert {name for name, effect in documented.items() if effect.startswith("refused")} == set(FIXED)
    assert all("refused" in documented[name] for name in FIXED_IF_ADAPTIVE)
