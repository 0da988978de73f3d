"""The interpreter that runs inside the sandboxes of this machine."""

import os
import sys
from pathlib import Path

INSIDE = Path(__file__).parent / "inside"
# The base interpreter, not a virtual environment's: programs see the standard library and nothing else.
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
FLAGS = ("-s", "-P", "-B")  # what -I means, but for the environment, which holds the following and no more
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}  # a verdict must not depend on the order of a set
