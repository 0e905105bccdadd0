import tempfile
import unittest
from pathlib import Path

import gymnasium
import numpy as np
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize
from support import Corridor, KeepingEmitter, ToFiles

import rewardwatch
from rewardwatch.stable_baselines3 import RewardwatchCallback

STEPS = 64


def short_cart_pole():
    return gymnasium.make("CartPole-v1", max_episode_steps=20)


def learner(kind, env):
    if kind is PPO:
        return PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=1)
    return DQN("MlpPolicy", env, learning_starts=0, seed=1)


class StableBaselines3Test(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def check_episodes(self, events, lanes, steps=STEPS):
        """The events of CartPole, whose reward is 1 a step, are whole episodes."""
        self.assertEqual(len(events), steps)
        self.assertEqual(len({e["agent_id"] for e in events}), lanes)
        self.assertEqual({e["reward"] for e in events}, {1.0})
        self.assertEqual({e["action"] for e in events}, {0, 1})
        for agent in {e["agent_id"] for e in events}:
            expected, episode = 0, None
            for e in (e for e in events if e["agent_id"] == agent):
                self.assertEqual(e["step"], expected)
                self.assertEqual(e["episode_id"] == episode, expected > 0)
                ended = e["terminated"] or e["truncated"]
                self.assertEqual(e["truncated"], e["step"] == 19 and not e["terminated"])
                expected, episode = (0 if ended else expected + 1), e["episode_id"]

    def test_wrapped_vec_envs(self):
        for kind in (DummyVecEnv, SubprocVecEnv):
            with self.subTest(kind.__name__):
                self.emitter.kept.messages.clear()
                env = rewardwatch.wrap(kind([short_cart_pole] * 4), self.emitter, policy="p", observations=True)
                learner(PPO, env).learn(STEPS)
                env.close()
                events = self.emitter.events()
                self.check_episodes(events, 4)
                first = [e for e in events if e["step"] == 0]
                self.assertTrue(all(np.abs(e["observation"]).max() <= 0.05 for e in first), "it is that of the reset")

    def test_wrapped_environments_in_a_vec_env(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        files = ToFiles(Path(directory.name))
        emitter = rewardwatch.Emitter(connect=files)
        self.addCleanup(emitter.close)
        for kind, processes in ((DummyVecEnv, 1), (SubprocVecEnv, 4)):
            with self.subTest(kind.__name__):
                before = set(files.events())
                env = kind([lambda: rewardwatch.wrap(short_cart_pole(), emitter, policy="p")] * 4)
                learner(PPO, env).learn(STEPS)
                env.close()
                emitter.flush()
                new = {pid: events for pid, events in files.events().items() if pid not in before}
                self.assertEqual(len(new), processes)
                self.check_episodes([e for events in new.values() for e in events], 4)

    def test_callback(self):
        for kind in (PPO, DQN):
            with self.subTest(kind.__name__):
                self.emitter.kept.messages.clear()
                callback = RewardwatchCallback(self.emitter, policy="p", observations=True)
                learner(kind, DummyVecEnv([short_cart_pole] * 4)).learn(STEPS, callback=callback)
                self.check_episodes(self.emitter.events(), 4)

    def test_episodes_go_on_where_learning_does(self):
        callback = RewardwatchCallback(self.emitter, policy="p")
        model = learner(PPO, DummyVecEnv([short_cart_pole] * 4))
        for _ in range(2):
            model.learn(STEPS, callback=callback, reset_num_timesteps=False)
        self.check_episodes(self.emitter.events(), 4, 2 * STEPS)

    def test_callback_tells_what_was_before_normalisation(self):
        env = VecNormalize(DummyVecEnv([lambda: Corridor(length=3)] * 2))
        callback = RewardwatchCallback(self.emitter, policy="p", observations=True)
        learner(PPO, env).learn(STEPS, callback=callback)
        for e in self.emitter.events():
            self.assertEqual((e["reward"], e["observation"]), (e["step"] + 1.0, [float(e["step"])]))

    def test_outcomes(self):
        env = rewardwatch.wrap(
            DummyVecEnv([lambda: Corridor({"outcomes": {"conversion": 1}}), Corridor]), self.emitter, policy="p"
        )
        env.reset()
        env.step(np.array([1, 1]))
        self.assertEqual([e.get("outcomes") for e in self.emitter.events()], [{"conversion": 1}, None])

    def test_images_are_refused(self):
        class Seeing(Corridor):
            observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 3), np.uint8)

        with self.assertRaisesRegex(ValueError, "21168 numbers"):
            rewardwatch.wrap(DummyVecEnv([Seeing]), self.emitter, policy="p", observations=True)


if __name__ == "__main__":
    unittest.main()
