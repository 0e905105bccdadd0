"""The callback, with as much of Stable-Baselines3 as it uses: the library itself needs gigabytes (tests/agents)."""

import sys
import types
import unittest
from unittest import mock

import numpy as np
from support import Corridor, KeepingEmitter


class BaseCallback:
    """Takes what a model tells of its learning."""


class VecEnv:
    action_space, observation_space = Corridor.action_space, Corridor.observation_space

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def observed(self):
        return np.zeros((self.num_envs, 1), np.float32)


class Model:
    """Resets its environments as that of Stable-Baselines3 does, and takes two steps of them."""

    def __init__(self, env):
        self.num_timesteps = 0
        self.set_env(env)

    def set_env(self, env):
        self.env, self._last_obs = env, None

    def get_vec_normalize_env(self):
        return None

    def learn(self, callback, reset_num_timesteps=True):
        count = self.env.num_envs
        if reset_num_timesteps:
            self.num_timesteps = 0
        if reset_num_timesteps or self._last_obs is None:
            self._last_obs = self.env.observed()
            self._last_episode_starts = np.ones(count, np.bool_)
        callback.model, callback.training_env = self, self.env
        callback._on_training_start()
        for _ in range(2):
            callback.locals = {
                "dones": np.zeros(count, np.bool_),
                "infos": [{}] * count,
                "rewards": np.ones(count),
                "new_obs": self.env.observed(),
                "actions": np.zeros(count, np.int64),
            }
            self.num_timesteps += count
            callback._on_step()
            self._last_obs, self._last_episode_starts = callback.locals["new_obs"], callback.locals["dones"]


def library():
    names = {
        "stable_baselines3": {},
        "stable_baselines3.common": {},
        "stable_baselines3.common.callbacks": {"BaseCallback": BaseCallback},
        "stable_baselines3.common.vec_env": {"VecEnv": VecEnv, "VecEnvWrapper": VecEnv},
    }
    modules = {name: types.ModuleType(name) for name in names}
    for name, module in modules.items():
        vars(module).update(names[name])
    return modules


class CallbackTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)
        modules = mock.patch.dict(sys.modules, library())
        modules.start()
        self.addCleanup(modules.stop)
        from rewardwatch.stable_baselines3 import RewardwatchCallback

        self.callback = RewardwatchCallback(self.emitter, policy="p", agent_id="a")
        self.model = Model(VecEnv(2))

    def steps(self):
        """The numbers of the steps of each of the first lane's episodes, in order."""
        events = [e for e in self.emitter.events() if e["agent_id"] == "a/0"]
        ids = [(e["episode_id"], e["step"]) for e in events]
        self.assertEqual(len(ids), len(set(ids)), "no id comes again")
        episodes = {}
        for episode, step in ids:
            episodes.setdefault(episode, []).append(step)
        return [*episodes.values()]

    def test_learning_from_the_beginning_again_gives_new_ids(self):
        for _ in range(3):
            self.model.learn(self.callback)
        self.assertEqual(self.steps(), [[0, 1]] * 3)

    def test_learning_goes_on_in_the_open_episodes(self):
        self.model.learn(self.callback)
        self.model.learn(self.callback, reset_num_timesteps=False)
        self.assertEqual(self.steps(), [[0, 1, 2, 3]])

    def test_environments_that_were_set_begin_episodes(self):
        self.model.learn(self.callback)
        self.model.set_env(VecEnv(2))
        self.model.learn(self.callback, reset_num_timesteps=False)
        self.assertEqual(self.steps(), [[0, 1]] * 2)

    def test_another_number_of_environments(self):
        self.model.learn(self.callback)
        Model(VecEnv(3)).learn(self.callback)
        self.assertEqual(self.steps(), [[0, 1]] * 2)
        self.assertEqual(len({e["agent_id"] for e in self.emitter.events()}), 3)


if __name__ == "__main__":
    unittest.main()
