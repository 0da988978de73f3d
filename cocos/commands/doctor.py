"""Show what is installed, and try what each isolation level of the executor promises on this machine.

    cocos doctor

Exits with status 0 if `--sandbox auto` finds a level that works and keeps its promises, otherwise 1.
"""

import sys


def main() -> int:
    """Print versions, the parts of the project that can be used, and the executor's own check."""
    from cocos import __version__
    from cocos.executor.__main__ import main as executor_main
    from cocos.files.extras import EXTRAS, install_command, missing_modules

    words = sys.argv[1:]
    if not words:
        print(f"cocos {__version__}, Python {sys.version.split()[0]} ({sys.executable})")
        for extra, (purpose, _) in EXTRAS.items():
            missing = missing_modules(extra)
            state = f"missing {', '.join(missing)}: {install_command(extra)}" if missing else "installed"
            print(f"  {extra:<8}{purpose}: {state}")
        print(flush=True)
    return executor_main(["doctor", *words])
