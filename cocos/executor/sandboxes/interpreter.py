"""The interpreter that runs inside a sandbox: its flags, its environment and its third-party packages."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSIDE = Path(__file__).parent.parent / "inside"
# The base interpreter: the folder of a virtual environment is not visible inside a sandbox.
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
# -I would ignore PYTHONHASHSEED below, so its other parts are listed: no user packages (-s), no folder of the
# script on the path (-P). Also no site-packages (-S) and no bytecode files (-B).
FLAGS = ("-s", "-P", "-S", "-B")
# Without a fixed hash seed the order of a set, and with it a verdict, could differ from run to run. Clock and
# random numbers are fixed inside (fixed_world.py).
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "TZ": "UTC"}
# A thread does not survive the fork of the zygote, and a program gets one processor.
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
LEAST_VERSION = (3, 11)
PACKAGES_FOLDER = "/packages"  # inside a sandbox with its own file system
INSTALLED_PACKAGES = Path(__file__).with_name("installed_packages.py")
QUERY_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Interpreter:
    """An interpreter, and the third-party packages that programs can import.

    Attributes:
        executable: Path of the interpreter. Level docker runs the one of its image instead.
        prefix: Folder of its standard library.
        version: Major and minor version.
        packages: Name and version of each package: the requested ones and all that they require.
        modules: Modules to import once, before any program runs.
        entries: Name and path of each file and folder that makes up the packages.

    """

    executable: str = INTERPRETER
    prefix: str = sys.base_prefix
    version: tuple[int, int] = sys.version_info[:2]
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment inside a sandbox."""
        return ENVIRONMENT | (ONE_THREAD if self.packages else {})

    def arguments(self, confinement: dict, folder: str) -> list[str]:
        """Return the arguments of the program inside a sandbox.

        Args:
            confinement: Fields of `inside.confinement.Confinement`.
            folder: Folder of the packages, as the sandbox sees it.

        """
        if not self.packages:
            return [json.dumps(confinement)]
        packages = {"folder": folder, "modules": self.modules, "version": self.version}
        return [json.dumps(confinement), json.dumps(packages)]


def find_interpreter(packages: tuple[str, ...] = (), python: str | None = None) -> Interpreter:
    """Return the interpreter for the sandboxes.

    Args:
        packages: Names of distributions that programs may import.
        python: Path of an interpreter that has them; None for the one in use.

    Raises:
        ValueError: `python` is not an interpreter of a usable version, or a package is not installed for it.

    """
    if isinstance(packages, str):
        raise ValueError(f"packages is the string {packages!r}; give a tuple of names")
    if not packages and python is None:
        return Interpreter()
    # Not the realpath: a virtual environment is known by the path of its interpreter.
    command = [python or sys.executable, str(INSTALLED_PACKAGES), *packages]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=QUERY_TIMEOUT_S, check=False, cwd="/")
        found = json.loads(answer.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(
            f"{command[0]} cannot be run: {error}; give the path of a Python interpreter"
        ) from None
    except ValueError:
        reason = (answer.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise ValueError(f"{command[0]} cannot list its packages: {reason}") from None
    if "error" in found:
        raise ValueError(found["error"])
    version = tuple(found["version"])
    if version < LEAST_VERSION:
        raise ValueError(f"{command[0]} is Python {version[0]}.{version[1]}; programs need 3.11 or later")
    return Interpreter(
        found["executable"],
        found["prefix"],
        (version[0], version[1]),
        tuple(found["packages"]),
        tuple(found["modules"]),
        tuple((name, path) for name, path in found["entries"]),
    )
