"""The Dockerfile, as far as it can be read without docker; docs/training.md says what a build gave."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import PurePath

from cocos.commands import COMMANDS
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
