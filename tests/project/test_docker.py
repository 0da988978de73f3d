"""The Dockerfile, as far as it can be read without docker, and the limits of the executor's containers."""

import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import PurePath

import pytest

from cocos.assembly.programs import open_executor
from cocos.commands import COMMANDS
from cocos.config.executor_options import ExecutorOptions
from cocos.executor.sandboxes import docker, namespaces
from cocos.executor.sandboxes.interpreter import Interpreter
from cocos.executor.worker import Worker, WorkerUnusable
from tests.support.paths import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
KEPT = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def is_in_the_build(path: str) -> bool:
    """Return whether .dockerignore, whose first line excludes everything, lets a path into the build."""
    return any(
        fnmatch(str(part), kept) for part in (PurePath(path), *PurePath(path).parents) for kept in KEPT
    )


def test_what_the_image_copies_and_what_the_wheel_is_made_of_is_in_the_build():
    assert (ROOT / ".dockerignore").read_text().startswith("*\n")
    copied = re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.MULTILINE)
    assert "." in copied and all((ROOT / kept).exists() for kept in KEPT)
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = [*wheel["packages"], *wheel["force-include"], PROJECT["tool"]["hatch"]["version"]["path"]]
    needed += [PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "pyproject.toml"]
    for path in [*copied, *needed]:
        assert path == "." or ((ROOT / path).exists() and is_in_the_build(path)), path
    assert not is_in_the_build("outputs/demo") and not is_in_the_build(".git")


def test_the_command_extra_and_version_that_the_image_names_exist():
    [entry] = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)
    [command] = re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.MULTILINE)
    [extra] = re.findall(r"\.whl\)\[(\w+)\]", DOCKERFILE)
    assert entry in PROJECT["project"]["scripts"] and command in COMMANDS
    assert extra in PROJECT["project"]["optional-dependencies"]
    pins = (ROOT / "constraints.txt").read_text()
    assert re.search(r"^torch==[\d.]+$", pins, re.MULTILINE)  # without +cpu: every index has a build of it
    page = (ROOT / "docs/training.md").read_text()
    assert set(re.findall(r"--build-arg (\w+)=", page)) == set(
        re.findall(r"^ARG (\w+)=", DOCKERFILE, re.MULTILINE)
    )


def started_with(folder, monkeypatch, **limits):
    """Return the options with which the executor starts a container, from a client that writes them to a file."""
    client, words = folder / "client", folder / "words"
    client.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {words}\n')
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", str(client))
    sandbox = docker.launch(ExecutorOptions(**limits).program_limits, Interpreter())
    sandbox.process.wait()
    started = words.read_text()
    sandbox.kill()
    return dict(re.findall(r"^--(cpus|memory|memory-swap|pids-limit)=(\S+)$", started, re.MULTILINE))


def test_a_container_has_the_limits_of_the_options_or_else_of_the_variables(tmp_path, monkeypatch):
    # one program, plus 256 MiB and 8 processes for the zygote and the judge
    own = {"cpus": "1", "memory": "756m", "memory-swap": "756m", "pids-limit": "11"}
    assert started_with(tmp_path, monkeypatch, program_memory_mb=500, program_processes=3) == own
    variables = {"CPUS": "1.5", "MEMORY": "2g", "PIDS": "99"}
    for name, value in variables.items():
        monkeypatch.setenv(f"SANDBOX_DOCKER_{name}", value)
    expected = {"cpus": "1.5", "memory": "2g", "memory-swap": "2g", "pids-limit": "99"}
    assert started_with(tmp_path, monkeypatch, program_memory_mb=500, program_processes=3) == expected
    with pytest.raises(ValueError, match="--program_processes is -1; give 0 or more"):
        ExecutorOptions(program_processes=-1)


def test_an_engine_that_stops_ends_a_run_with_its_own_words(tmp_path, monkeypatch):
    client = tmp_path / "docker"
    complaint = "docker: Cannot connect to the Docker daemon.\n\nRun 'docker run --help' for more information"
    client.write_text(f'#!/bin/sh\necho "{complaint}" >&2\nexit 125\n')
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", str(client))
    with pytest.raises(WorkerUnusable, match=r"Cannot connect to the Docker daemon\.$"):
        Worker(lambda: docker.launch(ExecutorOptions().program_limits, Interpreter()))


@pytest.mark.parametrize("has_bubblewrap", [True, False])
def test_auto_says_its_level_and_below_namespaces_why_no_stronger_one(
    tmp_path, monkeypatch, capsys, request, has_bubblewrap
):
    """The engine does not answer, as when its daemon has stopped."""
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon.' >&2\nexit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("DOCKER_BIN", str(client))
    if not has_bubblewrap:
        monkeypatch.setenv("PATH", str(tmp_path))
        namespaces.missing_reason.cache_clear()
        request.addfinalizer(namespaces.missing_reason.cache_clear)
    with open_executor(ExecutorOptions(executor_workers=1)) as executor:
        told = capsys.readouterr().err
    if executor.isolation == "namespaces":
        assert told == "programs isolated by namespaces\n"
    else:
        assert told.startswith("programs isolated by seccomp; not docker: no docker engine")
        assert "start the daemon" in told and "Cannot connect" in told and told.count("\n") == 1
        assert "; not namespaces: bubblewrap is not installed" in told or has_bubblewrap
    with open_executor(ExecutorOptions(executor_workers=1, sandbox=executor.isolation)):
        assert capsys.readouterr().err == ""


@pytest.mark.nightly
@pytest.mark.skipif(docker.missing_reason() is not None, reason=f"level docker: {docker.missing_reason()}")
def test_docker_inspect_shows_the_limits():
    shown = "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}"
    options = ExecutorOptions(
        sandbox="docker", program_memory_mb=500, program_processes=3, executor_workers=1
    )
    with open_executor(options):
        names = ["docker", "ps", "--filter", "name=cocos-executor", "--format", "{{.Names}}"]
        started = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()
        words = ["docker", "inspect", "--format", shown, *started]
        found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert f"{10**9} {756 << 20} 11" in found
