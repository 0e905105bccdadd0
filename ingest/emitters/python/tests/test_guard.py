"""Guards, read from a service that answers as it is told to."""

import http.server
import json
import subprocess
import sys
import threading
import time
import timeit
import unittest
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from rewardwatch.guard import Guard


class Service(http.server.ThreadingHTTPServer):
    """Serves a state with its tag, and waits for another one where it is asked to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.changed = threading.Condition()
        self.document = {"state": "ok", "max_age_seconds": 60, "on_silence": "hold", "seq": 0}
        self.paths = []
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def set(self, **fields):
        with self.changed:
            self.document = self.document | fields | {"seq": self.document["seq"] + 1}
            self.changed.notify_all()

    def tag(self):
        return '"{}"'.format(self.document["seq"])

    def handle_error(self, request, client_address):
        pass

    def end(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        service = self.server
        parts = urlsplit(self.path)
        wait = float(parse_qs(parts.query).get("wait", ["0s"])[0].rstrip("s"))
        known = self.headers.get("If-None-Match")
        with service.changed:
            service.paths.append(parts.path)
            service.changed.wait_for(lambda: service.tag() != known, wait)
            status = 304 if known == service.tag() else service.status
            body = json.dumps(service.document).encode() if status == 200 else b""
            tag = service.tag()
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def eventually(check, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if check():
            return True
        time.sleep(0.005)
    return False


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.end)

    def guard(self, **options):
        guard = Guard("a policy/1", url=self.service.url, **options)
        self.addCleanup(guard.close)
        return guard

    def test_follows_the_state(self):
        guard = self.guard(unsafe=["drop"], safe=["keep"])
        self.assertTrue(guard.wait(20))
        self.assertEqual(self.service.paths[0], "/api/v1/guards/a%20policy%2F1")
        self.assertTrue(guard.exploration() and guard.allows("drop"))
        self.service.set(state="hold")
        self.assertTrue(eventually(lambda: guard.state == "hold"))
        self.assertFalse(guard.exploration() or guard.allows("drop"))
        self.assertTrue(guard.allows("else") and guard.allows("keep") and guard.allows([0.5]))
        self.service.set(state="fallback")
        self.assertTrue(eventually(lambda: guard.state == "fallback"))
        self.assertFalse(guard.allows("else") or guard.allows("drop") or guard.allows([0.5]))
        self.assertTrue(guard.allows("keep"))
        self.service.set(state="ok")
        self.assertTrue(eventually(guard.exploration))

    def test_a_change_is_known_at_once(self):
        guard = self.guard()
        self.assertTrue(guard.wait(20))
        self.assertTrue(eventually(lambda: len(self.service.paths) > 1))
        began = time.monotonic()
        self.service.set(state="hold")
        self.assertTrue(eventually(lambda: guard.state == "hold"))
        self.assertLess(time.monotonic() - began, 5)  # and not after the 20 seconds of a poll

    def test_silence(self):
        for said, state in (("keep", "ok"), ("hold", "hold"), ("fallback", "fallback")):
            with self.subTest(said):
                self.service.set(state="warn", max_age_seconds=1.5, on_silence=said)
                self.service.status = 200
                guard = self.guard()
                self.assertTrue(eventually(lambda g=guard: g.state == "warn"))
                time.sleep(3)
                self.assertEqual(guard.state, "warn")  # 304 keeps it alive, also on a busy machine
                self.service.status = 503
                self.service.set()
                self.assertTrue(eventually(lambda g=guard, s=state: g.state == s))
                self.service.status = 200
                self.assertTrue(eventually(lambda g=guard: g.state == "warn", 30))
                guard.close()

    def test_a_killed_service(self):
        program = (
            "import sys, test_guard; service = test_guard.Service(); "
            "service.set(state='warn', max_age_seconds=2, on_silence=sys.argv[1]); "
            "print(service.url, flush=True); sys.stdin.read()"
        )
        for said, state in (("keep", "ok"), ("hold", "hold"), ("fallback", "fallback")):
            with self.subTest(said):
                command = [sys.executable, "-c", program, said]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                with subprocess.Popen(command, text=True, cwd=Path(__file__).parent, **pipes) as service:
                    self.addCleanup(service.kill)
                    guard = Guard("p", url=service.stdout.readline().strip())
                    self.addCleanup(guard.close)
                    self.assertTrue(eventually(lambda g=guard: g.state == "warn"))
                    service.kill()
                    killed = time.monotonic()
                    self.assertTrue(eventually(lambda g=guard, s=state: g.state == s))
                    self.assertLess(time.monotonic() - killed, 2 + 2)  # a busy machine may take longer than max_age

    def test_before_the_first_answer(self):
        self.service.status = 503
        self.assertEqual(self.guard(on_silence="fallback").state, "fallback")
        self.assertEqual(self.guard().state, "hold")
        self.assertEqual(self.guard(on_silence="keep").state, "ok")

    def test_a_wrong_answer_is_no_state(self):
        self.service.set(state="anything goes")
        guard = self.guard(on_silence="fallback")
        self.assertFalse(guard.wait(1))
        self.assertEqual(guard.state, "fallback")

    def test_refuses_what_it_cannot_follow(self):
        for options in ({"url": "ftp://x"}, {"url": "http://u@x"}, {"on_silence": "stop"}):
            with self.subTest(options), self.assertRaises(ValueError):
                Guard("p", **{"url": self.service.url, **options})

    def test_asking_takes_no_time(self):
        guard = self.guard(unsafe=["drop"])
        self.assertTrue(guard.wait(20))
        for ask in (guard.exploration, lambda: guard.allows("drop")):
            took = min(timeit.repeat(ask, number=10_000, repeat=20)) / 10_000
            self.assertLess(took, 2e-6)


if __name__ == "__main__":
    unittest.main()
