"""Messages between the candidate's process and the judge's process, through the socket at PEER_FD.

A message is JSON. It is sent as its length (four bytes, big-endian) and its bytes.
"""

import json
import os
from typing import Any

from wire_format import PEER_FD

MAX_BYTES = 8 << 20  # of a message

_to_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_from_json = json.JSONDecoder().decode
_received = b""  # but not yet taken


class MessageTooLarge(Exception):
    """Error for values that are too large for one message."""


def send(message: list) -> None:
    """Write one message.

    Raises:
        MessageTooLarge: Nothing was written.
        OSError: The other process has closed the socket.

    """
    data = _to_json(message).encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        raise MessageTooLarge(f"more than {MAX_BYTES >> 20} MiB of values")
    view = memoryview(len(data).to_bytes(4, "big") + data)
    while view:
        view = view[os.write(PEER_FD, view) :]


def receive() -> Any:
    """Read one message.

    Raises:
        EOFError, OSError: The other process has closed the socket.
        ValueError, RecursionError: The message is too large or not JSON.

    """
    size = int.from_bytes(_take(4), "big")
    if size > MAX_BYTES:
        raise ValueError("a message that is too large")
    return _from_json(_take(size).decode("utf-8", "surrogatepass"))


def _take(size: int) -> bytes:
    """Return the next `size` bytes. Reads what has come, usually a whole message."""
    global _received
    if len(_received) < size:
        parts, missing = [_received], size - len(_received)
        while missing > 0:
            parts.append(os.read(PEER_FD, 1 << 16))
            if not parts[-1]:
                raise EOFError("the other process has closed the socket")
            missing -= len(parts[-1])
        _received = b"".join(parts)
    data, _received = _received[:size], _received[size:]
    return data
