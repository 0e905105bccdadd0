import pickle
import unittest
from unittest import mock

from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv, make
from pettingzoo.test import api_test, parallel_api_test
from pettingzoo.utils import parallel_to_aec
from support import KeepingEmitter, named

import rewardwatch

STEPS = spaces.Discrete(3)


class Race(ParallelEnv):
    """The hare is there after two steps, the tortoise after four. A step costs 1, and each has a space of its own."""

    metadata = {"name": "race_v0", "is_parallelizable": True}
    possible_agents = ["hare", "tortoise"]
    spaces = {"hare": spaces.Discrete(10), "tortoise": spaces.Box(-10, 10, (1,))}

    def observation_space(self, agent):
        return self.spaces[agent]

    def action_space(self, agent):
        return STEPS

    def reset(self, seed=None, options=None):
        self.agents = list(self.possible_agents)
        self.now = 0
        return self.observed(), {agent: {} for agent in self.agents}

    def observed(self):
        return {a: self.now if a == "hare" else self.spaces[a].low + self.now for a in self.agents}

    def step(self, actions):
        self.now += 1
        observed = self.observed()
        terminated = {a: self.now >= {"hare": 2, "tortoise": 4}[a] for a in self.agents}
        told = (
            {a: -1.0 for a in self.agents},
            terminated,
            {a: False for a in self.agents},
            {a: {"outcomes": {"arrived": terminated[a]}} for a in self.agents},
        )
        self.agents = [a for a in self.agents if not terminated[a]]
        return observed, *told


class PettingZooTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def wrapped(self, env, **options):
        return rewardwatch.wrap(env, self.emitter, agent_id="a", **options)

    def of(self, agent):
        return [e for e in self.emitter.events() if e["agent_id"] == f"a/{agent}"]

    def race(self, env, rounds=1):
        for _ in range(rounds):
            env.reset(seed=1)
            while env.agents:
                env.step({agent: 1 for agent in env.agents})

    def test_agents_of_a_parallel_environment(self):
        self.race(self.wrapped(Race(), observations=True, labels={"region": "eu"}), rounds=2)
        hare = self.of("hare")
        self.assertEqual(
            named(hare, "policy", "env", "step", "observation", "reward", "terminated")[:2],
            [("race_v0", "race_v0", 0, 0, -1.0, False), ("race_v0", "race_v0", 1, 1, -1.0, True)],
        )
        self.assertEqual(hare[1]["outcomes"], {"arrived": True})
        self.assertEqual(hare[0]["labels"], {"region": "eu", "agent": "hare"})
        self.assertEqual(len({e["episode_id"] for e in hare}), 2)
        self.assertEqual([e["observation"] for e in self.of("tortoise")], [[-10.0], [-9.0], [-8.0], [-7.0]] * 2)

    def test_agents_that_take_turns_get_the_reward_until_their_next(self):
        env = self.wrapped(parallel_to_aec(Race()), observations=True, policy="p")
        for _ in range(2):
            env.reset(seed=1)
            for _agent in env.agent_iter():
                _, _, terminated, truncated, _ = env.last()
                env.step(None if terminated or truncated else 1)
        for agent, length in (("hare", 2), ("tortoise", 4)):
            steps = [(step, 1, -1.0, step == length - 1) for step in range(length)]
            self.assertEqual(named(self.of(agent), "step", "action", "reward", "terminated"), steps * 2)
        self.assertEqual([e["observation"] for e in self.of("hare")], [0, 1, 0, 1])

    def test_a_game(self):
        env = self.wrapped(make("aec", "classic/tictactoe-v3"), policy="p")
        env.reset(seed=1)
        for action in (0, 1, 3, 4, 6):  # the first player wins in the left column
            env.step(action)
        env.reset(seed=2)
        self.assertEqual(named(self.of("player_1"), "action", "reward"), [(0, 0), (3, 0), (6, 1)])
        self.assertEqual(named(self.of("player_2"), "action", "reward"), [(1, 0), (4, -1)])
        self.assertTrue(all(self.of(player)[-1]["terminated"] for player in ("player_1", "player_2")))

    def test_an_agent_that_comes_later_has_an_episode(self):
        class Late(Race):
            def reset(self, seed=None, options=None):
                super().reset()
                self.agents = ["tortoise"]
                return {"tortoise": self.observed()["tortoise"]}, {}

            def step(self, actions):
                stepped = super().step(actions)
                if self.now == 1:
                    self.agents.append("hare")
                    stepped[0]["hare"] = 1
                return stepped

        self.race(self.wrapped(Late(), observations=True), rounds=2)
        self.assertEqual(named(self.of("hare"), "step", "observation"), [(0, 1), (0, 1)])
        self.assertEqual([e["episode_id"][-2:] for e in self.of("hare")], ["/0", "/1"])

    def test_an_agent_that_comes_later_to_turns_has_an_episode(self):
        env = self.wrapped(parallel_to_aec(Race()), observations=True, policy="p")
        inner, reset = env.env, env.env.reset

        def reset_late(**options):
            reset(**options)
            inner.agents = ["tortoise"]

        with mock.patch.object(inner, "reset", reset_late):
            env.reset(seed=1)
        del inner.agents  # the hare comes
        for action in (1, 1, 1):
            env.step(action)
        self.assertEqual([e["episode_id"][-2:] for e in self.of("hare")], ["/0"])
        self.assertEqual(named(self.of("hare"), "step", "observation"), [(0, 0)])

    def test_what_goes_wrong_does_not_reach_the_loop(self):
        class Odd(Race):
            def reset(self, seed=None, options=None):
                observations, infos = super().reset()
                return {"stranger": 0, **observations}, infos

            def step(self, actions):
                observations, rewards, terminated, truncated, infos = super().step(actions)
                del terminated["hare"]
                return observations, rewards, terminated, truncated, infos

        env = self.wrapped(Odd())
        with self.assertLogs("rewardwatch"):
            env.reset()
            env.step({"hare": 1, "tortoise": 1})
            self.assertEqual(named(self.of("tortoise"), "step", "reward"), [(0, -1.0)])
            self.emitter.close()
        self.assertEqual(self.emitter.lost, 2, "the stranger's beginning and the hare's step")

    def test_what_goes_wrong_in_a_turn_does_not_reach_the_loop(self):
        for broken in ("observe", "_cumulative_rewards"):
            with self.subTest(broken), self.assertLogs("rewardwatch"), KeepingEmitter() as emitter:
                env = rewardwatch.wrap(parallel_to_aec(Race()), emitter, policy="p", observations=True)
                inner = env.env
                if broken == "observe":
                    inner.observe = mock.Mock(side_effect=KeyError("hare"))
                env.reset(seed=1)
                env.step(1)
                env.step(1)
                if broken == "_cumulative_rewards":
                    inner._cumulative_rewards = {}
                env._take_turn(1)
                env.close()
                self.assertGreater(emitter.lost, 0)

    def test_what_cannot_be_sent_is_refused_before_the_first_step(self):
        class Seeing(Race):
            spaces = {**Race.spaces, "tortoise": spaces.Box(0, 1, (84, 84))}

        for env in (Seeing(), parallel_to_aec(Seeing())):
            with self.assertRaisesRegex(ValueError, "7056 numbers"):
                self.wrapped(env, observations=True)

    def test_a_wrapped_environment_is_one(self):
        self.assertIsInstance(self.wrapped(Race()), ParallelEnv)
        self.assertIsInstance(self.wrapped(make("aec", "classic/tictactoe-v3")), AECEnv)
        parallel_api_test(self.wrapped(Race()), num_cycles=20)
        api_test(self.wrapped(make("aec", "classic/tictactoe-v3")), num_cycles=20)

    def test_pickled(self):
        self.race(pickle.loads(pickle.dumps(self.wrapped(Race()))))
        self.assertEqual(len(self.of("hare")), 2)


if __name__ == "__main__":
    unittest.main()
