"""Entry point of the program inside a sandbox. It runs in a fresh interpreter and is never imported.

    python -s -P -S -B inside/ '{"scratch": ["/an/empty/folder"]}'

The argument holds fields of `confinement.Confinement` as JSON.
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
    """Confine this process, freeze the objects that children inherit, and serve jobs."""
    sys.path.pop(0)  # this folder; without it, a candidate can import the standard library only
    for add_builtins in (site.setquit, site.setcopyright, site.sethelper):  # option -S omits these builtins
        add_builtins()
    os.closerange(3, 1 << 16)
    server = zygote.Zygote(Confinement(**json.loads(sys.argv[1])))
    gc.collect()
    # A collection writes to the header of every object it visits. In a forked child this copies shared pages.
    # It never visits frozen objects. Children enable collection again for the objects of the candidate.
    gc.freeze()
    gc.disable()
    server.serve(candidate.run_candidate, judge.run_judge)


if __name__ == "__main__":
    main()
