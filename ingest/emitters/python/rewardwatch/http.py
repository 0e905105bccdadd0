"""Sends batches over HTTP to the service, using only the standard library."""

import contextlib
import gzip
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import uuid
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .transport import Lost

_PATH = "/api/v1/telemetry"
_BATCH = 512 * 1024  # bytes of events in a request; many proxies take a megabyte
_ROOM = 8 * 1024 * 1024  # bytes of events that wait; beyond it the emitter's own queue fills
_ZIPPED = 1024  # bytes of events from which on they are worth compressing
_ANSWER = 1024 * 1024  # bytes of an answer that are read at most
_REQUEST = 30.0  # seconds that a request may take; the service answers within 25
_PATIENCE = 300.0  # seconds after which a batch is given up, as librdkafka does
_PAUSE = 0.5  # seconds between the first two attempts; it doubles up to the longest
_LONGEST_PAUSE = 10.0
_LONGEST_ASKED = 60.0  # seconds of a Retry-After that are respected
_STOPPED = 1.0  # seconds in which the thread ends a request that is cut off


@dataclass(frozen=True)
class Http:
    """Opens connections to a service.

    Attributes:
        url: URL of the service, such as `"https://rewardwatch.example"`.
        token_file: File with the token for the service.
    """

    url: str
    token_file: str | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` if the URL is invalid, before an agent starts."""
        parts = urlsplit(self.url)
        if parts.username is not None:
            raise ValueError(f"the URL of {parts.hostname} must not contain a user: use token_file instead")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"the service must be a URL such as http://127.0.0.1:9464, not {self.url!r}")
        self.connection()  # says whether the port is one
        self.authorization()

    def __call__(self, lost: Lost) -> "HttpTransport":
        return HttpTransport(self, lost)

    def connection(self) -> http.client.HTTPConnection:
        """Returns a connection, which is opened with the first request."""
        parts = urlsplit(self.url)
        assert parts.hostname
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_REQUEST, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=_REQUEST)

    def path(self) -> str:
        return urlsplit(self.url).path.rstrip("/") + _PATH

    def authorization(self) -> dict[str, str]:
        """Returns the header with the token. The file is read each time, because it can be replaced."""
        if self.token_file is None:
            return {}
        token = Path(self.token_file).read_text(encoding="utf-8").strip()
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError(f"{self.token_file} contains no token: expected one line of ASCII")
        return {"Authorization": f"Bearer {token}"}


@dataclass
class _Batch:
    lines: list[bytes]
    size: int  # bytes
    since: float  # when the first of it came
    key: str  # by which the service recognizes it where it is sent again


@dataclass
class _Answer:
    status: int
    text: bytes
    retry_after: str | None


class HttpTransport:
    """Sends batches one at a time from a separate thread, so that the events of an agent stay in order."""

    def __init__(self, service: Http, lost: Lost) -> None:
        self._service = service
        self._lost = lost
        self._connection = service.connection()
        self._used = False  # the connection has served a request, so that the service may have closed it since
        self._messages: deque[tuple[list[bytes], int, float]] = deque()  # lines, their bytes, when they came
        self._bytes = 0  # of all that waits
        self._waiting = 0  # events
        self._closed = self._ended = False
        self._changed = threading.Condition()  # guards all of the above but the connection
        self._name = uuid.uuid4().hex
        self._batches = 0
        self._thread = threading.Thread(target=self._run, name="rewardwatch-http", daemon=True)
        self._thread.start()

    def send(self, key: str, lines: list[bytes]) -> bool:
        size = sum(map(len, lines)) + len(lines)
        with self._changed:
            if self._bytes and self._bytes + size > _ROOM:
                return False
            self._messages.append((lines, size, time.monotonic()))
            self._bytes += size
            self._waiting += len(lines)
            self._changed.notify_all()
        return True

    def serve(self, timeout: float) -> None:
        if timeout > 0:
            with self._changed:
                self._changed.wait(timeout)

    def waiting(self) -> int:
        return self._waiting

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        connected = self._connection.sock
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)  # wakes the thread from its request
        self._thread.join(_STOPPED)
        with self._changed:
            self._ended = True
            left, self._waiting = self._waiting, 0
            self._messages.clear()
        if left:
            self._lost(left, "not sent before the emitter was closed")

    def abandon(self) -> None:
        # Closes the child's copy of the socket alone. The lock may have been held at the fork, and is left alone.
        connected = self._connection.sock
        if connected is not None:
            with contextlib.suppress(OSError):
                os.close(connected.detach())

    def _run(self) -> None:
        """Runs the thread that sends requests."""
        while (batch := self._next()) is not None:
            try:
                losses = self._deliver(batch)
            except Exception as error:  # whatever it is, those behind it must be sent
                losses = Counter({f"{type(error).__name__}: {error}": len(batch.lines)})
            if losses is None:
                break  # close counts what is left
            self._settle(batch, losses)
        self._connection.close()

    def _next(self) -> _Batch | None:
        """Waits for events, and returns the oldest ones, or None after closing."""
        with self._changed:
            while not self._messages and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            self._batches += 1
            batch = _Batch([], 0, self._messages[0][2], f"{self._name}-{self._batches}")
            while self._messages and (not batch.lines or batch.size + self._messages[0][1] <= _BATCH):
                lines, size, _ = self._messages.popleft()
                batch.lines += lines
                batch.size += size
            return batch

    def _settle(self, batch: _Batch, losses: Counter[str]) -> None:
        with self._changed:
            if self._ended:
                return  # close has counted them
            for reason, events in losses.items():
                self._lost(events, reason)  # first, or a flush would see neither
            self._waiting -= len(batch.lines)
            self._bytes -= batch.size
            self._changed.notify_all()

    def _deliver(self, batch: _Batch) -> Counter[str] | None:
        """Sends a batch until there is a response for its events. Returns how many events are lost, by reason, or None
        if the emitter was closed first.
        """
        body = b"\n".join(batch.lines)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": batch.key}
        if len(body) >= _ZIPPED:
            body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
        pause = _PAUSE
        while True:
            asked = 0.0
            try:
                answer = self._post(body, headers)
                losses = _losses(answer, len(batch.lines))
                if losses is not None:
                    return losses
                trouble, asked = _trouble(answer), _asked(answer)
            except Exception as error:  # of the connection, or of the file with the token
                self._connection.close()
                trouble = f"no response from {self._service.url}: {error}"
            if self._closed:
                return None
            if time.monotonic() - batch.since > _PATIENCE:
                return Counter({trouble: len(batch.lines)})
            self._lost(0, trouble)
            # Not all agents at once, when a service is back that they all wait for.
            self._sleep((asked or pause) * random.uniform(1.0, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    def _post(self, body: bytes, headers: dict[str, str]) -> _Answer:
        headers = {**headers, **self._service.authorization()}
        try:
            return self._exchange(body, headers)
        except (ConnectionError, http.client.BadStatusLine):
            self._connection.close()
            if not self._used or self._closed:
                raise
        self._used = False
        return self._exchange(body, headers)  # the service had closed a connection that was idle

    def _exchange(self, body: bytes, headers: dict[str, str]) -> _Answer:
        self._connection.request("POST", self._service.path(), body, headers)
        response = self._connection.getresponse()
        answer = _Answer(response.status, response.read(_ANSWER), response.headers["Retry-After"])
        self._used = response.isclosed()
        if not self._used:  # longer than any answer of the service
            self._connection.close()
        return answer


def _losses(answer: _Answer, events: int) -> Counter[str] | None:
    """Returns how many events of a batch are lost according to the response, by reason, or None if the batch must be
    resent.
    """
    if answer.status == 413:
        return Counter({"a batch is too large for the service, or for a proxy in front of it (HTTP 413)": events})
    if answer.status not in (200, 400):
        return None
    try:
        received = json.loads(answer.text)
        refused, named = int(received["refused"]), received["refusals"]
        losses = Counter(f"the service rejected it: {each['reason']}: {each['message']}" for each in named)
    except (ValueError, KeyError, TypeError):  # of a 200 it is not the service that answers
        return Counter({_trouble(answer): events}) if answer.status == 400 else None
    losses["the service rejected it"] = refused - losses.total()
    return +losses


def _trouble(answer: _Answer) -> str:
    try:
        said = json.loads(answer.text)["error"]
    except (ValueError, KeyError, TypeError):
        said = "not a Rewardwatch response"
    return f"the service responded with HTTP {answer.status}: {said}"


def _asked(answer: _Answer) -> float:
    """Returns how many seconds the response asks the client to wait, or 0."""
    try:
        return min(max(int(answer.retry_after or 0), 0), _LONGEST_ASKED)
    except ValueError:  # a date, which the service does not send
        return 0.0
