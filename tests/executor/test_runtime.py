"""The runtime of the containers at level docker."""

import subprocess

import pytest

from cocos.executor import Executor, ExecutorError
from cocos.executor.sandboxes import syscall_filter
from cocos.executor.sandboxes.levels import choose
from tests.support.executor import GOOD, level_or_skip

pytestmark = pytest.mark.processes

# A client whose engine knows the runtime runsc alone. It notes the arguments of `run`, and starts nothing.
CLIENT = """#!/bin/sh
case "$1" in
  info) case "$3" in *'"runsc"'*) echo runsc;; esac; exit 0;;
  run) echo "$@" >> "$0.arguments"; exit 1;;
esac
"""


@pytest.fixture
def client(monkeypatch, tmp_path):
    path = tmp_path / "docker"
    path.write_text(CLIENT)
    path.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", str(path))
    return path


def test_containers_are_started_with_the_runtime(client):
    if syscall_filter.missing_reason():
        pytest.skip("no libseccomp")
    with pytest.raises(ExecutorError, match="self-test at isolation level docker"):
        Executor(num_workers=1, runtime="runsc")
    commands = (client.parent / "docker.arguments").read_text().splitlines()
    assert commands and all(" --runtime=runsc cocos-sandbox " in command for command in commands)


def test_a_runtime_that_the_engine_does_not_know_is_refused(client):
    if syscall_filter.missing_reason():
        pytest.skip("no libseccomp")
    with pytest.raises(ExecutorError, match="the docker engine has no runtime 'crun'"):
        choose("auto", runtime="crun")


def test_a_runtime_at_another_level_is_refused():
    with pytest.raises(
        ValueError, match="the runtime 'runsc' needs level docker, and the sandbox is 'seccomp'"
    ):
        choose("seccomp", runtime="runsc")


def test_the_engines_own_runtime_runs_programs():
    level_or_skip("docker")
    with Executor(num_workers=1, sandbox="docker", runtime="runc") as executor:
        assert executor.run([GOOD])[0].all_passed
        names = subprocess.run(
            ["docker", "ps", "--quiet", "--filter", "name=cocos-executor-"], capture_output=True, text=True
        ).stdout.split()
        inspected = ["docker", "inspect", "--format", "{{.HostConfig.Runtime}}", *names]
        runtimes = subprocess.run(inspected, capture_output=True, text=True).stdout.split()
        assert "runc" in runtimes
    with pytest.raises(ExecutorError, match="no runtime 'no-such-runtime'"):
        choose("docker", runtime="no-such-runtime")
