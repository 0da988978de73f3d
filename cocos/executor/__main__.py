"""Command line of the executor.

    python -m cocos.executor doctor                            try what each isolation level promises here
    python -m cocos.executor doctor --executor_url URL ...     the same on the machines of these servers
    python -m cocos.executor serve --port P --token_file F     serve this machine's workers to others

`doctor` exits with status 0 if `--sandbox auto` finds a level that works and keeps its promises, otherwise 1.
docs/executor-remote.md describes servers.
"""

import argparse
import os
import signal
import sys
from functools import partial

from cocos.executor.doctor import doctor
from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.remote.access import client_tls, read_token, require_safe_host
from cocos.executor.remote.client import RemoteExecutor
from cocos.executor.remote.connection import Connection, ServerBusy, ServerLost
from cocos.executor.remote.server import serve
from cocos.executor.sandboxes.levels import NAMES
from cocos.executor.self_test import RIGHT
from cocos.executor.verdicts import ExecutorError

DOCTOR_S = 600.0  # longest time that the doctor of a server takes
SERVE = """Serve this machine's workers to runs on other machines, until Ctrl-C or SIGTERM.

Other machines need TLS: give --host 0.0.0.0 with --certificate and --key, or let
clients come through an SSH tunnel to 127.0.0.1. Every client needs the token. Whoever
has it can use the processors of this machine, inside the sandbox, and nothing else.

examples:
  (umask 077; openssl rand -hex 32 > token)
  python -m cocos.executor serve --port 8765 --token_file token
  python -m cocos.executor serve --port 8765 --token_file token --host 0.0.0.0 \\
      --certificate server.pem --key server.key --program_packages numpy
  python train.py --config ... --executor_url https://node1:8765 https://node2:8765 \\
      --executor_token_file token --executor_certificate server.pem
"""


def main(argv: list[str] | None = None) -> int:
    """Parse the arguments and run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cocos.executor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="{doctor,serve}")
    _add_doctor(commands.add_parser("doctor", description="Try what each isolation level promises."))
    _add_serve(
        commands.add_parser("serve", description=SERVE, formatter_class=argparse.RawDescriptionHelpFormatter)
    )
    args = parser.parse_args(argv)
    try:
        if args.command == "serve":
            return _serve(args)
        return _remote_doctor(args) if args.executor_url else doctor()
    except BrokenPipeError:  # `doctor | head`; what is left would be flushed, and fail, at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (ValueError, OSError, ImportError, ExecutorError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--executor_url", nargs="+", metavar="URL", help="servers to ask instead of this machine"
    )
    parser.add_argument("--executor_token_file", metavar="FILE", help="file with their token")
    parser.add_argument(
        "--executor_certificate", metavar="FILE", help="certificates to trust (default: the system's)"
    )


def _add_serve(parser: argparse.ArgumentParser) -> None:
    network = parser.add_argument_group("network")
    network.add_argument("--port", type=int, required=True, help="TCP port")
    network.add_argument(
        "--token_file",
        required=True,
        metavar="FILE",
        help="file with the clients' token, readable by its owner only",
    )
    network.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; all but loopback need TLS (default: %(default)s)",
    )
    network.add_argument("--certificate", metavar="FILE", help="TLS certificate with its chain")
    network.add_argument("--key", metavar="FILE", help="key of the certificate")
    programs = parser.add_argument_group("programs, as in train.py")
    programs.add_argument("--sandbox", default="auto", choices=("auto", *NAMES), help="isolation level")
    programs.add_argument("--min_isolation", choices=NAMES, help="weakest level to accept")
    programs.add_argument(
        "--runtime", metavar="NAME", help="runtime of the containers at level docker, such as runsc"
    )
    programs.add_argument(
        "--executor_workers",
        type=int,
        metavar="N",
        help="programs that run at once (default: one per processor)",
    )
    programs.add_argument(
        "--program_memory_mb",
        type=int,
        default=Limits.memory_mb,
        metavar="MB",
        help="largest memory limit of a client at level docker (default: %(default)s)",
    )
    programs.add_argument(
        "--program_packages",
        nargs="+",
        default=[],
        metavar="NAME",
        help="installed packages that programs may import",
    )
    programs.add_argument("--program_python", metavar="PATH", help="interpreter that has the packages")


def _serve(args: argparse.Namespace) -> int:
    token = read_token(args.token_file)
    require_safe_host(args.host, args.certificate)
    open_executor = partial(
        Executor,
        args.executor_workers,
        Limits(memory_mb=args.program_memory_mb),
        args.sandbox,
        args.min_isolation,
        packages=tuple(args.program_packages),
        python=args.program_python,
        runtime=args.runtime,
    )
    packages = tuple(args.program_packages)
    return serve(open_executor, packages, token, args.port, args.host, args.certificate, args.key)


def _remote_doctor(args: argparse.Namespace) -> int:
    """Print what each server's own doctor says, and whether a program runs on it; return the exit status."""
    token, statuses = read_token(args.executor_token_file), []
    for url in args.executor_url:
        connection = Connection(url, token, client_tls(args.executor_certificate), DOCTOR_S)
        try:
            info = connection.info()
            print(f"{url}: {info.num_workers} workers at isolation level {info.isolation}", *info.packages)
            with RemoteExecutor(
                [url],
                token,
                args.executor_certificate,
                sandbox=info.isolation,
                packages=info.requested_packages,
            ) as executor:
                [result] = executor.run([RIGHT])
            print("a right program", "passes" if result.all_passed else f"does not pass: {result}")
            status, lines = connection.doctor()
        except (ServerLost, ServerBusy) as error:
            print(f"{url}: no server of programs answers: {error}")
            statuses.append(1)
            continue
        finally:
            connection.close()
        print("\n".join(lines), "\n", sep="")
        statuses.append(0 if result.all_passed else 1)
        statuses.append(status)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
