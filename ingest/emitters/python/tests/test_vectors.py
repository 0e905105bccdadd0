import pickle
import unittest

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from support import Corridor, KeepingEmitter, Tensor, named

import rewardwatch
from rewardwatch.lanes import Lanes
from rewardwatch.source import Source

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


class VectorTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def wrapped(self, corridors, mode=AutoresetMode.NEXT_STEP, kind=SyncVectorEnv, **options):
        env = kind([lambda c=c: Corridor(**c) for c in corridors], autoreset_mode=mode)
        self.addCleanup(env.close)
        return rewardwatch.wrap(env, self.emitter, policy="p", agent_id="a", **options)

    def of(self, lane):
        return [e for e in self.emitter.events() if e["agent_id"] == f"a/{lane}"]

    def test_every_episode_is_told_in_both_modes_of_reset(self):
        for mode in MODES:
            with self.subTest(mode):
                self.emitter.kept.messages.clear()
                env = self.wrapped([{"length": 2}, {"length": 3}], mode, observations=True)
                env.reset()
                for _ in range(8):
                    env.step(np.array([1, 0]))
                # With NEXT_STEP the step after an end is a reset, which is no step of the agent.
                lengths = {AutoresetMode.NEXT_STEP: [2, 2, 2], AutoresetMode.SAME_STEP: [2, 2, 2, 2]}[mode]
                steps = [step for length in lengths for step in range(length)]
                events = self.of(0)
                self.assertEqual([e["step"] for e in events], steps)
                self.assertEqual([e["reward"] for e in events], [step + 1.0 for step in steps])
                self.assertEqual([e["observation"] for e in events], [[float(step)] for step in steps])
                self.assertEqual([e["terminated"] for e in events], [step == 1 for step in steps])
                self.assertEqual(len({e["episode_id"] for e in events}), len(lengths))
                self.assertEqual({e["action"] for e in self.of(1)}, {0})
                self.assertEqual([e["step"] for e in self.of(1)][:3], [0, 1, 2])

    def test_plain_steps_are_written_as_their_events_would_be(self):
        source = Source(self.emitter, {"policy": 'p"\n', "policy_version": 3, "labels": {"a": "ü"}}, None)
        space = gymnasium.spaces.Discrete(9)
        lanes = Lanes(source, 6, space, space, True, False, 0, lambda *_: None)
        rewards = np.array([1.0, 0.1, 1e-9, -1e22, np.nan, -np.inf])
        over = np.array([True, False, False, True, False, True])
        lanes.begin(None)
        lanes.stepped(np.arange(6), rewards, over, ~over, {}, None)
        lanes.stepped(np.arange(6), rewards, over, over, {}, None)
        events = self.emitter.events()
        fields = [(e["action"], e["reward"], e["terminated"], e["truncated"]) for e in events]
        said = [1.0, 0.1, 1e-9, -1e22, "NaN", "-Infinity"]
        first = [(i, said[i], bool(over[i]), not over[i]) for i in range(6)]
        self.assertEqual(fields, first + [(i, said[i], bool(over[i]), bool(over[i])) for i in range(6)])
        common = [source.identity.step(lane, 0, episode, 0) for episode in (1, 2) for lane in range(6)]
        for event, want in zip(events, common, strict=True):
            rest = ("action", "reward", "terminated", "truncated")
            self.assertEqual({k: v for k, v in event.items() if k not in rest}, {**want, "ts": event["ts"]})

    def test_resets_by_hand(self):
        env = self.wrapped([{"length": 2}, {"length": 9}], AutoresetMode.DISABLED)
        env.reset()
        for _ in range(2):
            env.step(np.array([1, 1]))
        env.reset(options={"reset_mask": np.array([True, False])})
        env.step(np.array([1, 1]))
        self.assertEqual([e["step"] for e in self.of(0)], [0, 1, 0])
        self.assertEqual([e["step"] for e in self.of(1)], [0, 1, 2])
        self.assertEqual(len({e["episode_id"] for e in self.of(0)}), 2)

    def test_outcomes_are_those_of_their_environment(self):
        told = {"outcomes": {"conversion": 1}, "reward_components": {"click": 0.5}}
        env = self.wrapped([{"info": told}, {}])
        env.reset()
        env.step(np.array([1, 1]))
        self.assertEqual(named(self.of(0), "outcomes", "reward_components"), [({"conversion": 1}, {"click": 0.5})])
        self.assertEqual(named(self.of(1), "outcomes", "reward_components"), [(None, None)])

    def test_outcomes_of_the_last_step_before_a_reset_in_the_same_step(self):
        env = self.wrapped(
            [{"info": {"outcomes": {"conversion": 1}}, "length": 2}, {"info": {"outcomes": {"conversion": 2}}}],
            AutoresetMode.SAME_STEP,
        )
        env.reset()
        for _ in range(3):
            env.step(np.array([1, 1]))
        self.assertEqual(named(self.of(0), "step", "outcomes"), [(s, {"conversion": 1}) for s in (0, 1, 0)])
        self.assertEqual(named(self.of(1), "step", "outcomes"), [(s, {"conversion": 2}) for s in (0, 1, 2)])

    def test_environments_in_processes(self):
        env = self.wrapped([{}, {}], kind=AsyncVectorEnv)
        env.reset()
        for _ in range(3):
            env.step(np.array([1, 1]))
        self.assertEqual([e["reward"] for e in self.of(1)], [1.0, 2.0, 3.0])

    def test_spaces_of_names(self):
        class Named(Corridor):
            observation_space = gymnasium.spaces.Dict({"place": Corridor.observation_space})
            action_space = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)])

            def reset(self, **kwargs):
                observation, info = super().reset(**kwargs)
                return {"place": observation}, info

            def step(self, action):
                observation, *rest = super().step(action)
                return {"place": observation}, *rest

        for observations, sent in [(True, {"place.0": 0.0}), (lambda o: {"twice": o["place"][0] * 2}, {"twice": 0.0})]:
            env = rewardwatch.wrap(SyncVectorEnv([Named] * 2), self.emitter, policy="p", observations=observations)
            env.reset()
            env.step((np.array([1, 0]), np.array([2, 1])))
            events = self.emitter.events()[-2:]
            self.assertEqual([e["action"] for e in events], [[1, 2], [0, 1]])
            self.assertEqual([e["observation"] for e in events], [sent, sent])

    def test_pickled(self):
        env = pickle.loads(pickle.dumps(rewardwatch.wrap(SyncVectorEnv([Corridor] * 2), self.emitter, policy="p")))
        env.reset()
        env.step(np.array([1, 1]))
        self.assertEqual(len(self.emitter.events()), 2)


class LanesTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)
        spaces = (Corridor.action_space, Corridor.observation_space)
        source = Source(self.emitter, {"policy": "p", "agent_id": "a"})
        self.lanes = Lanes(source, 3, *spaces, True, False, pause=0, told_of=lambda infos, count: infos)
        self.lanes.begin(None)

    def test_a_bad_lane_costs_only_itself(self):
        none = np.zeros(3, np.bool_)
        with self.assertLogs("rewardwatch") as logs:
            for rewards in ([1.0, np.zeros(2), 3.0], [1.0, object(), 3.0]):
                self.lanes.stepped([0, 1, 0], np.array(rewards, dtype=object), none, none, None, None)
                self.emitter.flush()
            told = [{"outcomes": {"x": "much"}}, None, None]
            self.lanes.stepped([0, 1, 0], np.ones(3), none, none, told, None)
            sent = named(self.emitter.events(), "agent_id", "step")
            self.emitter.close()
        self.assertEqual(sent, [("a/0", 0), ("a/2", 0), ("a/0", 1), ("a/2", 1), ("a/1", 2), ("a/2", 2)])
        self.assertEqual(self.emitter.lost, 3)
        self.assertIn("outcomes is", " ".join(logs.output))

    def test_tensors_may_be_written_again(self):
        actions, rewards = Tensor([0, 1, 0]), Tensor([1.0, 2.0, 3.0])
        terminated, truncated = Tensor([False, True, False]), Tensor([False, False, False])
        for _step in range(2):
            self.lanes.stepped(actions, rewards, terminated, truncated, None, None)
            for values in (actions, rewards, terminated):
                values[1] = 0
        sent = named(self.emitter.events(), "agent_id", "action", "reward", "terminated", "step")
        self.assertEqual(sent[1], ("a/1", 1, 2.0, True, 0))
        self.assertEqual(sent[4], ("a/1", 0, 0.0, False, 0))
        self.assertEqual(sent[5], ("a/2", 0, 3.0, False, 1))


if __name__ == "__main__":
    unittest.main()
