import asyncio
import unittest

import numpy as np
from support import KeepingEmitter, named

import rewardwatch


class DecisionsTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def test_what_a_function_returns_is_its_action(self):
        @rewardwatch.decision(self.emitter, policy_version="3", env="prod-eu")
        def rank(basket):
            """Ranks offers."""
            return "offer_b" if basket > 2 else "offer_a"

        self.assertEqual([rank(1), rank(basket=3)], ["offer_a", "offer_b"])
        self.assertEqual((rank.__name__, rank.__doc__), ("rank", "Ranks offers."))
        events = self.emitter.events()
        self.assertEqual(
            named(events, "policy", "policy_version", "env", "action"),
            [("rank", "3", "prod-eu", "offer_a"), ("rank", "3", "prod-eu", "offer_b")],
        )
        self.assertEqual(set(events[0]), {"ts", "policy", "policy_version", "env", "agent_id", "action"})

    def test_the_action_may_be_a_part(self):
        @rewardwatch.decision(self.emitter, action=lambda answer: answer["price"], policy="pricing")
        def price():
            return {"price": np.float32(9.5), "currency": "EUR"}

        self.assertEqual(price()["currency"], "EUR")
        self.assertEqual(named(self.emitter.events(), "policy", "action"), [("pricing", 9.5)])

    def test_coroutines(self):
        @rewardwatch.decision(self.emitter)
        async def route(request):
            await asyncio.sleep(0)
            return "large" if request else "small"

        self.assertTrue(asyncio.iscoroutinefunction(route))
        self.assertEqual(asyncio.run(route(1)), "large")
        self.assertEqual(named(self.emitter.events(), "action"), [("large",)])

    def test_what_cannot_be_sent_does_not_reach_the_caller(self):
        class Answer:
            pass

        with self.assertLogs("rewardwatch") as logs:
            for action in (None, lambda answer: answer.missing):
                decide = rewardwatch.decision(self.emitter, action=action)(lambda: Answer())
                self.assertIsInstance(decide(), Answer)
            self.emitter.close()
        self.assertEqual(self.emitter.lost, 2)
        for words in ("action is <", "has no attribute 'missing'"):
            self.assertIn(words, " ".join(logs.output))

    def test_its_own_errors_are_the_callers(self):
        @rewardwatch.decision(self.emitter)
        def fail():
            raise KeyError("basket")

        with self.assertRaises(KeyError):
            fail()
        self.assertEqual((self.emitter.events(), self.emitter.lost), ([], 0))


if __name__ == "__main__":
    unittest.main()
