"""Messages between client and server: programs and results as lines of JSON, and what a server is.

Knows the fields of `verdicts.py` by their dataclasses only. Does not know HTTP.
"""

import json
from dataclasses import asdict, dataclass

from cocos.executor.limits import Limits
from cocos.executor.verdicts import ExecutionResult, Program, Status, Verdict

MAX_BODY_BYTES = 64 << 20  # of a request; a larger program is an infrastructure failure
HEARTBEAT_S = 1.0  # an empty line is sent at least this often while programs run
SILENCE_S = 20.0  # a server that has sent nothing for so long is lost


@dataclass(frozen=True)
class ServerInfo:
    """Description of a server. Verdicts of servers that differ in the first five fields could differ.

    Attributes:
        version: Version of this package.
        python: Version of the interpreter that runs the programs.
        isolation: Isolation level.
        packages: Name and version of each third-party package that programs can import.
        requested_packages: Packages for which the server was asked; the others are what these require.
        num_workers: Programs that run at the same time.

    """

    version: str
    python: str
    isolation: str
    packages: tuple[str, ...]
    requested_packages: tuple[str, ...]
    num_workers: int

    def differences(self, other: "ServerInfo") -> list[str]:
        """Return what could change verdicts between two servers, such as "isolation: seccomp, docker"."""
        mine, its = asdict(self), asdict(other)
        return [f"{name}: {mine[name]}, {its[name]}" for name in list(mine)[:5] if mine[name] != its[name]]

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> "ServerInfo":
        """Read a server's description; raise ValueError, TypeError or KeyError if it is none."""
        fields = json.loads(data)
        packages, requested = tuple(fields["packages"]), tuple(fields["requested_packages"])
        return cls(**(fields | {"packages": packages, "requested_packages": requested}))


def encode_program(program: Program, limits: Limits, max_wait_s: float | None) -> bytes:
    """Return one line that describes a program with its limits and the seconds that it may wait."""
    fields = {**vars(program), "limits": vars(limits)}
    return json.dumps([fields, max_wait_s]).encode() + b"\n"


def decode_programs(body: bytes) -> list[tuple[Program, float | None]]:
    """Return the programs of a request, each with the seconds that it may wait.

    Raises:
        ValueError, TypeError, KeyError: A line does not describe a program.

    """
    return [_program(*json.loads(line)) for line in body.splitlines()]


def _program(fields: dict, max_wait_s: float | None) -> tuple[Program, float | None]:
    tuples = {
        "test_list": tuple(fields["test_list"]),
        "files": tuple(map(tuple, fields["files"])),
        "limits": Limits(**fields["limits"]),
    }
    return Program(**(fields | tuples)), None if max_wait_s is None else float(max_wait_s)


def encode_result(index: int, result: ExecutionResult) -> bytes:
    """Return one line with the result of the request's program of this index."""
    fields = {**vars(result), "verdicts": [vars(verdict) for verdict in result.verdicts]}
    return json.dumps([index, fields]).encode() + b"\n"


def decode_result(line: bytes) -> tuple[int, ExecutionResult]:
    """Return the index of a program in its request, and its result.

    Raises:
        ValueError, TypeError, KeyError: The line does not describe a result.

    """
    index, fields = json.loads(line)
    verdicts = tuple(Verdict(**{**v, "status": Status(v["status"])}) for v in fields["verdicts"])
    packages = tuple(fields["packages"])
    return index, ExecutionResult(**{**fields, "verdicts": verdicts, "packages": packages})
