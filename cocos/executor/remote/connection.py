"""Connection to a server of programs: one request at a time over a kept HTTP connection.

Knows HTTP and how it fails. Does not know jobs or how a message is encoded. Needs the standard library only.
"""

import http.client
import json
import ssl
from collections.abc import Iterator

from cocos.executor.remote.access import split_url
from cocos.executor.remote.messages import SILENCE_S, ServerInfo
from cocos.executor.verdicts import ExecutorError


class ServerLost(Exception):
    """The server cannot be reached, or it does not speak like one."""


class ServerBusy(Exception):
    """The server has too many programs."""


class Connection:
    """A kept connection to a server. Not thread-safe.

    Args:
        url: Address of the server.
        token: Its secret.
        tls: Settings of TLS, for an address that begins with https.
        timeout_s: Longest time between two signs of life.

    Raises:
        ServerLost: The server cannot be reached.

    """

    def __init__(self, url: str, token: str, tls: ssl.SSLContext, timeout_s: float = SILENCE_S) -> None:
        self.url, self._token = url, token
        host, port, uses_tls = split_url(url)
        if uses_tls:
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout_s, context=tls
            )
        else:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout_s)

    def info(self) -> ServerInfo:
        """Return what the server is."""
        try:
            return ServerInfo.decode(self._get("/info"))
        except (ValueError, TypeError, KeyError) as error:
            raise ServerLost(f"it answers like another kind of server ({error!r})") from None

    def doctor(self) -> tuple[int, list[str]]:
        """Return exit status and lines of `python -m cocos.executor doctor` on the server's machine."""
        report = json.loads(self._get("/doctor"))
        return report["status"], report["lines"]

    def run(self, body: bytes) -> Iterator[bytes]:
        """Send programs; yield a line per result, and b"" for every other sign of life.

        Raises:
            ServerBusy, ServerLost: The programs were not accepted, or the connection ended.

        """
        response = self._request("POST", "/run", body)
        rest = b""
        try:
            while part := response.read1(1 << 18):
                *lines, rest = (rest + part).split(b"\n")
                yield from lines
        except (OSError, http.client.HTTPException) as error:
            raise ServerLost(_reason(error)) from None

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._http.close()

    def _get(self, path: str) -> bytes:
        response = self._request("GET", path)
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerLost(_reason(error)) from None

    def _request(self, method: str, path: str, body: bytes | None = None) -> http.client.HTTPResponse:
        try:
            self._http.request(method, path, body, {"Authorization": f"Bearer {self._token}"})
            response = self._http.getresponse()
            if response.status == 200:
                return response
            text = response.read().decode(errors="replace")[:300]
        except ssl.SSLCertVerificationError as error:
            raise ExecutorError(
                f"{self.url} has a certificate that is not trusted ({error.verify_message}); give the one to "
                "trust as --executor_certificate"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerLost(_reason(error)) from None
        if response.status == 503:
            raise ServerBusy(text)
        if response.status in (400, 401, 413):
            raise ExecutorError(f"{self.url} refuses the request: {text}")
        raise ServerLost(f"status {response.status}: {text}")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
