"""`Executor` whose workers are those of servers on other machines, or on this one.

Knows what happens to the programs of a server that is lost. Does not know HTTP (`connection.py`) or how a
message is encoded (`messages.py`). Needs the standard library only.
"""

import logging
import math
import threading
import time
from collections.abc import Collection, Sequence

import cocos
from cocos.executor.job_queue import Job
from cocos.executor.limits import Limits
from cocos.executor.pool import Executor
from cocos.executor.remote.access import client_tls
from cocos.executor.remote.connection import Connection, ServerBusy, ServerLost
from cocos.executor.remote.messages import MAX_BODY_BYTES, ServerInfo, decode_result, encode_program
from cocos.executor.sandboxes.installed_packages import normalized
from cocos.executor.sandboxes.levels import NAMES
from cocos.executor.verdicts import ExecutionResult, ExecutorError, Program

_log = logging.getLogger(__name__)
# Each connection has one request at a time. With several, the server's workers are busy while one request
# waits for its last program and another is on its way.
CONNECTIONS = 3
LEAST_BATCH = 8  # programs of a request, at most: this many or one per worker, whatever is more
# A program that takes its server down with it must not take down all of them. A server that is lost for
# another reason is seldom lost this often while it has the same program.
MAX_LOSSES = 5
ALL_LOST_S = 60.0  # stop if no server has answered for so long
LONGEST_PAUSE_S = 2.0  # between two attempts to reach a server
BUSY_PAUSE_S = 0.2


class RemoteExecutor(Executor):
    """An `Executor` whose programs run on servers.

    Every server must have the same version, isolation level and packages, so that a verdict does not depend
    on the server. A program whose server is lost runs on another one; its result is counted once.

    Args:
        urls: Addresses of the servers, such as "https://node1:8765". Unencrypted ones of this machine only.
        token: Secret of the servers.
        certificate: File with the certificates to trust; None: those of the system.
        limits: Limits of programs without `Program.limits`. Each server lowers them to what it has.
        sandbox: Isolation level that the servers must have, or "auto" for any.
        min_isolation: Lowest isolation level to accept. None: "seccomp" if `sandbox` is "auto", otherwise any
            level.
        max_wait_s: As for `Executor`.
        packages: Third-party packages that the servers must have been started with.

    Raises:
        ExecutorError: A server does not answer, or is not as it must be.
        ValueError: An address is none, or it would send the token over a network in clear.

    """

    def __init__(
        self,
        urls: Sequence[str],
        token: str,
        certificate: str | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        sandbox: str = "auto",
        min_isolation: str | None = None,
        max_wait_s: float | None = None,
        packages: tuple[str, ...] = (),
    ) -> None:
        self._token, self._tls = token, client_tls(certificate)
        if not urls:
            raise ValueError("give the address of one server or more")
        infos = {url: self._first_info(url) for url in urls}
        self._expected = info = infos[urls[0]]
        _require(info, urls[0], sandbox, min_isolation, packages)
        for url, other in infos.items():
            _require_equal(info, other, url)
        self._num_workers_of = {url: other.num_workers for url, other in infos.items()}
        num_workers = sum(self._num_workers_of.values())
        self._set_up(num_workers, limits, info.isolation, info.packages, info.python, max_wait_s)
        self._runners = []
        self._has_closed = threading.Event()
        self._num_connections = CONNECTIONS * len(infos)
        self._lost_since_s: dict[str, float] = {}  # address -> since when the server does not answer
        self._start_threads((self._use, url) for url in infos for _ in range(CONNECTIONS))

    def close(self) -> None:
        """Fail every program that has no result with an ExecutorError. Safe to call twice."""
        self._has_closed.set()
        super().close()

    def _first_info(self, url: str) -> ServerInfo:
        connection = Connection(url, self._token, self._tls)
        try:
            return connection.info()
        except (ServerLost, ServerBusy) as error:
            raise ExecutorError(
                f"no server of programs answers at {url} ({error}); start one with "
                "`python -m cocos.executor serve`"
            ) from None
        finally:
            connection.close()

    def _use(self, url: str) -> None:
        """Have one connection's server execute jobs until the queue is closed."""
        try:
            is_lost = True
            while is_lost and (connection := self._connect(url)):
                try:
                    is_lost = self._use_connection(connection)
                finally:
                    connection.close()
        # Whoever waits for a result must not wait for ever.
        except BaseException as error:
            self._has_closed.set()
            self._queue.close(
                str(error) if isinstance(error, ExecutorError) else f"the executor failed: {error!r}"
            )

    def _connect(self, url: str) -> Connection | None:
        """Return a connection as soon as the server answers; None once the executor is closed.

        Raises:
            ExecutorError: No server answers, or this one is not the same any more.

        """
        pause_s = 0.05
        while not self._has_closed.is_set():
            connection = Connection(url, self._token, self._tls)
            try:
                info = connection.info()
            except (ServerLost, ServerBusy) as error:
                connection.close()
                self._note_loss(url, error)
                self._has_closed.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                _require_equal(self._expected, info, url)
                with self._stats_lock:
                    self._lost_since_s.pop(url, None)
                return connection
        return None

    def _note_loss(self, url: str, error: Exception) -> None:
        """Remember that a server does not answer; raise ExecutorError if none has for too long."""
        now = time.monotonic()
        with self._stats_lock:
            if url not in self._lost_since_s:
                self._lost_since_s[url] = now
                _log.warning("the server of programs at %s is lost: %s", url, error)
            lost = self._lost_since_s
            if len(lost) * CONNECTIONS < self._num_connections or now - max(lost.values()) < ALL_LOST_S:
                return
        raise ExecutorError(
            f"no server of programs has answered for {ALL_LOST_S:.0f} s: {', '.join(lost)} ({error}); start "
            "them again and resume"
        )

    def _use_connection(self, connection: Connection) -> bool:
        """Have the server execute jobs; return True if it is lost, False once the queue is closed."""
        while job := self._queue.take():
            share = math.ceil(len(self._queue) / self._num_connections)
            most = max(LEAST_BATCH, self._num_workers_of[connection.url])
            more = [] if job.losses else self._queue.take_more(min(share, most - 1))
            jobs, body = self._encode([job, *more])
            were_accepted = False
            try:
                for line in connection.run(body) if jobs else ():
                    were_accepted = True
                    if line:
                        index, result = decode_result(line)
                        self._take_result(jobs.pop(index), result)
                    if self._has_closed.is_set():
                        raise ServerLost("the executor is closed")
                if jobs:
                    raise ServerLost("it ended the connection")
            except ServerBusy:
                self._put_back(jobs.values())
                self._has_closed.wait(BUSY_PAUSE_S)
            except (ServerLost, ValueError, TypeError, KeyError, AttributeError) as error:
                self._put_back(jobs.values(), str(error) if were_accepted else None)
                if not self._has_closed.is_set():
                    _log.info("the connection to %s is lost: %r", connection.url, error)
                return True
            except BaseException:
                self._put_back(jobs.values())
                raise
        return False

    def _encode(self, taken: Sequence[Job]) -> tuple[dict[int, Job], bytes]:
        """Return the jobs to send by their index in a request, and its body; deal with the others."""
        jobs: dict[int, Job] = {}
        parts: list[bytes] = []
        size = 0
        for job in taken:
            may_wait_s = job.may_wait_s
            line = encode_program(
                job.program, self._limits_for(job.program), None if may_wait_s == math.inf else may_wait_s
            )
            if may_wait_s < 0:
                self._take_result(job, self._overdue(job))
            elif len(line) > MAX_BODY_BYTES:
                reason = f"the program has {len(line)} bytes; a server takes {MAX_BODY_BYTES}"
                self._take_result(job, ExecutionResult((), reason, self.isolation))
            elif size + len(line) > MAX_BODY_BYTES:
                self._queue.put_back(job)
            else:
                jobs[len(jobs)] = job
                parts.append(line)
                size += len(line)
        return jobs, b"".join(parts)

    def _limits_for(self, program: Program) -> Limits:
        """Return the limits to send; the server lowers them to what it has."""
        return program.limits or super()._limits_for(program)

    def _put_back(self, jobs: Collection[Job], loss: str | None = None) -> None:
        """Queue jobs without a result again; `loss` is what happened to the server that had accepted them."""
        for job in reversed(list(jobs)):
            job.losses += loss is not None
            if job.losses >= MAX_LOSSES:
                reason = f"{job.losses} servers were lost while they had this program, the last: {loss}"
                self._take_result(job, ExecutionResult((), reason, self.isolation))
            else:
                self._queue.put_back(job)

    def _take_result(self, job: Job, result: ExecutionResult) -> None:
        """Count and publish the one result of a job."""
        if len(result.verdicts) != len(job.program.test_list) and not result.is_infra_failure:
            result = ExecutionResult((), "the server gave too few or too many verdicts", self.isolation)
        self._queue.finish(job)
        with self._stats_lock:
            self.stats.busy_s += result.duration_s
            self._count(result)
        self._publish(job, result)


def _require(
    info: ServerInfo, url: str, sandbox: str, min_isolation: str | None, packages: tuple[str, ...]
) -> None:
    """Raise ExecutorError if a server is not what was asked for."""
    lowest = min_isolation or ("seccomp" if sandbox == "auto" else "rlimits")
    if sandbox not in ("auto", info.isolation) or NAMES.index(info.isolation) > NAMES.index(lowest):
        wanted = f"{lowest} or better" if sandbox == "auto" else sandbox
        raise ExecutorError(
            f"{url} runs programs at isolation level {info.isolation}; this run needs {wanted}"
        )
    if sorted(map(normalized, packages)) != sorted(map(normalized, info.requested_packages)):
        its, ours = " ".join(info.requested_packages) or "none", " ".join(packages) or "none"
        raise ExecutorError(f"{url} was started with the packages {its}, and this run needs {ours}")
    if info.version != cocos.__version__:
        raise ExecutorError(
            f"{url} runs version {info.version}; this is {cocos.__version__}, so verdicts may differ"
        )


def _require_equal(expected: ServerInfo, info: ServerInfo, url: str) -> None:
    """Raise ExecutorError if verdicts of a server could differ from those of the others."""
    if differences := expected.differences(info):
        raise ExecutorError(
            f"{url} differs from the servers so far, so verdicts may too: {'; '.join(differences)}"
        )
