"""Messages between a candidate's process and its judge's: a length, then the bytes, through a socket."""

import os

PEER_FD = 4  # as in zygote.py


def send(text: str) -> None:
    """Write one message to the other end."""
    data = text.encode()
    data = len(data).to_bytes(4, "big") + data
    while data:
        data = data[os.write(PEER_FD, data) :]


def receive() -> bytes:
    """Read one message; EOFError where the other end has gone."""
    return _read(int.from_bytes(_read(4), "big"))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PEER_FD, min(size, 1 << 16))
        if not part:
            raise EOFError("the other end has gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
