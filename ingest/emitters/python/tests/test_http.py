"""Telemetry over HTTP, to a service that answers as it is told to."""

import contextlib
import gzip
import http.server
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import rewardwatch.emitter
import rewardwatch.http
from rewardwatch import Emitter
from rewardwatch.http import Http

ROOT = Path(__file__).parent.parent


class Service(http.server.ThreadingHTTPServer):
    """Answers each request as the next of `answers` says, and then takes everything. An answer is a status with headers
    and a body, or "hang up".
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.answers = []
        self.requests = []  # headers and events
        self.connections = 0
        self.arrived = threading.Event()  # a request has
        self.held = threading.Event()  # requests wait for it
        self.held.set()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a client that has gone

    def steps(self):
        """The steps of the events of each request."""
        return [[event.get("step") for event in events] for _, events in self.requests]

    def end(self):
        self.held.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        events = [json.loads(line) for line in body.splitlines()]
        self.server.requests.append(({**self.headers, "path": self.path}, events))
        self.server.arrived.set()
        self.server.held.wait()
        taken = (200, {}, {"accepted": len(events), "refused": 0, "refusals": []})
        answer = self.server.answers.pop(0) if self.server.answers else taken
        if answer == "hang up":
            self.close_connection = True
            return
        status, headers, said = answer
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(text), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def refusal(index, reason="missing_policy", message="a record must have a policy"):
    return {"index": index, "reason": reason, "column": 0, "message": message}


class HttpTest(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.end)
        self.emitter = Emitter(url=self.service.url)
        self.addCleanup(self.emitter.close, 0.5)
        for name, seconds in (("_PAUSE", 0.01), ("_LONGEST_PAUSE", 0.02)):
            patched = mock.patch.object(rewardwatch.http, name, seconds)
            patched.start()
            self.addCleanup(patched.stop)

    def emit(self, *steps, agent="a"):
        for step in steps:
            self.emitter.emit({"policy": "p", "agent_id": agent, "reward": 1, "step": step})

    def sent(self):
        """The events that the service was sent, each once."""
        self.assertEqual(self.emitter.flush(20), 0)
        by_key = {headers["Idempotency-Key"]: events for headers, events in self.service.requests}
        return [event for events in by_key.values() for event in events]

    def test_events_arrive_in_order_in_batches_with_ids_of_their_own(self):
        for step in range(300):
            self.emit(step, agent=f"a-{step % 3}")
            if step % 100 == 99:
                self.assertEqual(self.emitter.flush(), 0)
        self.assertEqual([event["step"] for event in self.sent()], [*range(300)])
        keys = [headers["Idempotency-Key"] for headers, _ in self.service.requests]
        self.assertEqual(len(set(keys)), len(keys))
        self.assertLessEqual(len(keys), 30)
        self.assertEqual(self.service.connections, 1)
        for headers, _ in self.service.requests:
            self.assertEqual(headers["path"], "/api/v1/telemetry")
            self.assertEqual(headers["Content-Type"], "application/x-ndjson")
            self.assertNotIn("Authorization", headers)
        self.assertEqual(self.emitter.lost, 0)

    def test_large_batches_are_compressed_and_bounded(self):
        self.service.held.clear()
        for step in range(200):
            self.emitter.emit({"policy": "p", "reward": 1, "step": step, "note": "x" * 10_000})
        self.service.held.set()
        self.assertEqual([event["step"] for event in self.sent()], [*range(200)])
        self.assertLessEqual(max(map(len, self.service.steps())), 512 * 1024 // 10_000)
        self.assertEqual({headers.get("Content-Encoding") for headers, _ in self.service.requests}, {"gzip"})

    def test_the_token_is_read_for_each_request(self):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "token")
            file.write_text("first\n", encoding="ascii")
            with Emitter(url=self.service.url + "/behind/", token_file=str(file)) as emitter:
                for token in ("first", "second"):
                    file.write_text(f"{token}\n", encoding="ascii")
                    emitter.emit({"policy": "p", "reward": 1})
                    self.assertEqual(emitter.flush(), 0)
        said = [(headers["path"], headers["Authorization"]) for headers, _ in self.service.requests]
        self.assertEqual(said, [("/behind/api/v1/telemetry", f"Bearer {token}") for token in ("first", "second")])

    def test_what_was_not_taken_is_sent_again_under_the_same_id(self):
        unavailable = {"error": "cannot write the telemetry"}
        for name, answer in [
            ("busy", (429, {"Retry-After": "0"}, {"error": "too many concurrent telemetry requests"})),
            ("unavailable", (503, {"Retry-After": "0"}, unavailable)),
            ("a pause that is none", (503, {"Retry-After": "nan"}, unavailable)),
            ("a page of a proxy", (502, {}, b"<html>")),
            ("a page of something else", (200, {}, b"<html>")),
            ("token not yet known", (401, {}, {"error": "a valid bearer token is required"})),
            ("moved", (302, {"Location": "/login"}, b"")),
            ("no answer", "hang up"),
        ]:
            with self.subTest(name), self.assertLogs("rewardwatch") as logs:
                self.emitter._losses._next_report = 0.0
                self.service.requests.clear()
                self.service.answers = [answer, answer]
                self.emit(1, 2, 3)
                self.assertEqual([event["step"] for event in self.sent()], [1, 2, 3])
                self.assertEqual(len({headers["Idempotency-Key"] for headers, _ in self.service.requests}), 1)
                self.assertGreaterEqual(len(self.service.requests), 3)
                self.assertEqual(self.emitter.lost, 0)
                self.emitter._losses.add(0, "the end of the test")
                self.emitter._losses.report(last=True)
                self.assertRegex(" ".join(logs.output), "HTTP [1-5]|no response from")

    def test_an_answer_says_how_long_to_wait(self):
        self.service.answers = [(503, {"Retry-After": "1"}, {"error": "busy"})]
        began = time.monotonic()
        with self.assertLogs("rewardwatch"):
            self.emit(1)
            self.assertEqual(len(self.sent()), 1)
        self.assertGreaterEqual(time.monotonic() - began, 1.0)

    def test_records_that_are_refused_are_lost_alone(self):
        self.service.answers = [(200, {}, {"accepted": 1, "refused": 2, "refusals": [refusal(0), refusal(2)]})]
        with self.assertLogs("rewardwatch") as logs:
            self.emit(1, 2, 3)
            self.sent()
            self.emitter.close()
        self.assertEqual((self.emitter.lost, len(self.service.requests)), (2, 1))
        self.assertIn("missing_policy: a record must have a policy (2 events lost)", logs.output[0])

    def test_what_is_refused_as_a_whole_is_not_sent_again(self):
        for name, answer, words in [
            ("all records", (400, {}, {"accepted": 0, "refused": 2, "refusals": [refusal(0)]}), "missing_policy"),
            ("the batch", (400, {}, {"error": "the batch cannot be read"}), "the batch cannot be read"),
            ("its size", (413, {}, b"<html>"), "too large"),
        ]:
            with self.subTest(name), self.assertLogs("rewardwatch") as logs, Emitter(url=self.service.url) as emitter:
                self.service.requests.clear()
                self.service.answers = [answer]
                emitter.emit({"policy": "p", "reward": 1})
                emitter.emit({"policy": "p", "reward": 1})
                self.assertEqual(emitter.flush(), 0)
                self.assertEqual((emitter.lost, len(self.service.requests)), (2, 1))
                emitter.close()
                self.assertIn(words, " ".join(logs.output))

    def test_a_batch_is_given_up_and_those_behind_it_are_sent(self):
        self.service.answers = [(503, {}, {"error": "down"})]
        with mock.patch.object(rewardwatch.http, "_PATIENCE", 0.0), self.assertLogs("rewardwatch") as logs:
            self.emit(1)
            self.assertEqual(self.emitter.flush(), 0)
            self.emit(2)
            self.assertEqual(self.emitter.flush(), 0)
            self.emitter.close()
        self.assertEqual((self.service.steps(), self.emitter.lost), ([[1], [2]], 1))
        self.assertIn("HTTP 503: down (1 events lost)", " ".join(logs.output))

    def test_an_error_of_ours_costs_one_batch(self):
        compress = mock.patch.object(rewardwatch.http.gzip, "compress", side_effect=[MemoryError("none left")])
        with compress, mock.patch.object(rewardwatch.http, "_ZIPPED", 0), self.assertLogs("rewardwatch") as logs:
            self.emit(1)
            self.assertEqual(self.emitter.flush(), 0)
            self.assertEqual(self.emitter.lost, 1)
            self.emitter._losses.report(last=True)
        self.emit(2)
        self.assertEqual([event["step"] for event in self.sent()], [2])
        self.assertIn("MemoryError: none left", " ".join(logs.output))

    def test_a_connection_that_was_idle_too_long_is_no_trouble(self):
        for step in (1, 2):
            self.emit(step)
            self.assertEqual(self.emitter.flush(), 0)
            self.service.answers = ["hang up"]
        self.assertEqual(self.service.steps(), [[1], [2], [2]])
        self.assertEqual(self.service.connections, 2)
        self.assertFalse(self.emitter._losses._unreported)

    def test_a_service_that_starts_later_gets_everything(self):
        self.service.end()
        with self.assertLogs("rewardwatch") as logs:
            self.emit(*range(10))
            self.assertEqual(self.emitter.flush(0.3), 10)
            self.service = Service(self.service.server_port)
            self.addCleanup(self.service.end)
            self.assertEqual([event["step"] for event in self.sent()], [*range(10)])
        self.assertIn("no response from http://127.0.0.1", logs.output[0])
        self.assertEqual(self.emitter.lost, 0)

    def test_memory_is_bounded_while_the_service_is_slow(self):
        self.service.held.clear()
        with (
            mock.patch.object(rewardwatch.http, "_ROOM", 10_000),
            mock.patch.object(rewardwatch.emitter, "_HELD", 100),
            Emitter(url=self.service.url, queue=100) as emitter,
            self.assertLogs("rewardwatch"),
        ):
            for _ in range(2):
                for _ in range(1000):
                    emitter.emit({"policy": "p", "reward": 1, "note": "x" * 100})
                self.assertTrue(self.service.arrived.wait(10))
            self.assertGreater(emitter.lost, 1000)
            self.assertLess(emitter._transport._bytes, 30_000)
            lost = emitter.lost
            self.service.held.set()
            self.assertEqual(emitter.flush(), 0)
            self.assertEqual(sum(map(len, self.service.steps())), 2000 - lost)
            emitter.close()

    def test_close_cuts_a_request_off_and_counts_it(self):
        self.service.held.clear()
        self.emit(1, 2)
        self.assertTrue(self.service.arrived.wait(10))
        with self.assertLogs("rewardwatch") as logs:
            began = time.monotonic()
            self.emitter.close(0.4)
            self.emitter._thread.join(5)
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual((self.emitter.lost, self.emitter.waiting), (2, 0))
        self.assertIn("not sent before the emitter was closed (2 events lost)", logs.output[0])
        self.emitter._transport._thread.join(5)
        self.assertFalse(self.emitter._transport._thread.is_alive())

    def test_a_fork_has_a_connection_of_its_own(self):
        self.emit(1)
        self.assertEqual(self.emitter.flush(), 0)
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self.emit(2)
                os._exit(self.emitter.flush(10))
            os._exit(99)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.emit(3)
        self.assertEqual([event["step"] for event in self.sent()], [1, 2, 3])
        self.assertEqual(self.service.connections, 2, "the parent's connection is as it was")
        self.assertFalse(self.emitter._losses._unreported)


class ChoiceTest(unittest.TestCase):
    def test_where_telemetry_goes(self):
        url, other = "http://service:9464", "https://other"
        for given, environment, goes in [
            ({"url": url}, {}, Http(url)),
            ({"url": url}, {"REWARDWATCH_BROKERS": "b:1"}, Http(url)),
            ({"url": other}, {"REWARDWATCH_URL": url}, Http(other)),
            ({}, {"REWARDWATCH_URL": url}, Http(url)),
        ]:
            with self.subTest(given=given, environment=environment), mock.patch.dict("os.environ", environment):
                self.assertEqual(Emitter(**given)._connect, goes)
                copy = pickle.loads(pickle.dumps(goes))
                self.assertEqual((copy, copy.connection().host), (goes, goes.connection().host))

    def test_what_is_wrong_is_said_at_once(self):
        with tempfile.TemporaryDirectory() as directory:
            empty = Path(directory, "empty")
            empty.write_text("\n", encoding="ascii")
            for given, environment, words in [
                ({"url": "service:9464"}, {}, "a URL such as"),
                ({"url": "ftp://service"}, {}, "a URL such as"),
                ({"url": "http://"}, {}, "a URL such as"),
                ({"url": "http://me:secret@service"}, {}, "of service must not contain a user"),
                ({"url": "http://service:port"}, {}, "port"),
                ({"url": "http://service", "brokers": "b:1"}, {}, "cannot be combined"),
                ({"url": "http://service", "topic": "t"}, {}, "cannot be combined"),
                ({}, {"REWARDWATCH_URL": "http://service", "REWARDWATCH_BROKERS": "b:1"}, "cannot be combined"),
                ({"url": "http://service", "token_file": str(empty)}, {}, "contains no token"),
            ]:
                with self.subTest(words), mock.patch.dict("os.environ", environment):
                    self.assertRaisesRegex(ValueError, words, Emitter, **given)
            missing = {"REWARDWATCH_TOKEN_FILE": directory + "/missing"}
            with mock.patch.dict("os.environ", missing), self.assertRaises(FileNotFoundError):
                Emitter(url="http://service")

    def test_http_needs_no_other_package(self):
        script = """
import sys
sys.modules["confluent_kafka"] = None  # as if it were not installed
import rewardwatch
with rewardwatch.Emitter(url=sys.argv[1]) as emitter:
    emitter.emit({"policy": "p", "reward": 1, "step": 7})
try:
    rewardwatch.Emitter("kafka-1:9092")
except ImportError as error:
    print(error)
"""
        service = Service()
        self.addCleanup(service.end)
        command = [sys.executable, "-c", script, service.url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("pip install 'rewardwatch[kafka]'", done.stdout, done.stderr)
        self.assertEqual(service.steps(), [[7]])


if __name__ == "__main__":
    unittest.main()
