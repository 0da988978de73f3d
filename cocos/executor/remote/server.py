"""Server of an executor: programs come in over HTTP, and each result goes back as soon as it is there.

    python -m cocos.executor serve --port 8765 --token_file FILE

GET /info describes the server, GET /doctor tries its isolation, and POST /run executes the programs of its
body. The response to the last has one line per result, in the order in which programs finish, and empty lines
while nothing finishes. If the client goes away, programs that have not started are dropped. uvicorn does
HTTP.
"""

import asyncio
import hmac
import json
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

import cocos
from cocos.executor.doctor import doctor
from cocos.executor.pool import Executor
from cocos.executor.remote.access import require_safe_host
from cocos.executor.remote.messages import (
    HEARTBEAT_S,
    MAX_BODY_BYTES,
    ServerInfo,
    decode_programs,
    encode_result,
)
from cocos.executor.verdicts import ExecutionResult, ExecutorError

Receive = Callable[[], Awaitable[dict]]
Send = Callable[[dict], Awaitable[None]]
QUEUED_PER_WORKER = 100  # programs of all clients; a request above this is told to come back
MAX_CONNECTIONS = 1024
KEEP_ALIVE_S = 3600  # clients keep their connections
GATHERING_S = 0.02  # results that are ready within this time are sent together, which costs less
SHUTDOWN_S = 1  # clients run elsewhere what has not finished


class Application:
    """The ASGI application. Every request must carry the token.

    Args:
        executor: Runs the programs.
        requested_packages: Packages for which the executor was asked.
        token: Secret of the clients.
        stop: Called once the executor has stopped because of too many failures.

    """

    def __init__(
        self, executor: Executor, requested_packages: tuple[str, ...], token: str, stop: Callable[[], None]
    ) -> None:
        self._executor, self._stop = executor, stop
        self._info = ServerInfo(
            version=cocos.__version__,
            python=executor.python_version,
            isolation=executor.isolation,
            packages=executor.packages,
            requested_packages=tuple(sorted(requested_packages)),
            num_workers=executor.num_workers,
        )
        self._authorization = f"Bearer {token}".encode()
        self._num_accepted = 0  # programs that have not finished
        self._doctor = asyncio.Lock()

    async def __call__(self, scope: dict, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        # compare_digest takes the same time wherever the first difference is.
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._authorization):
            return await _answer(send, 401, b"the token is missing or wrong")
        match scope["method"], scope["path"]:
            case "GET", "/info":
                await _answer(send, 200, self._info.encode())
            case "GET", "/doctor":
                async with self._doctor:
                    lines: list[str] = []
                    status = await asyncio.to_thread(doctor, lines.append)
                await _answer(send, 200, json.dumps({"status": status, "lines": lines}).encode())
            case "POST", "/run":
                await self._run(headers.get(b"content-length", b""), receive, send)
            case _:
                await _answer(send, 404, b"there are GET /info, GET /doctor and POST /run")

    async def _run(self, length: bytes, receive: Receive, send: Send) -> None:
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            return await _answer(send, 413, f"give a body of at most {MAX_BODY_BYTES} bytes".encode())
        try:
            programs = decode_programs(await _read_body(receive))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return await _answer(send, 400, f"not a list of programs: {error!r}"[:300].encode())
        if self._num_accepted + len(programs) > QUEUED_PER_WORKER * self._executor.num_workers:
            return await _answer(send, 503, b"too many programs wait here")
        finished: asyncio.Queue[int] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def finish(index: int) -> None:
            self._num_accepted -= 1
            finished.put_nowait(index)

        def call_finish(index: int, _: Future) -> None:  # on a thread of the executor
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish, index)

        futures: list[Future[ExecutionResult]] = []
        try:
            for index, (program, max_wait_s) in enumerate(programs):
                futures.append(self._executor.submit(program, max_wait_s))
                self._num_accepted += 1
                futures[-1].add_done_callback(partial(call_finish, index))
            await self._send_results(futures, finished, receive, send)
        except ExecutorError as error:  # the connection ends, so that the client runs the programs elsewhere
            print(f"error: {error}", flush=True)
            self._stop()
        finally:
            for future in futures:
                future.cancel()

    async def _send_results(
        self,
        futures: list[Future[ExecutionResult]],
        finished: asyncio.Queue[int],
        receive: Receive,
        send: Send,
    ) -> None:
        """Send each result when it is there, until all are sent or the client has gone."""
        gone = asyncio.ensure_future(_disconnection(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            # So that the client knows that its programs have been accepted.
            await send({"type": "http.response.body", "body": b"\n", "more_body": True})
            left = len(futures)
            while left and not gone.done():
                indices = []
                with suppress(TimeoutError):
                    indices.append(await asyncio.wait_for(finished.get(), HEARTBEAT_S))
                if indices and left > 1:
                    await asyncio.sleep(GATHERING_S)
                while not finished.empty():
                    indices.append(finished.get_nowait())
                lines = [encode_result(index, futures[index].result()) for index in indices]
                await send(
                    {"type": "http.response.body", "body": b"".join(lines) or b"\n", "more_body": True}
                )
                left -= len(indices)
            if not left:
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()


async def _disconnection(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(receive: Receive) -> bytes:
    """Return the body of a request, whose length has been checked."""
    parts, more = [], True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ValueError("the client has gone")
        parts.append(event.get("body", b""))
        more = event.get("more_body", False)
    return b"".join(parts)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def serve(
    open_executor: Callable[[], Executor],
    requested_packages: tuple[str, ...],
    token: str,
    port: int,
    host: str = "127.0.0.1",
    certificate: str | None = None,
    key: str | None = None,
) -> int:
    """Serve an executor until SIGINT or SIGTERM; return the exit status, 1 if the executor has stopped.

    Args:
        open_executor: Starts the executor.
        requested_packages: Packages for which it is asked.
        token: Secret of the clients.
        port: TCP port.
        host: Address to listen on. Any but a loopback address needs a certificate.
        certificate: File of the TLS certificate and its chain.
        key: File of its key.

    Raises:
        ExecutorError: The executor does not start.
        ValueError: Other machines could reach the server without TLS.
        ImportError: uvicorn is not installed.

    """
    require_safe_host(host, certificate)
    try:
        import uvicorn
    except ImportError:
        raise ImportError("the server needs uvicorn; pip install uvicorn") from None
    has_stopped = False

    def stop() -> None:
        nonlocal has_stopped
        has_stopped = server.should_exit = True

    with open_executor() as executor:
        config = uvicorn.Config(
            Application(executor, requested_packages, token, stop),
            host=host,
            port=port,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            date_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        server = uvicorn.Server(config)
        scheme = "https" if certificate else "http"
        print(
            f"{executor.num_workers} workers at isolation level {executor.isolation} on {scheme}://{host}:{port}",
            flush=True,
        )
        # uvicorn raises the signal that has ended it once more; the executor must still be closed.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            server.run()
    return int(has_stopped)
