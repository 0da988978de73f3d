"""Servers of programs and the executor that uses them: real server processes, killed at random."""

import asyncio
import http.client
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cocos.dataprep.preparation import PreparationOptions
from cocos.executor import Executor, ExecutorError, Limits, Program, Status, pool
from cocos.executor.__main__ import main
from cocos.executor.calibration import calibrate
from cocos.executor.remote import client
from cocos.executor.remote.access import read_token, require_safe_host, split_url
from cocos.executor.remote.client import RemoteExecutor
from cocos.executor.remote.messages import MAX_BODY_BYTES, ServerInfo, encode_program
from cocos.executors import start_executor
from tests.support.commands import free_port
from tests.support.executor import is_zombie, offered, processes_below, statuses
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.processes

LEVEL = offered("namespaces", "seccomp") or "rlimits"
LIMITS = Limits(wall_s=8, cpu_s=6)
TOKEN = "0123456789abcdef" * 2
KINDS = (
    Program("def f(x): return x + 1", ("assert f(1) == 2", "assert f(1) == 3")),
    Program("def f(x) return", ("assert f(1) == 2",)),
    Program("def f(): return input() + open('a/b').read()", ("assert f() == 'xy'",), stdin="x\n", files=(("a/b", "y"),)),
    Program("class V:\n    def __eq__(self, o): return True", ("assert V() == V()",), entry_point="V"),
    Program("def f(): return '\\ud800\\0é'", ("assert f() == ''",), setup="import math"),
    Program("def f():\n    while True: pass", ("assert f() == 1", "assert 1 == 1"), limits=Limits(wall_s=1, cpu_s=1)),
    Program("def f(n): return bytearray(n)", ("assert len(f(1 << 40)) == 1",)),
)  # fmt: skip


class Server:
    """A server process."""

    def __init__(self, folder, *options):
        token = folder / "token"
        if not token.exists():
            token.touch(0o600)
            token.write_text(TOKEN)
        self.port = free_port()
        self.token_file = str(token)
        self.url = f"http://127.0.0.1:{self.port}"
        self._words = [
            *(sys.executable, "-m", "cocos.executor", "serve", "--port", str(self.port)),
            *("--token_file", str(token), "--sandbox", LEVEL, "--executor_workers", "2", *options),
        ]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self._words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait(self):
        """Wait until it serves, or has ended; return its line."""
        line = self.process.stdout.readline()
        if "workers at" in line:
            wait_until(self.answers, 60)
        return line

    def answers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/nothing")
            return connection.getresponse().status == 401
        except OSError:
            return False
        finally:
            connection.close()

    def request(self, method, path, body=None, token=TOKEN, **headers):
        """Send one request; return its status and the body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"} | headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def servers(folder, count=1, options=()):
    started = [Server(folder, *options) for _ in range(count)]
    try:
        for server in started:
            assert f"2 workers at isolation level {LEVEL}" in server.wait()
        yield started
    finally:
        for server in started:
            server.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with servers(tmp_path_factory.mktemp("server")) as [server]:
        yield server


def remote(*servers, **options):
    return RemoteExecutor(
        [server.url for server in servers], TOKEN, **({"limits": LIMITS, "sandbox": LEVEL} | options)
    )


def outcome(result):
    """Return everything of a result but its times."""
    verdicts = tuple(replace(verdict, duration_s=0) for verdict in result.verdicts)
    if any(verdict.status is Status.TIMEOUT for verdict in verdicts):  # the message names a time
        verdicts = tuple(verdict.status for verdict in verdicts)
    return verdicts, result.load_error, result.message, result.isolation


def test_a_server_gives_the_verdicts_of_an_executor_on_this_machine(server):
    with remote(server) as theirs, Executor(2, LIMITS, LEVEL) as ours:
        assert (theirs.num_workers, theirs.isolation, theirs.packages) == (2, LEVEL, ())
        assert theirs.python_version == ours.python_version
        local, distant = ours.run(KINDS), theirs.run(KINDS)
        assert [outcome(result) for result in distant] == [outcome(result) for result in local]
        assert all(result.duration_s > 0 for result in distant) and distant[2].all_passed
        counters = ("programs", "passed", "timeouts", "infra_failures", "tests", "in_child_tests")
        assert [getattr(theirs.stats, name) for name in counters] == [
            getattr(ours.stats, name) for name in counters
        ]


def test_every_way_to_run_a_program_works(server):
    with remote(server) as executor:
        right, wrong = (Program("def f(): return 1", (f"assert f() == {n}",)) for n in (1, 2))
        assert executor.submit(right).result().all_passed
        assert [r.all_passed for r in executor.run([right, wrong, right])] == [True, False, True]
        assert sorted((i, r.all_passed) for i, r in executor.stream([wrong, right, wrong])) == [
            (0, False),
            (1, True),
            (2, False),
        ]
        assert executor.stats.programs == 5  # equal programs run once
        assert asyncio.run(executor.arun(right)).all_passed
    with pytest.raises(ExecutorError, match="closed"):
        executor.submit(right)


def test_limits_and_calibration_are_those_of_the_client(server):
    sleepy = Program("import time\ndef f(s):\n    time.sleep(s)\n    return 1", ("assert f(1.5) == 1",))
    reference = replace(sleepy, code="def f(s): return 1")
    with remote(server, limits=Limits(wall_s=6, cpu_s=6)) as executor:
        assert executor.run([sleepy])[0].all_passed
        limits = calibrate(executor, [reference], factor=5)
        assert limits == [Limits(wall_s=1.0, cpu_s=1)]
        executor.set_limits([reference], limits)
        assert statuses(executor.run([sleepy])[0]) == [Status.TIMEOUT]
        assert executor.run([replace(sleepy, limits=Limits(wall_s=5))])[0].all_passed


def test_a_program_that_waited_too_long_is_not_executed(server):
    slow = [
        Program(f"import time\ntime.sleep(2)\ndef f(): return {n}", (f"assert f() == {n}",)) for n in range(8)
    ]
    with remote(server, max_wait_s=1) as executor:
        results = executor.run(slow)
    late = [result for result in results if result.is_infra_failure]
    assert late and all("not started within" in result.infra_error for result in late)
    assert any(result.all_passed for result in results)


def test_closing_fails_programs_that_have_no_result(server):
    executor = remote(server)
    futures = [
        executor.submit(Program(f"import time\ntime.sleep({5 + n / 9})", ("assert 1 == 1",)))
        for n in range(9)
    ]
    executor.close()
    for future in futures:
        with pytest.raises(ExecutorError, match="closed"):
            future.result(timeout=10)


def test_servers_that_are_killed_at_random_lose_no_verdict_and_double_none(tmp_path):
    """Three servers are killed and started again, one at a time and at least four times, while programs run."""
    draw, done, kills = random.Random(0), threading.Event(), []

    def kill_at_random(victims):
        while not done.wait(draw.uniform(0.1, 1.0)):
            victim = draw.choice(victims)
            victim.kill()
            kills.append(victim)
            victim.start()
            victim.wait()

    calls, futures = Counter(), []
    with servers(tmp_path, 3) as started, remote(*started) as executor:
        killer = threading.Thread(target=kill_at_random, args=(started,))
        killer.start()
        try:
            while len(kills) < 4 and len(futures) < 20_000:
                first = len(futures)
                for n in range(first, first + 300):
                    code = f"import time\ntime.sleep({n % 5 / 100})\ndef f(x): return x + {n}"
                    futures.append(executor.submit(Program(code, (f"assert f(1) == {n + 1 + n % 2}",))))
                    futures[-1].add_done_callback(lambda _, n=n: calls.update([n]))
                results = [future.result(timeout=300) for future in futures]
        finally:
            done.set()
            killer.join()
        stats = executor.stats
    assert len(kills) >= 4
    assert [result.infra_error for result in results if result.is_infra_failure] == []
    assert [result.all_passed for result in results] == [n % 2 == 0 for n in range(len(results))]
    assert calls == Counter(range(len(results)))  # each future was set once
    assert (stats.programs, stats.passed) == (len(results), len(results) // 2)


def test_a_program_whose_servers_are_always_lost_is_given_up(server, monkeypatch):
    """The connections of this test end when the server has accepted a certain program."""
    run = client.Connection.run

    def lose(connection, body):
        for line in run(connection, body):
            yield line
            if b"poison" in body:
                raise client.ServerLost("the machine has gone")

    monkeypatch.setattr(client.Connection, "run", lose)
    poison = Program("'poison'", ("assert 1 == 1",))
    honest = [Program(f"def f(): return {n}", (f"assert f() == {n}",)) for n in range(50)]
    with remote(server) as executor:
        results = executor.run([*honest, poison])
    assert "5 servers were lost" in results[-1].infra_error
    assert all(result.all_passed for result in results[:-1])


def test_too_many_failures_stop_the_executor_and_end_its_threads(server, monkeypatch):
    monkeypatch.setattr(client, "MAX_BODY_BYTES", 1000)
    monkeypatch.setattr(pool, "MAX_INFRA_FAILURES", 0)
    with remote(server) as executor:
        [result] = executor.run([Program("#" * 2000, ("assert 1 == 1",))])
        assert "bytes; a server takes 1000" in result.infra_error
        wait_until(lambda: not any(thread.is_alive() for thread in executor._threads), 20)
        with pytest.raises(ExecutorError, match="more than 0 of the last"):
            executor.submit(KINDS[0])


def test_an_executor_whose_servers_are_all_lost_stops_and_says_which(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "ALL_LOST_S", 1.0)
    with servers(tmp_path) as [server], remote(server) as executor:
        future = executor.submit(Program("import time\ntime.sleep(6)", ("assert 1 == 1",)))
        wait_until(future.running, 20)
        server.kill()
        with pytest.raises(ExecutorError, match=f"no server of programs has answered .* {server.url}"):
            future.result(timeout=60)


def test_a_server_that_comes_back_with_another_level_ends_the_run(tmp_path):
    if LEVEL == "rlimits":
        pytest.skip("only level rlimits is offered here")
    with servers(tmp_path) as [server], remote(server) as executor:
        assert executor.run([KINDS[0]])[0].num_passed == 1
        server.kill()
        server._words[server._words.index("--sandbox") + 1] = "rlimits"
        server.start()
        server.wait()
        with pytest.raises(ExecutorError, match=f"isolation: {LEVEL}, rlimits"):
            executor.run([Program("def f(): return 3", ("assert f() == 3",))])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sandbox": "docker"}, "isolation level .*; this run needs docker"),
        ({"sandbox": "auto", "min_isolation": "docker"}, "this run needs docker or better"),
        ({"packages": ("numpy",)}, "started with the packages none, and this run needs numpy"),
    ],
)
def test_a_server_that_is_not_as_the_run_needs_it_is_refused(server, options, reason):
    with pytest.raises(ExecutorError, match=reason):
        remote(server, **options)


def test_a_version_that_is_not_the_clients_is_refused(server, monkeypatch):
    monkeypatch.setattr("cocos.__version__", "0.0.1")
    with pytest.raises(ExecutorError, match=r"this is 0\.0\.1"):
        remote(server)


def test_a_server_that_does_not_answer_is_one_line():
    with pytest.raises(ExecutorError, match=r"no server of programs answers at http://127.0.0.1:\d+ \("):
        RemoteExecutor([f"http://127.0.0.1:{free_port()}"], TOKEN)


# -- what a server refuses --


def test_without_the_token_nothing_is_answered(server):
    body = encode_program(KINDS[0], LIMITS, None)
    for token in ("", "x" * 32, TOKEN[:-1], TOKEN + "0"):
        for method, path in (("GET", "/info"), ("GET", "/doctor"), ("POST", "/run"), ("GET", "/nothing")):
            assert server.request(method, path, body if method == "POST" else None, token)[0] == 401
    with pytest.raises(ExecutorError, match="the token is missing or wrong"):
        RemoteExecutor([server.url], "x" * 32)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server):
    headers = {"Content-Length": str(MAX_BODY_BYTES + 1)}
    assert server.request("POST", "/run", b"", **headers)[0] == 413
    assert server.request("POST", "/run", iter([b"{}"]))[0] == 413  # in chunks, so of unknown length


@pytest.mark.parametrize(
    "body",
    [b"\xff", b"[]", b"{}", b"[1, 2]", b'[{"code": 1}, null]', b"[" * 100_000, b'[{"test_list": []}, null]'],
)
def test_a_body_that_is_no_list_of_programs_is_refused(server, body):
    status, text = server.request("POST", "/run", body)
    assert status == 400 and b"not a list of programs" in text
    assert ServerInfo.decode(server.request("GET", "/info")[1]).num_workers == 2  # it still serves


def test_a_queue_has_an_end_and_a_busy_server_answers_later(server):
    slow = b"".join(
        encode_program(Program(f"import time\ntime.sleep(3 + {n} / 999)", ("assert 1 == 1",)), LIMITS, None)
        for n in range(150)
    )
    first = http.client.HTTPConnection("127.0.0.1", server.port)
    first.request("POST", "/run", slow, {"Authorization": f"Bearer {TOKEN}"})
    assert first.getresponse().status == 200
    assert server.request("POST", "/run", slow)[0] == 503  # 150 + 150 programs are more than 100 per worker
    first.close()  # the server drops those that have not started
    with remote(server) as executor:
        assert executor.run([KINDS[0]])[0].num_passed == 1


# -- commands --


def test_the_options_of_a_command_open_servers(server, tmp_path):
    options = PreparationOptions(
        executor_url=[server.url], executor_token_file=server.token_file, program_timeout_s=3, sandbox=LEVEL
    )
    with start_executor(options, max_wait_s=7) as executor:
        assert (executor.num_workers, executor.limits.wall_s) == (2, 3)
        assert executor.run([KINDS[0]])[0].num_passed == 1
    for name, value in (("executor_workers", 2), ("program_python", "python"), ("runtime", "runsc")):
        with pytest.raises(ValueError, match=f"--{name} is an option of the servers"):
            replace(options, **{name: value})
    with pytest.raises(ValueError, match="--executor_token_file is missing"):
        replace(options, executor_token_file=None)


def test_prepare_data_checks_references_on_servers(server, prepare, problems_file, capsys):
    words = ["--executor_url", server.url, "--executor_token_file", server.token_file, "--sandbox", LEVEL]
    assert prepare("check", problems_file, *words) == 0, capsys.readouterr()
    unreachable = ["--executor_url", f"http://127.0.0.1:{free_port()}", *words[2:]]
    assert prepare("check", problems_file, *unreachable) == 2
    assert "no server of programs answers" in capsys.readouterr().err


# -- addresses, tokens and the command line --


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:80", "http://example.org:80", "http://0.0.0.0:80", "http://[::]:80"]
)
def test_no_token_is_sent_over_a_network_in_clear(url):
    with pytest.raises(ValueError, match="in clear; give https://"):
        split_url(url)


@pytest.mark.parametrize(
    "url", ["", "node1:8765", "https://node1", "ftp://127.0.0.1:1", "http://127.0.0.1:x", "https://a:1/b"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="is not the address of a server"):
        split_url(url)


def test_addresses_of_this_machine_and_of_tls_are_taken():
    assert split_url("http://127.0.0.1:1") == ("127.0.0.1", 1, False)
    assert split_url("http://[::1]:2/") == ("::1", 2, False)
    assert split_url("http://localhost:3") == ("localhost", 3, False)
    assert split_url("https://node1:4") == ("node1", 4, True)
    require_safe_host("127.0.0.1", None)
    require_safe_host("0.0.0.0", "server.pem")


def test_a_token_must_be_private_and_long(tmp_path):
    path = tmp_path / "token"
    path.write_text("a" * 32 + "\n")
    path.chmod(0o640)
    with pytest.raises(ValueError, match="open to other users; chmod 600"):
        read_token(str(path))
    path.chmod(0o600)
    assert read_token(str(path)) == "a" * 32
    path.write_text("short")
    with pytest.raises(ValueError, match="fewer than 16 characters"):
        read_token(str(path))
    for missing in (None, str(tmp_path / "none")):
        with pytest.raises(ValueError, match="openssl rand"):
            read_token(missing)


def test_a_public_address_without_tls_is_refused_in_one_line(tmp_path, capsys):
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(TOKEN)
    status = main(["serve", "--port", "1", "--token_file", str(path), "--host", "0.0.0.0"])
    assert status == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --host 0.0.0.0 can be reached from other machines; give --certificate")


def test_the_doctor_of_a_server_reports_its_machine(server, capsys):
    status = main(["doctor", "--executor_url", server.url, "--executor_token_file", server.token_file])
    printed = capsys.readouterr().out
    assert f"{server.url}: 2 workers at isolation level {LEVEL}" in printed
    assert "a right program passes" in printed and "private files cannot be read" in printed
    assert (status == 0) == ("its self-test passes" in printed and "breaks its promise" not in printed)


def test_a_server_ends_on_sigterm_and_leaves_no_worker(tmp_path):
    with servers(tmp_path) as [server]:
        workers = processes_below(server.process.pid)[1:]
        assert len(workers) >= 2
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        wait_until(lambda: all(is_zombie(pid) for pid in workers), 20)


def certificate(folder):
    """Return a certificate for 127.0.0.1 that signs itself, and its key."""
    words = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", "1", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
    ]
    subprocess.run(words, check=True, capture_output=True)
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_tls_is_checked_and_used(tmp_path):
    cert, key = certificate(tmp_path)
    server = Server(tmp_path, "--certificate", cert, "--key", key)
    try:
        assert f"https://127.0.0.1:{server.port}" in server.process.stdout.readline()
        url = f"https://127.0.0.1:{server.port}"

        def answers():
            try:
                RemoteExecutor([url], TOKEN, sandbox=LEVEL)
            except ExecutorError as error:
                return "not trusted" in str(error)

        wait_until(answers, 30)  # whoever does not trust the certificate sends no token
        with RemoteExecutor([url], TOKEN, cert, sandbox=LEVEL) as executor:
            assert executor.run([KINDS[0]])[0].num_passed == 1
    finally:
        server.kill()
