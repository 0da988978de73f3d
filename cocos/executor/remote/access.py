"""Who may reach a server: addresses, tokens and certificates, checked before anything is sent or served."""

import ipaddress
import os
import ssl
import stat
from pathlib import Path
from urllib.parse import urlsplit

LEAST_TOKEN_CHARS = 16


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: str | None) -> str:
    """Return the token of a file that only its owner can read.

    Raises:
        ValueError: There is no such file, others can read it, or the token is too short.

    """
    remedy = f"(umask 077; openssl rand -hex 32 > {path or 'FILE'}) makes one"
    if not path:
        raise ValueError(f"a server of programs needs a token file; {remedy}")
    try:
        mode, token = os.stat(path).st_mode, Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the token file {path} cannot be read ({error}); {remedy}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"the token file {path} is open to other users; chmod 600 {path}")
    if len(token) < LEAST_TOKEN_CHARS or not token.isprintable():
        raise ValueError(f"the token in {path} has fewer than {LEAST_TOKEN_CHARS} characters; {remedy}")
    return token


def require_safe_host(host: str, certificate: str | None) -> None:
    """Raise ValueError if a server would be reachable from other machines without TLS."""
    if not is_loopback(host) and not certificate:
        raise ValueError(
            f"--host {host} can be reached from other machines; give --certificate and --key for TLS, or "
            "--host 127.0.0.1 and an SSH tunnel"
        )


def split_url(url: str) -> tuple[str, int, bool]:
    """Return host, port and whether TLS is used.

    Raises:
        ValueError: It is not the address of a server, or it would send the token over a network in clear.

    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ValueError(
            f"{url!r} is not the address of a server; give https://HOST:PORT or http://127.0.0.1:PORT"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"{url} would send the token over the network in clear; give https://{host}:{port}")
    return host, port, parts.scheme == "https"


def client_tls(certificate: str | None) -> ssl.SSLContext:
    """Return the settings of a client that checks its servers.

    Args:
        certificate: File with the certificates to trust; None: those of the system.

    """
    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        raise ValueError(f"the certificate {certificate} cannot be read: {error}") from None
