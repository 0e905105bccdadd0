import asyncio
import unittest
import uuid
from unittest import mock

import numpy as np
from support import KeepingEmitter, named

import rewardwatch
import rewardwatch.source


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


class FeedbackTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def keys(self):
        self.emitter.events()
        return [key for key, events in self.emitter.kept.messages for _ in events]

    def test_a_decision_and_its_feedback_share_their_key(self):
        for key_field, field in [("episode_id", "episode_id"), ("agent_id", "agent_id"), ("labels.request", "labels")]:
            with self.subTest(key_field):

                @rewardwatch.decision(
                    self.emitter, policy="shop", key="request", key_field=key_field, labels={"a": "b"}
                )
                def rank(basket, request):
                    return "offer_a"

                self.assertEqual(rank(3, "r-1"), "offer_a")
                options = {"policy": "shop", "key_field": key_field}
                self.emitter.feedback("r-1", 1, outcomes={"paid": np.float32(9.5)}, **options)
                rewardwatch.feedback("r-1", outcomes={"paid": 3}, emitter=self.emitter, ts=1795168800.5, **options)
                decided, *told = self.emitter.events()[-3:]
                label = field == "labels"
                self.assertEqual(decided[field], {"a": "b", "request": "r-1"} if label else "r-1")
                self.assertEqual([event.pop(field) for event in told], [{"request": "r-1"} if label else "r-1"] * 2)
                self.assertEqual(decided["action"], "offer_a")
                self.assertGreaterEqual(told[0].pop("ts"), decided["ts"])
                self.assertEqual(
                    told,
                    [
                        {"policy": "shop", "reward": 1, "outcomes": {"paid": 9.5}},
                        {"policy": "shop", "outcomes": {"paid": 3}, "ts": 1795168800.5},
                    ],
                )
        self.assertEqual(self.keys(), ["r-1"] * 9, "messages of one key are in one partition")

    def test_where_a_key_comes_from(self):
        unique = uuid.uuid4()

        def rank(first, second="default", *, third=None):
            return {"offer": "a", "id": unique}

        for key, args, kwargs, found in [
            ("first", (1,), {}, "1"),
            ("first", (), {"first": 2}, "2"),
            ("second", (1, "given"), {}, "given"),
            ("second", (1,), {}, "default"),
            ("third", (1, 2), {"third": "named"}, "named"),
            (lambda answer: answer["id"], (1,), {}, str(unique)),
        ]:
            with self.subTest(key=key, args=args, kwargs=kwargs):
                watched = rewardwatch.decision(self.emitter, action=lambda answer: answer["offer"], key=key)(rank)
                watched(*args, **kwargs)
                self.assertEqual(self.emitter.events()[-1]["episode_id"], found)

    def test_methods_and_coroutines_have_keys(self):
        class Ranker:
            @rewardwatch.decision(self.emitter, policy="shop", key="request")
            async def rank(self, request):
                return "offer_a"

        asyncio.run(Ranker().rank("r-7"))
        self.assertEqual(named(self.emitter.events(), "episode_id", "action"), [("r-7", "offer_a")])

    def test_what_is_wrong_is_said_where_the_function_is_decorated(self):
        for options, words in [
            ({"key": "basket"}, "has no parameter 'basket'"),
            ({"key": "args"}, "has no parameter 'args'"),
            ({"key": "request", "key_field": "labels."}, "episode_id, agent_id or labels.<name>"),
            ({"key": "request", "key_field": "session"}, "episode_id, agent_id or labels.<name>"),
        ]:
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, words):
                rewardwatch.decision(self.emitter, **options)(lambda request, *args: request)

    def test_what_cannot_be_joined_is_lost_and_said(self):
        rank = rewardwatch.decision(self.emitter, policy="shop", key="request")(lambda request: "a")
        with self.assertLogs("rewardwatch") as logs:
            rank(None)
            self.emitter.feedback("", 1, policy="shop")
            self.emitter.feedback("r-1", policy="shop")
            self.emitter.feedback("r-1", "much", policy="shop")
            self.emitter.feedback("r-1", 1, policy="shop", key_field="session")
            self.emitter.emit({"policy": "shop", "episode_id": "r-1", "reward": 1}, key="r-1")
            self.assertEqual(self.keys(), ["r-1"])
            self.emitter.close()
        self.assertEqual(self.emitter.lost, 5)
        for words in ("must not be empty", "needs one of reward", "reward is 'much'", "not 'session'"):
            self.assertIn(words, " ".join(logs.output))

    def test_the_emitter_of_the_process_is_the_default(self):
        with mock.patch.object(rewardwatch.source, "_defaults", [self.emitter]):
            rewardwatch.feedback("r-1", 1, policy="shop")
        self.assertEqual(named(self.emitter.events(), "episode_id", "reward"), [("r-1", 1)])


if __name__ == "__main__":
    unittest.main()
