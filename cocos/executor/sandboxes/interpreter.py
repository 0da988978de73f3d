"""The interpreter that runs inside the sandboxes of this machine."""

import os
import sys
from pathlib import Path

INSIDE = Path(__file__).parent.parent / "inside"
# The base interpreter, not a virtual environment's.
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
# What -I means, but for the environment, which holds the following and no more; and no site-packages:
# programs see the standard library of this interpreter and nothing else.
FLAGS = ("-s", "-P", "-S", "-B")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}  # a verdict must not depend on the order of a set
