import unittest

import numpy as np
from gymnasium import spaces
from support import Corridor, KeepingEmitter, walk

import rewardwatch

IMAGE = spaces.Box(0, 255, (84, 84, 4), np.uint8)


class Anything(Corridor):
    """Observes samples of a space, and takes actions of another."""

    def __init__(self, observation_space=None, action_space=None):
        super().__init__()
        self.observation_space = observation_space or Corridor.observation_space
        self.action_space = action_space or Corridor.action_space

    def reset(self, **kwargs):
        super().reset(**kwargs)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, False, False, {}


class SpacesTest(unittest.TestCase):
    def sent(self, env, action=0, **options):
        with KeepingEmitter() as emitter:
            walk(rewardwatch.wrap(env, emitter, policy="p", **options), [action])
            (event,) = emitter.events()
            return event

    def test_observations(self):
        one = spaces.Box(1, 1, (1,))
        for space, sent in [
            (spaces.Box(1, 1, (2,)), [1.0, 1.0]),
            (spaces.Box(1, 1, (2, 2)), [1.0, 1.0, 1.0, 1.0]),
            (spaces.Box(1, 1, ()), 1.0),
            (spaces.Discrete(1, start=7), 7),
            (spaces.MultiDiscrete([1, 1]), [0, 0]),
            (
                spaces.Dict({"speed": spaces.Box(1, 1, ()), "arm": spaces.Box(1, 1, (2,)), "note": spaces.Text(3)}),
                {"speed": 1.0, "arm.0": 1.0, "arm.1": 1.0},
            ),
            (spaces.Dict({"goal": spaces.Dict({"x": one})}), {"goal.x.0": 1.0}),
            (spaces.Tuple([spaces.Discrete(1), spaces.Tuple([one])]), {"0": 0, "1.0.0": 1.0}),
        ]:
            with self.subTest(space):
                self.assertEqual(self.sent(Anything(space), observations=True)["observation"], sent)

    def test_actions(self):
        pair = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 1, (2,))})
        for space, action, sent in [
            (spaces.Discrete(3), 2, 2),
            (spaces.Discrete(3), np.int64(2), 2),
            (spaces.Discrete(3), np.array(2), 2),
            (spaces.MultiDiscrete([3, 3]), np.array([2, 1]), [2, 1]),
            (spaces.MultiBinary(2), np.array([1, 0], np.int8), [1, 0]),
            (spaces.Box(-1, 1, (2,)), np.array([0.5, -1], np.float32), [0.5, -1.0]),
            (spaces.Box(-1, 1, (1,)), np.array([np.nan]), ["NaN"]),
            (spaces.Text(5), "left", "left"),
            (pair, {"a": 1, "b": np.array([0.5, 0.25])}, [1, 0.5, 0.25]),
            (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]), (1, 0), [1, 0]),
        ]:
            with self.subTest(space):
                self.assertEqual(self.sent(Anything(action_space=space), action)["action"], sent)

    def test_what_cannot_be_sent_is_refused_before_the_first_step(self):
        for env, options, words in [
            (
                Anything(IMAGE),
                {"observations": True},
                r"28224 numbers, and the limit is 512.*observations=False .*image\.mean",
            ),
            (Anything(spaces.Dict({"eye": IMAGE})), {"observations": True}, "28224 numbers"),
            (Anything(spaces.Sequence(IMAGE)), {"observations": True}, "Sequence.*observations=False"),
            (Anything(IMAGE), {"observations": lambda image: image}, "28224 numbers"),
            (Anything(IMAGE), {"observations": lambda image: image[0, :, 0].tolist() * 7}, "588 numbers"),
            (Anything(IMAGE), {"observations": lambda image: "grey"}, "cannot be sent"),
            (
                Anything(action_space=spaces.Box(0, 1, (30, 30))),
                {},
                "900 numbers, and the limit is 256.*actions=False",
            ),
            (Anything(action_space=spaces.Sequence(spaces.Discrete(2))), {}, "Sequence.*actions=False"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                rewardwatch.wrap(env, policy="p", **options)

    def test_images_go_without_observations_or_as_a_summary(self):
        self.assertNotIn("observation", self.sent(Anything(IMAGE)))
        summary = self.sent(Anything(IMAGE), observations=lambda image: {"mean": image.mean(), "max": image.max()})
        self.assertGreater(summary["observation"]["mean"], 0)
        self.assertIs(type(summary["observation"]["max"]), int)

    def test_actions_may_be_left_out(self):
        self.assertNotIn("action", self.sent(Anything(action_space=spaces.Sequence(spaces.Discrete(2))), actions=False))


if __name__ == "__main__":
    unittest.main()
