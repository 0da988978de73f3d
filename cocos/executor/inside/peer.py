"""Messages between a candidate's process and its judge's process.

A message is its length (four bytes, big-endian) and then its bytes, through the socket at PEER_FD.
"""

import os

from wire import PEER_FD


def send(text: str) -> None:
    """Write one message.

    Raises:
        OSError: The process at the other end has gone.

    """
    data = text.encode()
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(PEER_FD, data) :]


def receive() -> bytes:
    """Read one message.

    Raises:
        EOFError: The process at the other end has gone.

    """
    return _read(int.from_bytes(_read(4), "big"))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PEER_FD, min(size, 1 << 16))
        if not part:
            raise EOFError("the process at the other end has gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
