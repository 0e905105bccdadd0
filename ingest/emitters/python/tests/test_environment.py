import copy
import pickle
import unittest

import gymnasium
import numpy as np
from gymnasium import spaces
from support import Corridor, KeepingEmitter, named, walk

import rewardwatch


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def walked(self, env, /, actions=(1,), **options):
        walk(rewardwatch.wrap(env, self.emitter, **{"policy": "p", **options}), actions)
        return self.emitter.events()

    def test_steps_of_an_episode(self):
        names = {
            "policy": "walker",
            "policy_version": "3",
            "env": "corridor",
            "env_version": "41",
            "reward_version": "r7",
            "agent_id": "a-1",
            "labels": {"region": "eu"},
        }
        events = self.walked(Corridor(), [1, 0, np.int64(1)], **names)
        episodes = {e.pop("episode_id") for e in events}
        self.assertEqual(len(episodes), 1)
        self.assertTrue(episodes.pop().startswith("a-1/"))
        times = [e.pop("ts") for e in events]
        self.assertEqual(times, sorted(times))
        fixed = {**names, "truncated": False}
        self.assertEqual(
            events,
            [
                {**fixed, "step": 0, "action": 1, "reward": 1.0, "terminated": False},
                {**fixed, "step": 1, "action": 0, "reward": 2.0, "terminated": False},
                {**fixed, "step": 2, "action": 1, "reward": 3.0, "terminated": True},
            ],
        )

    def test_what_is_not_known_is_left_out(self):
        (event,) = self.walked(Corridor())
        self.assertEqual(
            set(event),
            {"ts", "policy", "agent_id", "episode_id", "step", "action", "reward", "terminated", "truncated"},
        )

    def test_a_registered_environment_has_names(self):
        walk(rewardwatch.wrap(gymnasium.make("CartPole-v1"), self.emitter), [1])
        self.assertEqual(named(self.emitter.events(), "policy", "env"), [("CartPole-v1", "CartPole-v1")])

    def test_names_that_cannot_be_sent_are_refused(self):
        for env, names, words in [
            (Corridor(), {}, "pass policy="),
            (Corridor(), {"policy": ""}, "needs a policy"),
            (Corridor(), {"policy": "p" * 2000}, "1024 bytes"),
            (Corridor(), {"policy": "p", "labels": {str(i): "x" for i in range(65)}}, "64"),
            (Corridor(), {"policy": "p", "polcy_version": "3"}, "polcy_version"),
            (object(), {"policy": "p"}, "not an environment"),
        ]:
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError), words):
                rewardwatch.wrap(env, self.emitter, **names)

    def test_episodes_and_environments_have_ids_of_their_own(self):
        for env in [rewardwatch.wrap(Corridor(), self.emitter, policy="p", agent_id="same") for _ in range(2)]:
            walk(env, [1, 1, 1])
            walk(env, [1, 1, 1])
        events = self.emitter.events()
        self.assertEqual(len({e["episode_id"] for e in events}), 4)
        self.assertEqual([e["step"] for e in events], [0, 1, 2] * 4)

    def test_copies_are_agents_of_their_own(self):
        env = rewardwatch.wrap(Corridor(), self.emitter, policy="p")
        for each in (env, pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
            walk(each, [1])
        events = self.emitter.events()
        self.assertEqual(len(events), 3, "a copy of an emitter in its process is the emitter")
        self.assertEqual(len({e["agent_id"] for e in events}), 3)
        self.assertEqual(len({e["episode_id"] for e in events}), 3)

    def test_observation_is_the_one_that_was_acted_on(self):
        events = self.walked(Corridor(), [1, 1, 1], observations=True)
        self.assertEqual([e["observation"] for e in events], [[0.0], [1.0], [2.0]])

    def test_what_the_agent_writes_later_is_not_sent(self):
        class Forced(Corridor):
            action_space = spaces.Box(-1, 1, (2,))

        env = rewardwatch.wrap(Forced(), self.emitter, policy="p")
        env.reset()
        action = np.zeros(2)
        for i in range(3):
            action[:] = i
            env.step(action)
        action[:] = 9
        self.assertEqual([e["action"] for e in self.emitter.events()], [[0, 0], [1, 1], [2, 2]])

    def test_outcomes_and_components_come_from_info(self):
        info = {"outcomes": {"conversion": np.int64(1)}, "reward_components": {"click": 0.5}, "lives": 2}
        (event,) = self.walked(Corridor(info))
        self.assertEqual(event["outcomes"], {"conversion": 1})
        self.assertEqual(event["reward_components"], {"click": 0.5})
        self.assertNotIn("lives", event)

    def test_what_the_service_would_refuse_is_lost_and_logged(self):
        many = dict.fromkeys(map(str, range(1100)), 1)
        for info in [{"outcomes": {"click": "yes"}}, {"outcomes": 1}, {"outcomes": many}]:
            with self.subTest(info=str(info)[:40]), self.assertLogs("rewardwatch") as logs:
                emitter = KeepingEmitter()
                walk(rewardwatch.wrap(Corridor(info), emitter, policy="p"), [1, 1])
                emitter.close()
                self.assertEqual(emitter.lost, 2)
                self.assertIn("Refused", logs.output[0])

    def test_rewards_of_every_kind(self):
        class Paid(Corridor):
            def step(self, action):
                return self.place, self.info["reward"], False, False, {}

        for given, sent in [
            (np.float32(0.5), 0.5),
            (np.array([0.5]), 0.5),
            (np.array(2), 2),
            (True, 1),
            (float("nan"), "NaN"),
            (np.float32("-inf"), "-Infinity"),
        ]:
            with self.subTest(given=given):
                self.assertEqual(self.walked(Paid({"reward": given}))[-1]["reward"], sent)

    def test_a_failure_inside_does_not_reach_the_agent(self):
        def summary(observation):
            if observation[0] > 0:
                raise RuntimeError("no summary")
            return {"place": observation[0]}

        env = Corridor()
        env.observation_space = spaces.Box(0, 0, (1,))
        with self.assertLogs("rewardwatch") as logs:
            env = rewardwatch.wrap(env, self.emitter, policy="p", observations=summary)
            walk(env, [1, 1])
            self.emitter.close()
        self.assertIn("no summary", logs.output[0])
        self.assertEqual(env.unwrapped.place[0], 2)

    def test_versions_change_from_the_next_step_on(self):
        env = rewardwatch.wrap(Corridor(), self.emitter, policy="p", policy_version="1", env_version="41")
        walk(env, [1])
        env.set_versions(policy_version=2, env_version=None)
        env.step(1)
        env.reset()
        env.step(1)
        events = self.emitter.events()
        self.assertEqual(named(events, "policy_version", "env_version"), [("1", "41"), ("2", None), ("2", None)])
        self.assertEqual(len({e["agent_id"] for e in events}), 1)
        with self.assertRaises(TypeError):
            env.set_versions(environment="42")


if __name__ == "__main__":
    unittest.main()
