"""Download the wheels that a machine without network lacks: part of `scripts/gpu_kit.sh pack`.

    python scripts/gpu_wheels.py build/gpu_kit/wheels --machine freeze.txt 'trl~=1.16.0' 'deepspeed>=0.19'

uv resolves the requirements for the other machine's Python and PyTorch: in seconds, where pip takes more than
half an hour for vLLM. A package is left out if the machine has a version that every resolved package accepts.
Without --machine, the machine is assumed to have PyTorch and what that requires.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cocos.entry_point import run_command

NEWEST_GLIBC, OLDEST_GLIBC = 35, 5  # 2.x of the accepted wheels


@dataclass(frozen=True)
class Package:
    """A resolved package."""

    name: str  # normalized
    version: str
    requires: tuple[str, ...]  # its requirements, with markers


def from_report(report: Mapping[str, list]) -> list[Package]:
    """Return the packages of pip's installation report."""
    found = [entry["metadata"] for entry in report["install"]]
    return [
        Package(canonicalize_name(m["name"]), m["version"], tuple(m.get("requires_dist", ()))) for m in found
    ]


def parse_freeze(text: str) -> dict[str, str]:
    """Return name and version of each line of `pip freeze`; lines without a version are skipped."""
    pairs = [line.strip().partition("==") for line in text.splitlines() if "==" in line]
    return {canonicalize_name(name): version for name, _, version in pairs}


def required(package: Package, python: str, extras: Iterable[str] = ()) -> list[Requirement]:
    """Return the requirements of a package, and of some of its extras, for a Python on Linux."""
    environment = default_environment() | {"python_version": python, "python_full_version": f"{python}.0"}
    environments = [environment | {"extra": extra} for extra in ("", *extras)]
    found = map(Requirement, package.requires)
    return [need for need in found if need.marker is None or any(map(need.marker.evaluate, environments))]


def closure(packages: Iterable[Package], root: str, python: str) -> set[str]:
    """Return the names of a package and of all that it requires, directly or not."""
    by_name = {package.name: package for package in packages}
    reached, waiting = set(), [Requirement(root)]
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        if name in by_name and (name, frozenset(need.extras)) not in reached:
            reached.add((name, frozenset(need.extras)))
            waiting += required(by_name[name], python, need.extras)
    return {name for name, _ in reached}


def missing(
    packages: Sequence[Package], wanted: Iterable[str], machine: Mapping[str, str], python: str
) -> list[Package]:
    """Return the packages of which the machine has no version that all others accept.

    Args:
        wanted: The requirements that were resolved.
        machine: Versions by name on the machine.

    """
    needs = [*map(Requirement, wanted), *(need for package in packages for need in required(package, python))]

    def is_there(package: Package) -> bool:
        version = machine.get(package.name)
        return version is not None and all(
            need.specifier.contains(version, prereleases=True)
            for need in needs
            if canonicalize_name(need.name) == package.name
        )

    lacking = {package.name for package in packages if not is_there(package)}
    # A package that pins a lacking one comes too: the machine's own version would pin another.
    while (
        pinning := {
            package.name
            for package in packages
            for need in required(package, python)
            if canonicalize_name(need.name) in lacking and any(one.operator == "==" for one in need.specifier)
        }
        - lacking
    ):
        lacking |= pinning
    return [package for package in packages if package.name in lacking]


def pip_options(python: str, folder: Path) -> list[str]:
    """Return pip's options for wheels of another Python; wheels in `folder` are used too."""
    options = ["--only-binary=:all:", "--python-version", python, "--implementation", "cp", "--quiet"]
    for abi in (f"cp{python.replace('.', '')}", "abi3", "none"):
        options += ["--abi", abi]
    for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1):
        options += ["--platform", f"manylinux_2_{minor}_x86_64"]
    for name in ("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"):
        options += ["--platform", name]
    return [*options, "--find-links", str(folder)]


def run(*words: str) -> None:
    """Run a command.

    Raises:
        ValueError: It failed; its own message stands above.

    """
    if subprocess.run(words).returncode:
        raise ValueError(f"{' '.join(words[:4])} failed (see above); the same command tries again")


def pip(*words: str) -> None:
    """Run a command of this environment's pip."""
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", *words)


def resolve(
    requirements: Sequence[str], pins: Sequence[str], python: str, folders: Sequence[Path]
) -> list[str]:
    """Return NAME==VERSION of all that the requirements need on Linux, of wheels only.

    Args:
        requirements: What the machine needs.
        pins: Versions to keep to.
        python: The machine's Python.
        folders: Folders of wheels that may be used.

    """
    with tempfile.TemporaryDirectory() as scratch:
        pip("install", "--quiet", "--target", scratch, "uv")
        wanted, constraint, resolved = (Path(scratch, name) for name in ("wanted", "pins", "resolved"))
        wanted.write_text("\n".join(requirements) + "\n")
        constraint.write_text("\n".join(pins) + "\n")
        options = ["--python-version", python, "--python-platform", f"x86_64-manylinux_2_{NEWEST_GLIBC}"]
        options += ["--only-binary", ":all:", "--constraint", str(constraint), "--output-file", str(resolved)]
        for folder in folders:
            options += ["--find-links", str(folder)]
        uv = Path(scratch, "bin", "uv")
        run(str(uv), "pip", "compile", str(wanted), "--quiet", "--no-header", "--no-annotate", *options)
        return resolved.read_text().split()


def main() -> None:
    """Resolve the requirements, and download what the machine lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder for the wheels")
    parser.add_argument("requirements", nargs="+", help="what the machine needs")
    parser.add_argument("--constraint", type=Path, help="file of pins; that of torch is not used")
    parser.add_argument("--machine", type=Path, help="output of pip freeze on the machine")
    parser.add_argument("--python", default="3.12", help="its Python")
    parser.add_argument("--torch", default="2.11.0", help="its PyTorch")
    parser.add_argument(
        "--have", type=Path, nargs="*", default=[], help="folders of wheels that it gets besides"
    )
    parser.add_argument("--leave_out", nargs="*", default=[], help="packages that it can do without")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    machine = parse_freeze(args.machine.read_text()) if args.machine else {}
    for wheel in (wheel for folder in args.have for wheel in folder.glob("*.whl")):
        name, version, *_ = wheel.name.split("-")
        machine[canonicalize_name(name)] = version
    pins = args.constraint.read_text().splitlines() if args.constraint else []
    pins = [pin for pin in pins if canonicalize_name(pin.partition("==")[0]) != "torch"]
    options = pip_options(args.python, args.folder)
    for folder in args.have:
        options += ["--find-links", str(folder)]
    resolved = resolve(
        args.requirements, [*pins, f"torch=={args.torch}"], args.python, [args.folder, *args.have]
    )
    with tempfile.TemporaryDirectory() as scratch:  # what each of them requires
        report = Path(scratch, "report.json")
        look = ["install", "--dry-run", "--ignore-installed", "--target", scratch, "--report", str(report)]
        pip(*look, "--no-deps", *options, *resolved)
        packages = from_report(json.loads(report.read_text()))
    for name in closure(packages, "torch", args.python):  # PyTorch fits the machine's driver
        machine.setdefault(name, next(package.version for package in packages if package.name == name))
    lacking = missing(packages, args.requirements, machine, args.python)
    lacking = [package for package in lacking if package.name not in {*args.leave_out, "torch"}]
    if lacking:
        pins = [f"{package.name}=={package.version}" for package in lacking]
        pip("download", "--no-deps", "--dest", str(args.folder), *options, *pins)
    print(f"{args.folder}: {len(lacking)} of {len(packages)} packages are not on the machine", flush=True)


if __name__ == "__main__":
    run_command(main)
