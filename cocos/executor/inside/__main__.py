"""The program inside a sandbox: starts the zygote. Spawned in a fresh interpreter, never imported.

python -I inside/ '{"scratch": ["/an/empty/folder"]}'        # see confine.Confinement for the settings
"""

import gc
import json
import os
import site
import sys
import traceback

import candidate
import judge
import zygote
from confine import Confinement


def main() -> None:
    """Put the descriptors in their places, make everything that children share, and serve."""
    sys.path.pop(0)
    for provide in (site.setquit, site.setcopyright, site.sethelper):  # the builtins that -S leaves out
        provide()
    os.closerange(3, 1 << 16)
    errors = os.dup(2)
    try:
        server = zygote.Zygote(Confinement(**json.loads(sys.argv[1])))
        gc.collect()
        gc.freeze()  # what is imported stays where it is: children that collect garbage do not copy it
        gc.disable()
        server.serve(candidate.run_candidate, judge.run_judge)
    except Exception:
        os.write(errors, traceback.format_exc().encode())
        raise


if __name__ == "__main__":
    main()
