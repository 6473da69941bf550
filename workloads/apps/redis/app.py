"""The `redis` workload: redis-server on loopback under redis-benchmark; `size` is thousands of requests.

Each round stores known keys, lets redis-benchmark push known numbers of elements beside random ones,
checks what must be there, replaces and drops part of it. No persistence, a port and a directory of its
own. The load generator does not run under the allocator.
"""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from apprun.arm import Program, find_program
from apprun.faults import CannotMeasure, WrongOutput
from apprun.process import Conversation, Usage, deadline_s
from apprun.session import Session
from resp_client import Client, RedisError, Reply, Word

SERVER = Program("redis-server", "redis-server", ("--version",))
BENCHMARK = Program("redis-benchmark", "redis-tools", ("--version",))
START_ATTEMPTS = 5
CONNECT_INTERVAL_S = 0.01
PIPELINE = 16
CLIENTS = 20
APPENDED = "sixteen letters."
KNOWN_PER_THOUSAND = 300
"""Known keys for each thousand of benchmark requests."""


def known_items(seed: int, count: int) -> dict[str, bytes]:
    """Return `count` keys with values of 1 byte to 4 KiB, small ones more often."""
    source = random.Random(seed)
    return {f"known:{i}": source.randbytes(1 << source.randrange(12)) * source.randint(1, 2) for i in range(count)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A running redis-server and a connection to it."""

    def __init__(self, talk: Conversation, port: int, timeout_s: float) -> None:
        """Connect to the server; raises WrongOutput when it ends or never listens."""
        self.talk = talk
        self.port = port
        self._client = self._connect(timeout_s)

    def _connect(self, timeout_s: float) -> Client:
        ends_at = time.monotonic() + timeout_s
        while True:
            try:
                return Client(self.port, timeout_s)
            except OSError:
                self.talk.usage()
                if time.monotonic() > ends_at:
                    raise WrongOutput(f"redis-server did not listen within {timeout_s:g} s.") from None
                time.sleep(CONNECT_INTERVAL_S)

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send commands and return the replies; raises WrongOutput when the server fails."""
        try:
            return self._client.pipeline(commands)
        except RedisError as error:
            self.talk.usage()
            raise WrongOutput(f"{error}.") from error

    def expect(self, command: Sequence[Word], wanted: Reply) -> None:
        """Send one command; raises WrongOutput unless the reply is `wanted`."""
        reply = self.pipeline([command])[0]
        if reply != wanted:
            words = " ".join(map(str, command))
            raise WrongOutput(f"redis-server answers {words} with {reply!r:.60} and should with {wanted!r:.60}.")

    def stop(self) -> None:
        """Close the connection and let the server end in order; raises WrongOutput when it cannot."""
        self._client.close()
        self.talk.terminate()


@contextmanager
def serving(session: Session, path: str) -> Iterator[Server]:
    """Start a server on a free port, and kill it if it still runs at the end."""
    timeout_s = deadline_s(session.arm)
    for attempt in range(START_ATTEMPTS):
        port = _free_port()
        options = {
            "port": str(port), "bind": "127.0.0.1", "save": "", "appendonly": "no", "daemonize": "no",
            "dir": str(session.scratch), "databases": "1", "set-proc-title": "no", "loglevel": "warning",
        }
        argv = [path, *(word for name, value in options.items() for word in (f"--{name}", value))]
        with Conversation(session.arm, argv, session.scratch) as talk:
            try:
                server = Server(talk, port, timeout_s)
            except WrongOutput as fault:
                # Another process may have taken the port since it was probed.
                taken = talk.has_ended() and "Address already in use" in talk.output()
                if taken and attempt + 1 < START_ATTEMPTS:
                    continue
                raise fault
            yield server
            return
    raise CannotMeasure("redis-server found no free loopback port; try again.")


def _benchmark(session: Session, benchmark: str, server: Server, *command: str) -> None:
    """Send `size` thousand requests of `command` to the server."""
    requests = session.size * 1000 // PIPELINE * PIPELINE
    argv = [
        benchmark, "-h", "127.0.0.1", "-p", str(server.port), "-n", str(requests), "-c", str(CLIENTS),
        "-P", str(PIPELINE), "-r", str(requests), "-q", *command,
    ]
    timeout_s = deadline_s(session.arm)
    try:
        ran = subprocess.run(argv, capture_output=True, timeout=timeout_s, cwd=session.scratch)
    except subprocess.TimeoutExpired:
        raise WrongOutput(f"redis-server did not serve {command[0]} requests within {timeout_s:g} s.") from None
    if ran.returncode != 0:
        server.talk.usage()
        said = ran.stderr.decode(errors="replace").strip() or "no message"
        raise WrongOutput(f"redis-benchmark {command[0]} ended with status {ran.returncode}: {said}.")
    session.operations += requests


def _run_round(session: Session, benchmark: str, server: Server, index: int) -> int:
    """Do one round; return the bytes of the known values that stay stored."""
    known = known_items(index, session.size * KNOWN_PER_THOUSAND)
    requests = session.size * 1000 // PIPELINE * PIPELINE
    with session.region():
        server.pipeline([("SET", key, value) for key, value in known.items()])
        _benchmark(session, benchmark, server, "RPUSH", "bench:list", "element:__rand_int__")
        _benchmark(session, benchmark, server, "INCR", "bench:counter")
        _benchmark(session, benchmark, server, "SADD", "bench:set", "member:__rand_int__")
        _benchmark(session, benchmark, server, "APPEND", "bench:text", APPENDED)
        stored = server.pipeline([("GET", key) for key in known])
    for key, value in zip(known, stored):
        session.check(f"redis GET {key}, round {index}", value if isinstance(value, bytes) else b"", known[key])
    server.expect(("DBSIZE",), len(known) + 4)
    server.expect(("LLEN", "bench:list"), requests)
    server.expect(("GET", "bench:counter"), str(requests).encode())
    server.expect(("STRLEN", "bench:text"), requests * len(APPENDED))
    # The other half of the round's memory goes back: every second known key and all benchmark keys.
    dropped = list(known)[::2]
    benchmark_keys = ("bench:list", "bench:counter", "bench:set", "bench:text")
    with session.region():
        server.pipeline([("DEL", key) for key in (*dropped, *benchmark_keys)])
    server.expect(("DBSIZE",), len(known) - len(dropped))
    return sum(len(value) for key, value in known.items() if key not in set(dropped))


def run(session: Session) -> None:
    """Run all rounds against one server."""
    benchmark = find_program(BENCHMARK, session.environment)
    path = session.program(SERVER)
    with serving(session, path) as server:
        session.start(server.talk.pid)
        before = server.talk.usage()
        for index in range(session.rounds):
            live_bytes = _run_round(session, benchmark, server, index)
            session.events.checkpoint(index, "round", live_bytes, {})
        after = server.talk.usage()
        server.stop()
    session.close(
        Usage(after.user_s - before.user_s, after.faults_minor - before.faults_minor, after.peak_rss_bytes)
    )
