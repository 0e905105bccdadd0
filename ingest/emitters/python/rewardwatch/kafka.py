"""Sends messages to a Kafka topic with librdkafka."""

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from .transport import Lost

_PURGED = 1.0  # seconds in which librdkafka reports what it was told to give up


@dataclass(frozen=True)
class Kafka:
    """Opens connections to a topic.

    Attributes:
        settings: librdkafka settings, which override the defaults.
    """

    brokers: str
    topic: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.settings:
            Producer(self.producer_settings())  # raises what is wrong with them, before an agent begins

    def __call__(self, lost: Lost) -> "KafkaTransport":
        return KafkaTransport(self, lost)

    def producer_settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.brokers,
            # Without it a retry could reorder or repeat an agent's steps.
            "enable.idempotence": True,
            # Beyond it the emitter's own queue fills, whose bound is in events.
            "queue.buffering.max.kbytes": 64 * 1024,
            "compression.type": "lz4",
            # What is wrong is told by the callback for errors, at a rate that a log can bear.
            "log_level": 2,
            **self.settings,
        }


class KafkaTransport:
    """A librdkafka producer with its own threads and sockets."""

    def __init__(self, kafka: Kafka, lost: Lost) -> None:
        self._topic = kafka.topic
        self._lost = lost
        self._waiting = 0
        self._producer = Producer({**kafka.producer_settings(), "error_cb": self._trouble})

    def send(self, key: str, lines: list[bytes]) -> bool:
        delivered = functools.partial(self._delivered, len(lines))
        try:
            self._producer.produce(self._topic, value=b"\n".join(lines), key=key, on_delivery=delivered)
        except BufferError:
            return False
        except KafkaException as error:
            self._lost(len(lines), str(error))
        else:
            self._waiting += len(lines)
        return True

    def serve(self, timeout: float) -> None:
        self._producer.poll(timeout)

    def waiting(self) -> int:
        return self._waiting

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(_PURGED)

    def abandon(self) -> None:
        # One reference too many: librdkafka would wait forever for threads that did not come along in the fork.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._producer))

    def _delivered(self, events: int, error: KafkaError | None, _message: Message) -> None:
        self._waiting -= events
        if error is not None:
            self._lost(events, error.str())

    def _trouble(self, error: KafkaError) -> None:
        # Without how long it took, or each would be trouble of its own.
        self._lost(0, error.str().split(" (after ")[0])
