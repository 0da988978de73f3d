"""The interpreter that runs inside a sandbox: its flags, its environment and its third-party packages."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

INSIDE = Path(__file__).parent.parent / "inside"
INSIDE_FOLDER = "/cocos"  # of that package, and of nothing else, inside a sandbox with its own file system
# The base interpreter: the folder of a virtual environment is not visible inside a sandbox. Level docker runs
# the interpreter of its image.
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
# -I would ignore PYTHONHASHSEED below, so its other parts are listed: no user packages (-s), no folder of the
# script on the path (-P). Also no site-packages (-S) and no bytecode files (-B).
FLAGS = ("-s", "-P", "-S", "-B")
START = (*FLAGS, "-m", INSIDE.name)
# Without a fixed hash seed the order of a set, and with it a verdict, could differ from run to run. Clock and
# random numbers are fixed inside (fixed_world.py).
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "TZ": "UTC"}
# A thread does not survive the fork of the zygote, and a program gets one processor.
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
PACKAGES_FOLDER = "/packages"  # inside a sandbox with its own file system


@dataclass(frozen=True)
class Interpreter:
    """The interpreter inside a sandbox, and the third-party packages that programs can import.

    Attributes:
        packages: Name and version of each package: the requested ones and all that they require.
        modules: Modules to import once, before any program runs.
        entries: Name and path of each file and folder that makes up the packages.

    """

    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()

    def environment(self, folder: str = INSIDE_FOLDER) -> dict[str, str]:
        """Return the whole environment of a sandbox that sees the package `inside` in this folder."""
        return {"PYTHONPATH": folder} | ENVIRONMENT | (ONE_THREAD if self.packages else {})

    def arguments(self, confinement: dict, folder: str) -> list[str]:
        """Return the arguments of the program inside a sandbox.

        Args:
            confinement: Fields of `inside.confinement.Confinement`.
            folder: Folder of the packages, as the sandbox sees it.

        """
        if not self.packages:
            return [json.dumps(confinement)]
        packages = {"folder": folder, "modules": self.modules, "version": sys.version_info[:2]}
        return [json.dumps(confinement), json.dumps(packages)]
