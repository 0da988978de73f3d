"""Entry point of the program inside a sandbox. It runs in a fresh interpreter and is never imported.

    PYTHONPATH=cocos/executor python -s -P -S -B -m inside '{"scratch": "/an/empty/folder"}'

The argument holds fields of `confinement.Confinement` as JSON. A second argument, if there are third-party
packages, holds the arguments of `packages.import_packages`.
"""

import ctypes
import gc
import json
import os
import site
import sys

from . import fixed_world  # first: it replaces what other modules bind  # isort: skip
from . import driver, exchange, packages, program, zygote
from .confinement import Confinement


def main() -> None:
    """Confine this process, freeze the objects that children inherit, and serve jobs."""
    # The folder of this package. Without it, a candidate can import the standard library only.
    sys.path.remove(os.environ.pop("PYTHONPATH"))
    for add_builtins in (site.setquit, site.setcopyright, site.sethelper):  # option -S omits these builtins
        add_builtins()
    os.closerange(3, 1 << 16)
    _, confinement_json, *packages_json = sys.argv
    sys.argv[:] = ["program.py"]  # for a program that parses its arguments
    confinement = Confinement(**json.loads(confinement_json))
    server = zygote.Zygote(confinement)
    packages_folder = ""
    if packages_json:
        arguments = json.loads(packages_json[0])
        packages_folder = arguments["folder"]
        # After the zygote has moved the pipes: a module that prints must not write to one of them.
        try:
            confinement.packages_bytes = packages.import_packages(**arguments)
            exchange.SHARED_MODULES.update(arguments["modules"])
        except ImportError as error:
            os.write(server.errors, f"{error}\n".encode())
            sys.exit(1)
    program.warm_up()
    fixed_world.restart()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # every fork would copy the page tables of what the imports left free
    # A collection writes to the header of every object it visits. In a forked child this copies shared pages.
    # It never visits frozen objects. Children enable collection again for the objects of the candidate.
    gc.freeze()
    gc.disable()
    server.serve(program.run_program, driver.run_driver)
    if packages_folder:
        packages.remove_links(packages_folder)


if __name__ == "__main__":
    main()
