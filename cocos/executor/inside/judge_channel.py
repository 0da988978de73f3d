"""Messages between the candidate's process and the judge's process, through the socket at PEER_FD.

A message is JSON. It is sent as its length (four bytes, big-endian) and its bytes.
"""

import json
import os
from typing import Any

from wire_format import PEER_FD

MAX_BYTES = 32 << 20  # of a message

_to_json = json.JSONEncoder(check_circular=False).encode


class MessageTooLarge(Exception):
    """Error for values that are too large for one message."""


def send(message: list) -> None:
    """Write one message.

    Raises:
        MessageTooLarge: Nothing was written.
        OSError: The other process has closed the socket.

    """
    data = _to_json(message).encode()
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
    size = int.from_bytes(_read(4), "big")
    if size > MAX_BYTES:
        raise ValueError("a message that is too large")
    return json.loads(_read(size))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PEER_FD, min(size, 1 << 16))
        if not part:
            raise EOFError("the other process has closed the socket")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
