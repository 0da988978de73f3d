"""Messages between the candidate's process and the judge's process, through the socket at PEER_FD.

A message consists of its length (four bytes, big-endian) and its bytes.
"""

import os

from wire_format import PEER_FD


def send(text: str) -> None:
    """Write one message.

    Raises:
        OSError: The other process has closed the socket.

    """
    data = text.encode()
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(PEER_FD, data) :]


def receive() -> bytes:
    """Read one message.

    Raises:
        EOFError, OSError: The other process has closed the socket.

    """
    return _read(int.from_bytes(_read(4), "big"))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PEER_FD, min(size, 1 << 16))
        if not part:
            raise EOFError("the other process has closed the socket")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
