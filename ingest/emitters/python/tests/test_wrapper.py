import unittest

import gymnasium
import numpy as np

from rewardwatch_emitter import RewardwatchWrapper


class Events(list):
    """An emitter that keeps its events."""

    def emit(self, event):
        self.append(event)
        return True


class Corridor(gymnasium.Env):
    """Three steps to the right. It writes each observation into the same memory."""

    observation_space = gymnasium.spaces.Box(0, 3, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, info=None):
        self.place = np.zeros(1, dtype=np.float32)
        self.info = info or {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place[0] = 0
        return self.place, {}

    def step(self, action):
        self.place[0] += 1
        return self.place, float(self.place[0]), self.place[0] == 3, False, self.info


def walk(env, actions):
    env.reset()
    for action in actions:
        env.step(action)


class WrapperTest(unittest.TestCase):
    def test_steps_of_an_episode(self):
        events = Events()
        env = RewardwatchWrapper(
            Corridor(),
            events,
            policy="walker",
            policy_version="3",
            env_version="41",
            reward_version="r7",
            env_name="corridor",
            agent_id="a-1",
            labels={"region": "eu"},
        )
        walk(env, [1, 0, np.int64(1)])
        episodes = {e.pop("episode_id") for e in events}
        self.assertEqual(len(episodes), 1)
        self.assertTrue(episodes.pop().startswith("a-1/"))
        times = [e.pop("ts") for e in events]
        self.assertEqual(times, sorted(times))
        fixed = {
            "policy": "walker",
            "policy_version": "3",
            "env": "corridor",
            "env_version": "41",
            "reward_version": "r7",
            "agent_id": "a-1",
            "labels": {"region": "eu"},
            "truncated": False,
        }
        self.assertEqual(
            events,
            [
                {**fixed, "step": 0, "action": 1, "reward": 1.0, "terminated": False},
                {**fixed, "step": 1, "action": 0, "reward": 2.0, "terminated": False},
                {**fixed, "step": 2, "action": 1, "reward": 3.0, "terminated": True},
            ],
        )

    def test_what_is_not_known_is_left_out(self):
        events = Events()
        walk(RewardwatchWrapper(Corridor(), events, policy="walker"), [1])
        self.assertEqual(
            set(events[0]),
            {"ts", "policy", "agent_id", "episode_id", "step", "action", "reward", "terminated", "truncated"},
        )

    def test_the_name_of_a_registered_environment(self):
        events = Events()
        walk(RewardwatchWrapper(gymnasium.make("CartPole-v1"), events, policy="p"), [1])
        self.assertEqual(events[0]["env"], "CartPole-v1")

    def test_episodes_and_environments_are_told_apart(self):
        events = Events()
        for env in (RewardwatchWrapper(Corridor(), events, policy="p", agent_id="same") for _ in range(2)):
            walk(env, [1, 1, 1])
            walk(env, [1, 1, 1])
        self.assertEqual(len({e["episode_id"] for e in events}), 4)
        self.assertEqual([e["step"] for e in events], [0, 1, 2] * 4)

    def test_observation_is_the_one_that_was_acted_on(self):
        events = Events()
        walk(RewardwatchWrapper(Corridor(), events, policy="p", observations=True), [1, 1, 1])
        self.assertEqual([e["observation"] for e in events], [[0.0], [1.0], [2.0]])

    def test_observation_of_names(self):
        class Named(Corridor):
            def reset(self, **kwargs):
                return {"speed": np.float32(0.5), "arm": np.array([1, 2]), "goal": {"x": 3}}, {}

        events = Events()
        walk(RewardwatchWrapper(Named(), events, policy="p", observations=True), [1])
        self.assertEqual(events[0]["observation"], {"speed": 0.5, "arm.0": 1, "arm.1": 2, "goal.x": 3})

    def test_outcomes_and_components_come_from_info(self):
        info = {"outcomes": {"conversion": 1}, "reward_components": {"click": 0.5}, "lives": 2}
        events = Events()
        walk(RewardwatchWrapper(Corridor(info), events, policy="p"), [1])
        self.assertEqual(events[0]["outcomes"], {"conversion": 1})
        self.assertEqual(events[0]["reward_components"], {"click": 0.5})
        self.assertNotIn("lives", events[0])

    def test_versions_change_from_the_next_step_on(self):
        events = Events()
        env = RewardwatchWrapper(Corridor(), events, policy="p", policy_version="1", env_version="41")
        walk(env, [1])
        env.set_versions(policy_version=2, env_version=None)
        env.step(1)
        self.assertEqual([e.get("policy_version") for e in events], ["1", "2"])
        self.assertEqual([e.get("env_version") for e in events], ["41", None])
        with self.assertRaises(TypeError):
            env.set_versions(environment="42")


if __name__ == "__main__":
    unittest.main()
