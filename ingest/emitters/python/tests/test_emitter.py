import json
import logging
import unittest

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from rewardwatch_emitter import Emitter

NOWHERE = "127.0.0.1:1"  # no broker listens on port 1


class Broker:
    """Stands in for librdkafka's producer: keeps what it is given, or fails as told."""

    def __init__(self, fails=None):
        self.messages = []
        self.callbacks = []
        self.fails = fails

    def produce(self, topic, value, key, on_delivery):
        if self.fails:
            raise self.fails
        self.messages.append((topic, key, json.loads(value)))
        self.callbacks.append(on_delivery)

    def poll(self, _timeout):
        return 0

    def flush(self, _timeout):
        return 0


def emitted(event):
    broker = Broker()
    assert Emitter(NOWHERE, "telemetry", producer=broker).emit(event)
    return broker.messages[0]


class EncodingTest(unittest.TestCase):
    def test_values(self):
        for given, sent in [
            (np.float32(0.5), 0.5),
            (np.float64(0.5), 0.5),
            (np.int64(3), 3),
            (np.bool_(True), True),
            (np.array(3), 3),
            (np.array([0.5, 1.5], dtype=np.float32), [0.5, 1.5]),
            (np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
            (float("nan"), "NaN"),
            (np.float32("nan"), "NaN"),
            (float("inf"), "Infinity"),
            (np.float64("-inf"), "-Infinity"),
            (np.array([0.5, np.nan]), [0.5, "NaN"]),
            ((1, float("inf")), [1, "Infinity"]),
            ({"a": np.float32("inf"), "b": 1}, {"a": "Infinity", "b": 1}),
            ("left", "left"),
            (None, None),
        ]:
            with self.subTest(given=given):
                _, _, event = emitted({"policy": "p", "x": given})
                self.assertEqual(event, {"policy": "p", "x": sent})
                self.assertIs(type(event["x"]), type(sent))


class EmitterTest(unittest.TestCase):
    def test_events_of_an_agent_share_a_key(self):
        self.assertEqual(emitted({"policy": "p", "agent_id": "a-17"})[:2], ("telemetry", "a-17"))
        self.assertEqual(emitted({"policy": "p"})[:2], ("telemetry", "p"))

    def test_failures_are_counted_and_logged_and_never_raised(self):
        for name, fails, event in [
            ("full queue", BufferError("Local: Queue full"), {"policy": "p"}),
            ("fatal error", KafkaException(KafkaError(KafkaError._FATAL)), {"policy": "p"}),
            ("unknown type", None, {"policy": "p", "x": object()}),
            ("not an event", None, "reward"),
        ]:
            with self.subTest(name), self.assertLogs("rewardwatch_emitter.emitter", logging.WARNING) as logs:
                emitter = Emitter(NOWHERE, "telemetry", producer=Broker(fails))
                self.assertFalse(emitter.emit(event))
                self.assertFalse(emitter.emit(event))
                self.assertEqual(emitter.dropped, 2)
                self.assertEqual(len(logs.records), 1, "one warning in ten seconds is enough")

    def test_undelivered_events_are_counted(self):
        broker = Broker()
        emitter = Emitter(NOWHERE, "telemetry", producer=broker)
        emitter.emit({"policy": "p"})
        emitter.emit({"policy": "p"})
        delivered, refused = broker.callbacks
        delivered(None, None)
        self.assertEqual(emitter.dropped, 0)
        with self.assertLogs("rewardwatch_emitter.emitter", logging.WARNING):
            refused(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        self.assertEqual(emitter.dropped, 1)

    def test_without_a_broker_the_queue_fills_and_close_lets_go_of_it(self):
        with self.assertLogs("rewardwatch_emitter.emitter", logging.WARNING):
            emitter = Emitter([NOWHERE], "telemetry", queue=10, kafka={"log_level": 0})
            queued = [emitter.emit({"policy": "p", "step": i}) for i in range(25)]
            self.assertEqual(queued, [True] * 10 + [False] * 15)
            self.assertEqual(emitter.dropped, 15)
            emitter.close(timeout=0.05)
        self.assertEqual(emitter.dropped, 25)


if __name__ == "__main__":
    unittest.main()
