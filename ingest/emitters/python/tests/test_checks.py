import json
import unittest
from pathlib import Path

from rewardwatch.checks import Refused, check, check_name


class ChecksTest(unittest.TestCase):
    def test_what_the_service_refuses_is_refused(self):
        """A test of the service reads the same events."""
        for case in json.loads(Path(__file__).with_name("events.json").read_text()):
            with self.subTest(case["event"]):
                if "refused" not in case:
                    check(case["event"])
                    continue
                with self.assertRaisesRegex(Refused, case["refused"]):
                    check(case["event"])

    def test_bounds(self):
        numbers = [0.5] * 1024
        for event, refused in [
            ({"observation": numbers}, False),
            ({"observation": [*numbers, 1]}, True),
            ({"observation": {str(i): i for i in range(1024)} | {"note": "a text"}}, False),
            ({"observation": {str(i): i for i in range(1025)}}, True),
            ({"observation": numbers, "outcomes": {"a": 1}}, True),
            ({"agent_id": "é" * 512}, False),
            ({"agent_id": "é" * 513}, True),
            ({"labels": {str(i): "x" for i in range(64)}}, False),
            ({"labels": {str(i): "x" for i in range(65)}}, True),
            ({"env": "\ud800"}, True),
        ]:
            with self.subTest(str(event)[:60]):
                if not refused:
                    check({"policy": "p", "reward": 1, **event})
                    continue
                with self.assertRaises(Refused):
                    check({"policy": "p", "reward": 1, **event})

    def test_reasons(self):
        with self.assertRaisesRegex(Refused, "^step is -1: expected a whole number of at least 0$"):
            check({"policy": "p", "reward": 1, "step": -1})
        expected = "^key is .*: expected a string of at most 1024 bytes in UTF-8, without NUL$"
        with self.assertRaisesRegex(ValueError, expected):
            check_name("key", "a\0b")


if __name__ == "__main__":
    unittest.main()
