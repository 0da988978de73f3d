"""What `cocos doctor` says about the machine, and about a model."""

import os
import sys

import pytest

from cocos.commands import doctor
from cocos.executor import limits
from tests.support.paths import TOY


@pytest.mark.parametrize(
    ("content", "cores"), [("150000 100000", 1.5), ("max 100000", 4), ("800000 100000", 4)]
)
def test_the_share_of_a_container_limits_the_cores(tmp_path, monkeypatch, content, cores):
    (tmp_path / "cpu.max").write_text(content)
    monkeypatch.setattr(limits, "CGROUP_CPU", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    assert limits.usable_cores() == cores


def test_the_machine_is_described_in_three_lines():
    cores, memory, torch = doctor.machine_lines().splitlines()
    assert f" of {os.cpu_count()} can be used" in cores and memory.endswith(" GB")
    assert "built for " in torch and "GPU" in torch


def test_a_model_is_named_by_its_kind_and_what_can_be_done_with_it(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["doctor", str(TOY / "base")])
    assert doctor.main() == 0
    assert capsys.readouterr().out == f"{TOY}/base: LlamaForCausalLM; it can be evaluated and trained\n"
