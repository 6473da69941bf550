"""A minimal client of the Redis protocol: pipelined commands over one loopback connection.

Not thread-safe. Replies are str for simple strings, int, bytes or None for bulk strings.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

Word = bytes | str | int
Reply = str | int | bytes | None
PIPELINE_COMMANDS = 256
"""Commands in flight: few enough that their replies fit the socket buffers, so neither side blocks."""


class RedisError(Exception):
    """The server closed the connection, timed out, or answered with an error or a malformed reply."""


def encode(command: Sequence[Word]) -> bytes:
    """Return the wire form of one command."""
    parts = [f"*{len(command)}\r\n".encode()]
    for word in command:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts += [f"${len(data)}\r\n".encode(), data, b"\r\n"]
    return b"".join(parts)


class Client:
    """One connection to a server on the loopback interface."""

    def __init__(self, port: int, timeout_s: float) -> None:
        """Connect; raises OSError when nobody listens."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._reader = self._socket.makefile("rb")

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()
        self._socket.close()

    def call(self, *command: Word) -> Reply:
        """Send one command and return its reply."""
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        """Send many commands, some in flight at a time, and return their replies in order."""
        replies: list[Reply] = []
        try:
            for first in range(0, len(commands), PIPELINE_COMMANDS):
                batch = commands[first : first + PIPELINE_COMMANDS]
                self._socket.sendall(b"".join(map(encode, batch)))
                replies += [self._reply() for _ in batch]
        except OSError as error:
            raise RedisError(f"redis-server does not answer: {error}") from error
        return replies

    def _reply(self) -> Reply:
        line = self._reader.readline()
        kind, text = line[:1], line[1:].strip().decode(errors="replace")
        if kind == b"+":
            return text
        if kind == b":":
            return int(text)
        if kind == b"$":
            length = int(text)
            if length < 0:
                return None
            data = self._reader.read(length + 2)
            if len(data) != length + 2:
                raise RedisError("redis-server closed the connection within a reply")
            return data[:length]
        if kind == b"-":
            raise RedisError(f"redis-server answered with an error: {text}")
        if not line:
            raise RedisError("redis-server closed the connection")
        raise RedisError(f"redis-server answered out of protocol: {line[:40]!r}")
