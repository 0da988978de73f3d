"""The interpreter that runs inside a sandbox, and its flags and environment."""

import os
import sys
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
