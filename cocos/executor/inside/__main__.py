"""Entry point of the program inside a sandbox. Spawned in a fresh interpreter, never imported.

python -I inside/ '{"scratch": ["/an/empty/folder"]}'    # the settings: fields of confinement.Confinement
"""

import gc
import json
import os
import site
import sys

import candidate
import judge
import zygote
from confinement import Confinement


def main() -> None:
    """Confine this process, prepare what children share by fork, and serve jobs."""
    sys.path.pop(0)  # this folder: a candidate's imports find the standard library only
    for add_builtins in (site.setquit, site.setcopyright, site.sethelper):  # left out by the option -S
        add_builtins()
    os.closerange(3, 1 << 16)
    server = zygote.Zygote(Confinement(**json.loads(sys.argv[1])))
    gc.collect()
    # A collection writes to the header of every object it visits, and so copies the pages of a forked child.
    # Frozen objects are never visited. Children enable collection again for the objects of the candidate.
    gc.freeze()
    gc.disable()
    server.serve(candidate.run_candidate, judge.run_judge)


if __name__ == "__main__":
    main()
