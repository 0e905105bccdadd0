import logging
import pickle
import sys
import threading
import time
import unittest
from unittest import mock

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from support import KeepingEmitter, Kept, Tensor

import rewardwatch.emitter
from rewardwatch import Emitter
from rewardwatch.kafka import Kafka, KafkaTransport
from rewardwatch.losses import Losses

NOWHERE = "127.0.0.1:1"  # no broker listens on port 1


def numbered(events):
    return [event["step"] for event in events]


class EmitterTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter(queue=100)
        self.addCleanup(self.emitter.close)
        self.kept = self.emitter.kept

    def test_values(self):
        for given, sent in [
            (np.float32(0.5), 0.5),
            (np.int64(3), 3),
            (np.bool_(True), True),
            (np.array(3), 3),
            (np.array([0.5, 1.5], dtype=np.float32), [0.5, 1.5]),
            (np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
            (float("nan"), "NaN"),
            (np.float64("-inf"), "-Infinity"),
            (np.array([0.5, np.nan]), [0.5, "NaN"]),
            ((1, float("inf")), [1, "Infinity"]),
            ({"a": np.float32("inf"), 1: 1}, {"a": "Infinity", "1": 1}),
            ("léft", "léft"),
            (None, None),
            (Tensor([0.5, 1.5]), [0.5, 1.5]),
        ]:
            with self.subTest(given=given):
                self.emitter.emit({"policy": "p", "reward": 1, "x": given})
                event = self.emitter.events()[-1]
                self.assertEqual(event, {"policy": "p", "reward": 1, "x": sent})
                self.assertIs(type(event["x"]), type(sent))

    def test_agents_do_not_overtake_each_other(self):
        for step in range(20):
            self.emitter.emit({"policy": "p", "agent_id": f"a-{step % 2}", "reward": 1, "step": step})
        self.assertEqual(numbered(self.emitter.events()), [*range(20)])
        self.assertEqual({key for key, _ in self.kept.messages}, {"a-0", "a-1"})

    def test_events_of_an_agent_share_messages_in_order(self):
        with mock.patch.object(rewardwatch.emitter, "_MESSAGE", 300):
            for step in range(20):
                self.emitter.emit({"policy": "p", "agent_id": f"a-{step // 10}", "reward": 1, "step": step})
            self.emitter.emit({"policy": "p", "reward": 1, "step": 20})
            self.emitter.events()
        by_key = {}
        for key, events in self.kept.messages:
            self.assertLessEqual(len(events), 300 // 50)
            by_key.setdefault(key, []).extend(numbered(events))
        self.assertEqual(by_key, {"a-0": [*range(10)], "a-1": [*range(10, 20)], "p": [20]})
        self.assertLess(len(self.kept.messages), 15)

    def test_what_the_service_would_refuse_is_lost_and_said(self):
        for event, words in [
            ({"reward": 1}, "needs a policy"),
            ({"policy": "p"}, "needs one of reward"),
            ({"policy": "p", "action": object()}, "action is <object"),
            ({"policy": "p", "observation": np.zeros((84, 84)), "reward": 1}, "7056 numbers"),
            ({"policy": "p", "reward": 1, "note": "x" * (1 << 20)}, "bytes"),
            ({"policy": "p", "reward": 1, "note": object()}, "not JSON serializable"),
            ("reward", "must be a dict"),
        ]:
            with self.subTest(words), self.assertLogs("rewardwatch", logging.WARNING) as logs:
                with KeepingEmitter() as emitter:
                    emitter.emit(event)
                    emitter.emit({"policy": "p", "reward": 1})
                self.assertIn(words, logs.output[0])
                self.assertEqual(emitter.lost, 1)
                self.assertEqual(len(emitter.kept.messages), 1, "the events behind it are sent")

    def test_a_full_queue_loses_events_and_blocks_nobody(self):
        self.kept.room = 0
        held = mock.patch.object(rewardwatch.emitter, "_HELD", 100)
        with held, self.assertLogs("rewardwatch", logging.WARNING) as logs:
            for step in range(250):
                self.emitter.emit({"policy": "p", "reward": 1, "step": step})
            self.assertGreaterEqual(self.emitter.lost, 50, "100 in the queue, and 100 in the thread's hands at most")
            lost = self.emitter.lost
            self.kept.room = 10**9
            self.assertEqual(len(self.emitter.events()), 250 - lost)
            self.emitter.close()
        self.assertIn(f"the queue is full ({lost} events lost)", " ".join(logs.output))

    def test_the_bound_is_in_events_whatever_the_records_hold(self):
        with mock.patch.object(threading.Thread, "start"), self.assertLogs("rewardwatch"):  # nothing leaves the queue
            emitter = KeepingEmitter(queue=100)
            for _ in range(90):
                emitter.emit({"policy": "p", "reward": 1})
            emitter.put(10, list)
            self.assertEqual((emitter.lost, emitter.waiting), (0, 100))
            emitter.put(1, list)
            self.assertEqual((emitter.lost, emitter.waiting), (1, 100))
            emitter._thread = None
            emitter.close()
        self.assertEqual(emitter.lost, 101)

    def test_a_tensor_may_be_written_again(self):
        action = Tensor([1, 2])
        self.emitter.emit({"policy": "p", "action": action})
        action[0] = 7
        self.assertEqual(self.emitter.events()[0]["action"], [1, 2])

    def test_a_thread_that_cannot_start_is_said_and_tried_again(self):
        start = mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread"))
        with mock.patch.object(rewardwatch.emitter, "_RECONNECT", 0):
            with start, self.assertLogs("rewardwatch") as logs:
                self.emitter.emit({"policy": "p", "reward": 1, "step": 0})
            self.assertIn("can't start new thread", logs.output[0])
            self.emitter.emit({"policy": "p", "reward": 1, "step": 1})
            self.assertEqual(numbered(self.emitter.events()), [0, 1])
        self.assertEqual(self.emitter.lost, 0)

    def test_what_no_thread_ever_sent_is_lost_and_said(self):
        start = mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread"))
        for ends in (False, True):
            with self.subTest(ends=ends), start, self.assertLogs("rewardwatch") as logs:
                emitter = KeepingEmitter()
                with mock.patch("sys.is_finalizing", return_value=ends):
                    emitter.emit({"policy": "p", "reward": 1})
                self.assertEqual((emitter._closed, emitter.lost), (ends, int(ends)))
                emitter.close()
                self.assertEqual((emitter.waiting, emitter.lost), (0, 1))
                self.assertIn("not sent before the emitter was closed (1 events lost)", " ".join(logs.output))

    def test_close_waits_no_longer_than_it_is_told(self):
        ending = threading.Event()
        self.addCleanup(ending.set)
        self.kept.room = 0
        self.kept.serve = lambda timeout: time.sleep(0.05)
        self.kept.close = ending.wait
        with self.assertLogs("rewardwatch"):
            self.emitter.emit({"policy": "p", "reward": 1})
            began = time.monotonic()
            self.emitter.close(timeout=1.0)
            self.assertLess(time.monotonic() - began, 1.7, "flush and join share the time")
            ending.set()
            self.emitter._thread.join()

    def test_close_is_bounded_and_counts_what_is_left(self):
        self.kept.room = 0
        with self.assertLogs("rewardwatch", logging.WARNING):
            for _ in range(10):
                self.emitter.emit({"policy": "p", "reward": 1})
            self.emitter.close(timeout=0.2)
            self.emitter._thread.join()
        self.assertEqual(self.emitter.lost, 10)
        self.assertTrue(self.kept.closed)
        self.emitter.emit({"policy": "p", "reward": 1})
        self.assertEqual(self.emitter.lost, 11)

    def test_threads_share_an_emitter(self):
        emitter = KeepingEmitter()
        threads = [
            threading.Thread(
                target=lambda i=i: [
                    emitter.emit({"policy": "p", "agent_id": str(i), "reward": 1, "step": n}) for n in range(500)
                ]
            )
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events = emitter.events()
        emitter.close()
        for i in range(4):
            self.assertEqual(numbered(e for e in events if e["agent_id"] == str(i)), [*range(500)])

    def test_a_connection_that_cannot_be_made_is_tried_again(self):
        failures = [OSError("no certificate"), OSError("no certificate")]
        kept = Kept()

        def connect(lost):
            if failures:
                raise failures.pop()
            return kept

        soon = mock.patch.object(rewardwatch.emitter, "_RECONNECT", 0.01)
        with self.assertLogs("rewardwatch") as logs, soon, Emitter(connect=connect) as emitter:
            emitter.emit({"policy": "p", "reward": 1})
            self.assertEqual(emitter.flush(), 0)
        self.assertIn("no certificate", logs.output[0])
        self.assertEqual((len(kept.messages), emitter.lost), (1, 0))

    def test_a_fork_begins_again(self):
        self.emitter.emit({"policy": "p", "reward": 1})
        self.emitter.events()
        self.emitter.close()
        self.emitter._forked()
        self.assertTrue(self.kept.abandoned)
        self.emitter.emit({"policy": "p", "reward": 1})
        self.assertEqual(len(self.emitter.events()), 2)

    def test_a_pickled_emitter_is_the_one_of_its_process(self):
        emitter = Emitter(NOWHERE)
        self.assertIs(pickle.loads(pickle.dumps(emitter)), emitter)


class LossesTest(unittest.TestCase):
    def test_one_warning_a_minute(self):
        losses = Losses()
        with mock.patch("time.monotonic") as clock, self.assertLogs("rewardwatch") as logs:
            for clock.return_value in range(1000, 1130):
                losses.add(2, "the queue is full")
                losses.add(0, "no broker")
                losses.report()
        self.assertEqual(len(logs.output), 3)
        self.assertIn("the queue is full (120 events lost); no broker; events lost so far: 122", logs.output[1])

    def test_reasons_are_bounded(self):
        losses = Losses()
        for i in range(1000):
            losses.add(1, f"reason {i}")
        with self.assertLogs("rewardwatch") as logs:
            losses.report()
        self.assertIn("other reasons (990 events lost)", logs.output[0])


class KafkaTest(unittest.TestCase):
    def test_settings_that_are_wrong_are_refused_at_once(self):
        with self.assertRaisesRegex(KafkaException, "securty"):
            Emitter(NOWHERE, kafka={"securty.protocol": "SSL"})

    def test_brokers_and_topic_come_from_the_environment(self):
        with mock.patch.dict("os.environ", {"REWARDWATCH_BROKERS": "kafka-1:9092", "REWARDWATCH_TOPIC": "t"}):
            self.assertEqual(Emitter()._connect, Kafka("kafka-1:9092", "t"))
            self.assertEqual(Emitter("other:1", "u")._connect, Kafka("other:1", "u"))
        with mock.patch.dict("os.environ", clear=True):
            self.assertEqual(Emitter()._connect, Kafka("127.0.0.1:9092", "agent-telemetry"))

    def test_without_a_broker_events_are_lost_within_the_bound_and_said(self):
        with self.assertLogs("rewardwatch", logging.WARNING) as logs:
            emitter = Emitter(NOWHERE, "telemetry")
            for _ in range(10):
                emitter.emit({"policy": "p", "reward": 1})
            self.assertEqual(emitter.flush(0.5), 10)
            emitter.close(timeout=0.1)
            emitter._thread.join()
        self.assertEqual(emitter.lost, 10)
        said = " ".join(logs.output)
        self.assertEqual(said.count("Connect to"), said.count("telemetry: "), "the same trouble is said once a warning")

    def test_a_producer_that_came_along_in_a_fork_is_never_ended(self):
        transport = KafkaTransport(Kafka(NOWHERE, "t"), Losses().add)
        before = sys.getrefcount(transport._producer)
        transport.abandon()
        self.assertEqual(sys.getrefcount(transport._producer), before + 1, "to end it would wait for its threads")

    def test_a_full_producer_has_no_room_and_one_that_failed_loses(self):
        losses = Losses()
        transport = KafkaTransport(Kafka(NOWHERE, "t"), losses.add)
        producer = transport._producer = mock.Mock()
        producer.produce.side_effect = BufferError("Local: Queue full")
        self.assertFalse(transport.send("a", [b"{}", b"{}"]))
        self.assertEqual(losses.total, 0)
        producer.produce.side_effect = KafkaException(KafkaError(KafkaError._FATAL))
        self.assertTrue(transport.send("a", [b"{}", b"{}"]))
        self.assertEqual(losses.total, 2)
        producer.produce.side_effect = None
        self.assertTrue(transport.send("a", [b"{}", b"{}", b"{}"]))
        self.assertEqual(transport.waiting(), 3)
        producer.produce.call_args.kwargs["on_delivery"](KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        self.assertEqual((transport.waiting(), losses.total), (0, 5))


if __name__ == "__main__":
    unittest.main()
