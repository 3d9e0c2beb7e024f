"""A client of WebSockets (RFC 6455), as far as a browser's remote protocol needs one: text messages
over one connection to this machine."""

from __future__ import annotations

import os
import secrets
import socket
import struct
from base64 import b64encode

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_LAST, _MASKED, _OPCODE, _LENGTH = 0x80, 0x80, 0x0F, 0x7F


class WebSocket:
    """One connection. Raises OSError where nobody listens, and ConnectionError where it ends."""

    def __init__(self, port: int, path: str, seconds: float) -> None:
        """seconds: that an answer may take."""
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        self._rest = b""
        key = b64encode(secrets.token_bytes(16)).decode()
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._rest:
            self._read_more()
        head, self._rest = self._rest.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ConnectionError(head.decode("latin-1"))

    def send(self, message: str) -> None:
        self._send(_TEXT, message.encode())

    def receive(self) -> str:
        """The next message, whole."""
        parts = list[bytes]()
        while True:
            first, content = self._frame()
            opcode = first & _OPCODE
            if opcode == _CLOSE:
                raise ConnectionError("the connection was closed")
            if opcode == _PING:
                self._send(_PONG, content)
            elif opcode != _PONG:
                parts.append(content)
                if first & _LAST:
                    return b"".join(parts).decode()

    def close(self) -> None:
        self._socket.close()

    def _send(self, opcode: int, content: bytes) -> None:
        size = len(content)
        if size < 126:
            head = bytes((_LAST | opcode, _MASKED | size))
        elif size < 1 << 16:
            head = struct.pack("!BBH", _LAST | opcode, _MASKED | 126, size)
        else:
            head = struct.pack("!BBQ", _LAST | opcode, _MASKED | 127, size)
        mask = os.urandom(4)
        repeated = (mask * (size // 4 + 1))[:size]
        masked = int.from_bytes(content) ^ int.from_bytes(repeated)
        self._socket.sendall(head + mask + masked.to_bytes(size))

    def _frame(self) -> tuple[int, bytes]:
        first, second = self._take(2)
        size = second & _LENGTH
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8))
        return first, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._read_more()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _read_more(self) -> None:
        block = self._socket.recv(1 << 20)
        if not block:
            raise ConnectionError("the connection has ended")
        self._rest += block
