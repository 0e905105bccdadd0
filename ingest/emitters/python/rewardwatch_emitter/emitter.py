"""The emitter: events in, Kafka messages out, and never an exception into the loop that it watches."""

import json
import logging
import math
import time

from confluent_kafka import KafkaException, Producer

_WARN_EVERY = 10.0  # seconds

_log = logging.getLogger(__name__)


class Emitter:
    """Sends telemetry events to a Kafka topic in the background.

    Messages are keyed by the event's agent_id (its policy where it has none), so that the events of an agent stay in
    one partition and in order. An event that cannot be sent, because the queue is full, the broker is out of reach for
    too long, or the event is not JSON, is dropped: `dropped` counts it and a warning is logged at most every ten
    seconds. Nothing but the constructor raises. An emitter may be shared by threads, but not by forked processes.
    """

    def __init__(self, brokers, topic, *, queue=100_000, linger=0.05, kafka=None, producer=None):
        """brokers: "host:port" or a list of them. queue: events that may wait for the broker. linger: seconds in
        which events are gathered into one request. kafka: further settings of librdkafka, such as those of TLS and
        SASL; they win over the defaults. producer: takes the place of the one made from these settings.
        """
        self.topic = topic
        self.dropped = 0
        self._warned = -_WARN_EVERY
        self._producer = producer or Producer(_settings(brokers, queue, linger, kafka or {}))

    def emit(self, event):
        """Queues one event, a dict in telemetry version 1. Returns whether it was queued; it never blocks."""
        try:
            key = event.get("agent_id") or event.get("policy")
            self._producer.produce(self.topic, value=_encode(event), key=key, on_delivery=self._delivered)
        except Exception as error:  # whatever it is, the agent's loop must go on
            self._drop(error)
            return False
        finally:
            self._serve()
        return True

    def flush(self, timeout=10.0):
        """Waits until everything queued has been delivered or given up, at most timeout seconds. Returns how many
        events are still waiting.
        """
        try:
            return self._producer.flush(timeout)
        except KafkaException as error:
            self._warn(error)
            return len(self._producer)

    def close(self, timeout=10.0):
        """Flushes. What is still waiting after timeout seconds is dropped."""
        left = self.flush(timeout)
        if left:
            self._producer.purge()
            self.flush(1.0)  # the purged events report themselves as dropped

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _serve(self):
        try:
            self._producer.poll(0)
        except KafkaException as error:
            self._warn(error)

    def _delivered(self, error, _message):
        if error is not None:
            self._drop(error)

    def _drop(self, error):
        self.dropped += 1
        self._warn(error)

    def _warn(self, error):
        now = time.monotonic()
        if now - self._warned >= _WARN_EVERY:
            self._warned = now
            _log.warning("telemetry for %s: %s (%d events dropped so far)", self.topic, error, self.dropped)


def _settings(brokers, queue, linger, kafka):
    return {
        "bootstrap.servers": brokers if isinstance(brokers, str) else ",".join(brokers),
        # Without it a retry could reorder or repeat an agent's steps.
        "enable.idempotence": True,
        "queue.buffering.max.messages": queue,
        "linger.ms": linger * 1000,
        "compression.type": "lz4",
        **kafka,
    }


def _encode(event):
    """The event as JSON; numpy values as their plain Python ones, NaN and infinities as strings, which JSON lacks."""
    try:
        return _json(event)
    except ValueError:
        return _json(_finite(event))


def _json(value):
    return json.dumps(value, allow_nan=False, separators=(",", ":"), default=plain).encode()


def plain(value):
    """A numpy scalar as a Python one, an array as the flat list of its components."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"telemetry cannot carry a {type(value).__name__}")
    return value.ravel().tolist() if getattr(value, "ndim", 0) else value.item()


def _finite(value):
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if hasattr(value, "tolist"):
        return _finite(plain(value))
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
