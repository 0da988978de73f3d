"""Server of Python commands: a process that has imported the libraries once and forks for every command.

    python -m tests.support.fork_server SOCKET PID

A command of this project imports torch, transformers and TRL for several seconds. A forked one has them
already; apart from that it starts like `python SCRIPT ...`, `python -c SOURCE ...` or `python -m MODULE ...`: its
own arguments, folder, output, environment, exit status and exit handlers. The project's own modules are not
imported in advance. The server ends, and removes the folder of its socket, when the process PID has ended.
"""

import array
import atexit
import functools
import gc
import importlib.metadata
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress

LIBRARIES = (
    "accelerate", "datasets", "deepspeed", "matplotlib.pyplot", "pandas", "peft", "torch", "transformers.trainer", "trl.trainer.rloo_trainer",
    "trl.trainer.sft_trainer", "yaml",
)  # fmt: skip


def serve(path: str, pid: str) -> None:
    """Accept connections until the process `pid` ends; every connection is one command."""
    gc.disable()
    importlib.metadata.packages_distributions = functools.cache(importlib.metadata.packages_distributions)
    for name in LIBRARIES:
        __import__(name)
    gc.freeze()  # no child walks through the libraries' objects, and so copies their pages
    gc.enable()
    sys.stdout.flush()  # what the libraries printed is not a command's output
    sys.stderr.flush()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen()
        os.rename(f"{path}.new", path)  # clients wait for the path, and would be refused before `listen`
        listener.settimeout(1)
        while os.path.exists(f"/proc/{pid}"):
            with suppress(TimeoutError), listener.accept()[0] as connection:
                if os.fork() == 0:
                    listener.close()
                    with suppress(BrokenPipeError, ConnectionResetError):  # the client has given up
                        handle(connection)
                    os._exit(0)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    shutil.rmtree(os.path.dirname(path))


def handle(connection: socket.socket) -> None:
    """Fork a child that runs one command; send its process id, and its exit status when it ends."""
    connection.settimeout(None)
    message, ancillary, *_ = connection.recvmsg(1 << 20, socket.CMSG_LEN(2 * 4))
    descriptors = array.array("i", ancillary[0][2])
    words, folder, environment = json.loads(message)
    pid = os.fork()
    if pid == 0:
        for target, descriptor in enumerate(descriptors, start=1):
            os.dup2(descriptor, target)
        os.setsid()  # a signal to its process group is for this command alone
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.modules.update(
            dict.fromkeys(environment.get("HIDDEN_PACKAGES", "").split())
        )  # as if not installed
        sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        exit_like_python(words)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(f"{pid}\n".encode())
    connection.sendall(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())


def exit_like_python(words: list[str]) -> None:
    """Run a script, source after `-c`, or a module after `-m` as the main program, and end as Python would."""
    status = 0
    try:
        if words[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *words[2:]], ""
            exec(words[1], {"__name__": "__main__"})
        elif words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        if isinstance(stopped.code, str):
            print(stopped.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve(*sys.argv[1:])
