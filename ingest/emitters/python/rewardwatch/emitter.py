"""The emitter, which sends events from its own thread. It never blocks the agent's loop or raises exceptions in it."""

import multiprocessing.util
import os
import sys
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .checks import MAX_RECORD, check
from .encoding import line, plain, snapshot
from .http import Http
from .keys import keyed
from .losses import Losses
from .transport import Connect, Transport

Event = dict[str, Any]
Made = Event | tuple[Event | bytes, str] | Exception
"""An event, an event or its line with the message key, or the reason why an event could not be created."""
Expand = Callable[..., Iterable[Made]]

EXIT_TIMEOUT = 5.0
"""How many seconds an exiting process waits for unsent events."""

_GATHER = 0.05  # seconds in which events are gathered
_MESSAGE = 256 * 1024  # bytes of events in a message; brokers take a megabyte
_HELD = 4096  # events that are gathered at most before they are handed to the transport
_PAUSE = 0.1  # seconds until a message for which there was no room is offered again
_RECONNECT = 5.0  # seconds until a connection or a thread that could not be made is tried again
_ENDING = 0.25  # of the time that closing may take: to end the connection and to say what is lost

_here: "weakref.WeakValueDictionary[str, Emitter]" = weakref.WeakValueDictionary()


class Emitter:
    """Sends telemetry to the service over HTTP, or to a Kafka topic, from a separate thread.

    The agent's thread only adds records to a bounded queue. Only the constructor raises exceptions: events that cannot
    be sent are lost, counted in `lost`, and logged once a minute. Messages are keyed by `agent_id`, or by `policy` if
    there is none, which keeps the events of an agent in order.

    Threads can share an emitter. An emitter can be inherited by a fork, pickled and copied: each process opens its own
    connection with its first event.
    """

    _closed: bool

    def __init__(
        self,
        brokers: str | None = None,
        topic: str | None = None,
        *,
        url: str | None = None,
        token_file: str | None = None,
        queue: int = 100_000,
        kafka: Mapping[str, Any] | None = None,
        connect: Connect | None = None,
    ) -> None:
        """Creates an emitter. The connection is opened with the first event.

        If neither `brokers` nor `url` is set, the emitter uses the environment variable `REWARDWATCH_URL` or
        `REWARDWATCH_BROKERS`, or the broker 127.0.0.1:9092 if neither is set.

        Args:
            brokers: Kafka brokers, such as `"kafka-1:9092,kafka-2:9092"`.
            topic: Kafka topic. Defaults to `REWARDWATCH_TOPIC`, or `agent-telemetry` if it is not set.
            url: URL of the service, such as `"http://127.0.0.1:9464"`, to use HTTP instead of Kafka.
            token_file: File with the token for the service. Defaults to `REWARDWATCH_TOKEN_FILE`.
            queue: Maximum number of events in the queue.
            kafka: Additional librdkafka settings, such as those for TLS and SASL.
            connect: A function that opens a different transport.

        Raises:
            ValueError: If an argument is invalid.
            ImportError: If Kafka is used, but confluent-kafka is not installed.
        """
        if connect is None:
            if not brokers and not url:
                url, brokers = os.environ.get("REWARDWATCH_URL"), os.environ.get("REWARDWATCH_BROKERS")
            if url and (brokers or topic or kafka):
                raise ValueError(f"brokers, topic and kafka cannot be combined with the URL {url}")
            connect = _http(url, token_file) if url else _kafka(brokers, topic, kafka)
        self._begin(uuid.uuid4().hex, queue, connect)

    @property
    def lost(self) -> int:
        """The number of events of this process that could not be sent."""
        return self._losses.total

    @property
    def waiting(self) -> int:
        """The number of events that have not been delivered yet."""
        waiting = self._entered - self._taken + self._held
        return waiting + (self._transport.waiting() if self._transport else 0)

    def emit(self, event: Event, *, key: str | None = None) -> None:
        """Sends a telemetry version 1 event.

        An event that the service would reject is lost, and the reason is logged.

        Args:
            event: The fields of the event.
            key: Message key in Kafka, instead of `agent_id`.
        """
        try:
            self.put(1, _checked, snapshot(event), key)
        except Exception as error:  # whatever it is, the agent's loop must go on
            self.failed(error)

    def feedback(
        self,
        key: object,
        reward: float | None = None,
        *,
        policy: str,
        outcomes: Mapping[str, float] | None = None,
        reward_components: Mapping[str, float] | None = None,
        key_field: str = "episode_id",
        ts: float | str | None = None,
    ) -> None:
        """Sends the results of a decision.

        Args:
            key: The key of the decision.
            reward: The reward of the decision.
            policy: The name of the policy that made the decision.
            outcomes: The outcomes of the decision, by name.
            reward_components: The components of the reward, by name.
            key_field: The telemetry field that contains the key: `episode_id`, `agent_id` or `labels.<name>`. It must
                match `policies[].feedback.key` in the configuration of the service.
            ts: The time of the feedback, as a Unix time or an RFC 3339 string. Defaults to the current time.
        """
        try:
            told = {"reward": reward, "outcomes": outcomes, "reward_components": reward_components}
            event = {"ts": time.time_ns() // 1000 if ts is None else ts, "policy": policy, **told}
            self.put(1, _keyed, snapshot(event), key_field, key)
        except Exception as error:
            self.failed(error)

    def put(self, events: int, expand: Expand, *args: Any) -> None:
        """Queues a record, which the emitter's thread converts to events.

        Args:
            events: The number of events in the record.
            expand: The function that converts the record to events.
            *args: The arguments of `expand`.
        """
        with self._lock:
            closed, full = self._closed, self._entered - self._taken + events > self._limit
            if not closed and not full:
                self._entered += events
                self._queue.append((events, expand, args))
        if closed or full:
            self._losses.add(events, "the emitter is closed" if closed else "the queue is full")
            return
        if self._thread is None:
            self._start()

    def failed(self, error: Exception) -> None:
        """Counts an event that could not be created.

        Args:
            error: The reason, which is logged.
        """
        self._losses.add(1, _said(error))
        if self._thread is None:
            self._start()  # it is the thread that says so

    def flush(self, timeout: float = 10.0) -> int:
        """Waits until all queued events are delivered or lost.

        Args:
            timeout: Maximum time to wait, in seconds.

        Returns:
            The number of events that are still waiting.
        """
        deadline = time.monotonic() + timeout
        while self.waiting and time.monotonic() < deadline:
            self._wake.set()
            time.sleep(0.005)
        return self.waiting

    def close(self, timeout: float = 10.0) -> None:
        """Sends the queued events and closes the connection. Events that are still waiting after the timeout are lost.

        Args:
            timeout: Maximum time to wait, in seconds.
        """
        deadline = time.monotonic() + timeout
        thread = self._thread
        if thread is not None and not self._closed:
            self.flush(timeout * (1 - _ENDING))
        self._closed = True
        self._wake.set()
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
        else:
            self._end()

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _emitter_of, (self._id, self._limit, self._connect)

    def _begin(self, identity: str, limit: int, connect: Connect) -> None:
        """Creates the state of an emitter in this process."""
        self._id = identity
        self._limit = limit
        self._connect = connect
        self._queue: deque[tuple[int, Expand, tuple[Any, ...]]] = deque()
        self._losses = Losses()
        # Events that have entered the queue, and that the thread has taken out of it. The thread takes no lock for it:
        # it could lose the interpreter's while it holds it, and an agent that waits for both waits for milliseconds.
        self._entered = 0
        self._taken = 0
        self._lock = threading.RLock()  # a signal's handler may send an event while its thread does
        self._wake = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._transport: Transport | None = None
        self._reconnect = 0.0  # when to try again to get a transport
        self._restart = 0.0  # when to try again to start the thread
        self._ends_with_process = False
        self._held = 0  # events that are in the hands of the thread
        # Of them the lines of each key, in the order in which they came: were agents that share a partition to overtake
        # each other, their episodes would be judged in another order than they ended in.
        self._gathered: list[tuple[str, list[bytes]]] = []
        _here[identity] = self

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed or time.monotonic() < self._restart:
                return
            if not self._ends_with_process:
                # Unlike atexit it runs at the end of the processes of multiprocessing too.
                multiprocessing.util.Finalize(None, self.close, (EXIT_TIMEOUT,), exitpriority=100)
                self._ends_with_process = True
            thread = threading.Thread(target=self._run, name="rewardwatch", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._not_started(error)
            else:
                self._thread = thread

    def _not_started(self, error: RuntimeError) -> None:
        """Records that there is no thread. Queued events wait for the next attempt, or are lost if the process ends."""
        self._losses.add(0, str(error))
        if sys.is_finalizing() or not threading.main_thread().is_alive():
            self._closed = True
            self._end()
        else:
            self._restart = time.monotonic() + _RECONNECT
            self._losses.report()

    def _run(self) -> None:
        """The emitter's thread."""
        while not self._closed:
            self._wake.wait(_GATHER)
            self._wake.clear()
            if self._connected():
                self._drain()
                self._serve(0)
            self._losses.report()
        self._end()

    def _connected(self) -> bool:
        if self._transport is None and time.monotonic() >= self._reconnect:
            try:
                self._transport = self._connect(self._losses.add)
            except Exception as error:  # such as a certificate that this machine lacks
                self._losses.add(0, f"no connection: {error}")
                self._reconnect = time.monotonic() + _RECONNECT
        return self._transport is not None

    def _end(self) -> None:
        with self._lock:
            left = self._entered - self._taken
            self._taken = self._entered
            self._queue.clear()
        if left:
            self._losses.add(left, "not sent before the emitter was closed")
        if self._transport:
            self._transport.close()
        self._losses.report(last=True)

    def _drain(self) -> None:
        """Passes everything in the queue to the transport."""
        while self._queue and not self._closed:
            events, expand, args = self._queue.popleft()
            self._held += events  # first, or a flush would see neither
            self._taken += events
            self._gather(events, expand, args)
            if self._held >= _HELD:
                self._hand_over()
        self._hand_over()

    def _gather(self, events: int, expand: Expand, args: tuple[Any, ...]) -> None:
        made = 0
        try:
            for event in expand(*args):
                made += 1
                self._take(event)
        except Exception as error:  # a bad record must not end the thread
            self._losses.add(events - made, _said(error))
        self._held -= events - made

    def _take(self, made: Made) -> None:
        try:
            if isinstance(made, Exception):
                raise made
            event, key = made if isinstance(made, tuple) else (made, "")
            encoded = event if isinstance(event, bytes) else line(event)
            if len(encoded) > MAX_RECORD:
                raise ValueError(f"an event has {len(encoded)} bytes, and the limit is {MAX_RECORD}")
            if not key and not isinstance(event, bytes):
                key = str(event.get("agent_id") or event["policy"])
        except Exception as error:  # a bad event must not cost those behind it
            self._losses.add(1, _said(error))
            self._held -= 1
            return
        if not self._gathered or self._gathered[-1][0] != key:
            self._gathered.append((key, []))
        self._gathered[-1][1].append(encoded)

    def _hand_over(self) -> None:
        for key, lines in self._gathered:
            for message in _messages(lines):
                self._send(key, message)
        self._gathered.clear()

    def _send(self, key: str, lines: list[bytes]) -> None:
        assert self._transport is not None
        try:
            while not self._transport.send(key, lines):
                if self._closed:
                    self._losses.add(len(lines), "not sent before the emitter was closed")
                    break
                self._serve(_PAUSE)
                self._losses.report()
        except Exception as error:  # of the transport; the next message may fare better
            self._losses.add(len(lines), _said(error))
        self._held -= len(lines)

    def _serve(self, timeout: float) -> None:
        assert self._transport is not None
        try:
            self._transport.serve(timeout)
        except Exception as error:
            self._losses.add(0, _said(error))

    def _forked(self) -> None:
        """Resets the emitter in a forked child. Events that were queued are sent by the parent."""
        if self._transport:
            self._transport.abandon()
        self._begin(self._id, self._limit, self._connect)


def _http(url: str, token_file: str | None) -> Connect:
    return Http(url, token_file or os.environ.get("REWARDWATCH_TOKEN_FILE"))


def _kafka(brokers: str | None, topic: str | None, settings: Mapping[str, Any] | None) -> Connect:
    try:
        from .kafka import Kafka
    except ImportError as error:
        raise ImportError(f"Kafka requires confluent-kafka (pip install 'rewardwatch[kafka]'): {error}") from None
    topic = topic or os.environ.get("REWARDWATCH_TOPIC", "agent-telemetry")
    return Kafka(brokers or "127.0.0.1:9092", topic, dict(settings or {}))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _messages(lines: list[bytes]) -> Iterable[list[bytes]]:
    message: list[bytes] = []
    size = 0
    for encoded in lines:
        if message and size + len(encoded) > _MESSAGE:
            yield message
            message, size = [], 0
        message.append(encoded)
        size += len(encoded) + 1
    yield message


def _checked(event: Any, key: str | None) -> Iterable[Made]:
    event = plain(event)
    check(event)
    yield event if key is None else (event, key)


def _keyed(event: Event, key_field: str, key: object) -> Iterable[Made]:
    event = {name: value for name, value in plain(event).items() if value is not None}
    yield keyed(event, key_field, key)


def _emitter_of(identity: str, limit: int, connect: Connect) -> Emitter:
    """Returns this process's copy of an emitter that was pickled here or in another process."""
    emitter = _here.get(identity)
    if emitter is None:
        emitter = Emitter.__new__(Emitter)
        emitter._begin(identity, limit, connect)
    return emitter


def _after_fork() -> None:
    for emitter in list(_here.values()):
        emitter._forked()


os.register_at_fork(after_in_child=_after_fork)
