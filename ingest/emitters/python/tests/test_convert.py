"""Datasets of Minari and of TensorFlow Datasets, written and read by these libraries."""

import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import minari
import numpy as np
import tensorflow_datasets as tfds
import tfrecord
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from support import named

from rewardwatch import convert
from rewardwatch.datasets import rlds_events
from rewardwatch.records import tfrecords


class ConvertCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def convert(self, source, *options, code=0):
        """Converts a dataset. Returns the events, and what was said."""
        out = self.directory / "episodes.ndjson"
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(convert.main([str(source), "-o", str(out), *options]), code, said.getvalue())
        lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
        return [json.loads(line) for line in lines], said.getvalue()


class MinariTest(ConvertCase):
    def setUp(self):
        super().setUp()
        patched = mock.patch.dict(os.environ, {"MINARI_DATASETS_PATH": str(self.directory)})
        patched.start()
        self.addCleanup(patched.stop)

    def dataset(self, episodes, observation_space, action_space=None, **options):
        """Creates a dataset of episodes, which are rewards, with an observation more of each."""
        buffers = [
            EpisodeBuffer(
                id=number,
                observations=observations,
                actions=[n % 2 for n in range(len(rewards))],
                rewards=rewards,
                terminations=[n == len(rewards) - 1 and number == 0 for n in range(len(rewards))],
                truncations=[n == len(rewards) - 1 and number == 1 for n in range(len(rewards))],
                infos={},
            )
            for number, (rewards, observations) in enumerate(episodes)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of authors and permalinks
            return minari.create_dataset_from_buffers(
                dataset_id="toy/walk-v0",
                buffer=buffers,
                observation_space=observation_space,
                action_space=action_space or spaces.Discrete(2),
                algorithm_name="random",
                **options,
            )

    def test_steps_become_events_in_both_layouts(self):
        for layout in ("hdf5", "arrow"):
            with self.subTest(layout), tempfile.TemporaryDirectory() as home:
                with mock.patch.dict(os.environ, {"MINARI_DATASETS_PATH": home}):
                    places = np.array([[0.0], [0.25], [0.5], [0.75]], np.float32)
                    episodes = [([0.5, 1.0, 1.5], places), ([2.0], places[:2])]
                    self.dataset(episodes, spaces.Box(0, 1, (1,)), env="CartPole-v1", data_format=layout)
                    by_id, said = self.convert("toy/walk-v0")
                    by_path, _ = self.convert(Path(home, "toy/walk-v0"), "--observations")
                self.assertIn("4 steps written, 0 skipped", said)
                identity = {"policy": "toy/walk-v0", "env": "CartPole-v1"}
                self.assertEqual(
                    by_id,
                    [
                        {**identity, "episode_id": episode, "step": step, "reward": reward, "action": step % 2}
                        | {"terminated": ends and episode == "0", "truncated": ends and episode == "1"}
                        for episode, step, reward, ends in [
                            ("0", 0, 0.5, False),
                            ("0", 1, 1.0, False),
                            ("0", 2, 1.5, True),
                            ("1", 0, 2.0, True),
                        ]
                    ],
                )
                self.assertEqual(named(by_path, "observation"), [([0.0],), ([0.25],), ([0.5],), ([0.0],)])

    def test_spaces_of_every_kind_and_parts_of_them(self):
        space = spaces.Dict(
            {
                "speed": spaces.Box(-1, 1, (2,)),
                "far": spaces.Tuple([spaces.Discrete(3), spaces.Text(5)]),
                "eye": spaces.Box(0, 255, (32, 32, 3), np.uint8),
            }
        )
        observations = {
            "speed": [np.array([0.5, -0.5], np.float32)] * 3,
            "far": ([1, 2, 0], ["a", "b", "c"]),
            "eye": [np.zeros((32, 32, 3), np.uint8)] * 3,
        }
        self.dataset([([1.0, 2.0], observations)], space)
        events, _ = self.convert(
            "toy/walk-v0", "--observations", "far", "speed", "--policy=p", "--env=e", "--no-actions"
        )
        self.assertEqual(
            events[1],
            {"policy": "p", "env": "e", "episode_id": "0", "step": 1, "reward": 2.0, "terminated": True}
            | {"truncated": False, "observation": {"far.0": 2, "speed.0": 0.5, "speed.1": -0.5}},
        )
        for options, words in [
            (["--observations"], "numbers, and the limit is 512"),
            (["--observations", "feet"], "no part 'feet'; their parts are: 'eye', 'far', 'speed'"),
        ]:
            self.assertIn(words, self.convert("toy/walk-v0", *options, code=2)[1])

    def test_a_step_that_would_be_refused_is_left_out_with_its_place(self):
        self.dataset([([1.0, 2.0], np.zeros((3, 1), np.float32))], spaces.Box(0, 1, (1,)))
        events, said = self.convert("toy/walk-v0", "--policy", "p" * 2000, code=1)
        self.assertEqual(events, [])
        self.assertIn("skipped: episode 0, step 0: policy is 'ppp", said)
        self.assertIn("0 steps written, 2 skipped", said)

    def test_what_is_not_there_is_said(self):
        Path(self.directory, "empty").mkdir()
        for source, words in [
            ("no/such-v0", "not found locally"),
            (self.directory / "empty", "contains neither dataset_info.json"),
        ]:
            self.assertIn(words, self.convert(source, code=2)[1])


FEATURES = tfds.features.FeaturesDict(
    {
        "steps": tfds.features.Dataset(
            {
                "observation": {
                    "state": tfds.features.Tensor(shape=(2,), dtype=np.float32),
                    "map": tfds.features.Tensor(shape=(30, 30), dtype=np.float32),
                },
                "action": np.int64,
                "reward": np.float32,
                "discount": np.float32,
                "is_first": np.bool_,
                "is_last": np.bool_,
                "is_terminal": np.bool_,
            }
        ),
        "weight": np.float32,
    }
)


def episode(rewards, terminal):
    """An episode of RLDS, whose last step holds an observation alone."""
    last = len(rewards)
    return {
        "weight": 1.0,
        "steps": [
            {
                "observation": {"state": [n, -n], "map": np.zeros((30, 30), np.float32)},
                "action": n % 2,
                "reward": reward,
                "discount": 1.0,
                "is_first": n == 0,
                "is_last": n == last,
                "is_terminal": n == last and terminal,
            }
            for n, reward in enumerate([*rewards, 0.0])
        ],
    }


EPISODES = [episode([0.5, 1.0], True), episode([2.0, 3.0, 4.0], False), episode([], True)]
STEPS = [
    ("train/0", 0, 0, 0.5, False, False),
    ("train/0", 1, 1, 1.0, True, False),
    ("train/1", 0, 0, 2.0, False, False),
    ("train/1", 1, 1, 3.0, False, False),
    ("train/1", 2, 0, 4.0, False, True),
]
TOLD = ("episode_id", "step", "action", "reward", "terminated", "truncated")


class RldsTest(ConvertCase):
    def setUp(self):
        super().setUp()
        self.source = self.directory / "toy" / "1.0.0"
        self.source.mkdir(parents=True)

    def write(self, features=FEATURES, episodes=EPISODES):
        """Writes a dataset of ArrayRecord files as TensorFlow Datasets does."""
        identity = tfds.core.DatasetIdentity(
            name="toy", version=tfds.core.Version("1.0.0"), data_dir=str(self.source), module_name="toy"
        )
        info = tfds.core.DatasetInfo(builder=identity, features=features, description="a toy")
        writer = tfds.core.SequentialWriter(info, max_examples_per_shard=2, file_format="array_record")
        writer.initialize_splits(["train"])
        writer.add_examples({"train": episodes})
        writer.close_all()

    def write_tfrecords(self):
        """Makes TFRecord files of the dataset, with another library."""
        self.write()
        for shard, episodes in enumerate([EPISODES[:2], EPISODES[2:]]):
            (self.source / f"toy-train.array_record-0000{shard}").unlink()
            writer = tfrecord.TFRecordWriter(str(self.source / f"toy-train.tfrecord-0000{shard}"))
            for each in episodes:
                steps = each["steps"]
                columns = {
                    f"steps/{name}": ([int(step[name]) for step in steps], "int")
                    for name in ("action", "is_first", "is_last", "is_terminal")
                } | {f"steps/{name}": ([step[name] for step in steps], "float") for name in ("reward", "discount")}
                for part in ("state", "map"):
                    numbers = [x for step in steps for x in np.ravel(step["observation"][part]).tolist()]
                    columns[f"steps/observation/{part}"] = (numbers, "float")
                writer.write({**columns, "weight": (1.0, "float")})
            writer.close()
        info = self.source / "dataset_info.json"
        info.write_text(info.read_text(encoding="utf-8").replace("array_record", "tfrecord"), encoding="utf-8")

    def test_steps_become_events(self):
        self.write()
        events, said = self.convert(self.source)
        self.assertEqual(named(events, *TOLD), STEPS)
        self.assertEqual({(event["policy"], "observation" in event) for event in events}, {("toy", False)})
        self.assertIn("5 steps written, 0 skipped", said)
        self.assertNotIn("tensorflow", sys.modules, "it is not necessary")

    def test_tfrecords_are_read_without_tensorflow(self):
        self.write_tfrecords()
        events, _ = self.convert(self.source, "--observations", "state", "--policy=p", "--env=e")
        self.assertEqual(named(events, *TOLD), STEPS)
        self.assertEqual(events[1]["observation"], {"state.0": 1.0, "state.1": -1.0})
        self.assertEqual((events[0]["policy"], events[0]["env"]), ("p", "e"))

    def test_a_last_step_may_act(self):
        self.write()
        events, _ = self.convert(self.source, "--keep-last", "--no-actions")
        ends = [(e["episode_id"], e["step"], e["terminated"], e["truncated"]) for e in events if e["reward"] == 0]
        self.assertEqual(ends, [("train/0", 2, True, False), ("train/1", 3, False, True), ("train/2", 0, True, False)])
        self.assertNotIn("action", events[0])

    def test_compressed_output(self):
        self.write()
        out = self.directory / "episodes.ndjson.gz"
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(convert.main([str(self.source), "-o", str(out)]), 0)
        self.assertEqual(len(gzip.decompress(out.read_bytes()).splitlines()), 5)

    def test_what_cannot_be_sent_is_refused_before_the_first_step(self):
        self.write()
        for options, words in [
            (["--observations"], "902 numbers, and the limit is 512 (map has 900, state has 2)"),
            (["--observations", "feet"], "no part 'feet'; their parts are: 'map', 'state'"),
            (["--split", "test"], "no split 'test'; its splits are: 'train'"),
        ]:
            events, said = self.convert(self.source, *options, code=2)
            self.assertEqual(events, [])
            self.assertIn(words, said)

    def test_datasets_of_another_form(self):
        self.write(tfds.features.FeaturesDict({"reward": np.float32}), [{"reward": 1.0}])
        self.assertIn("no steps", self.convert(self.source, code=2)[1])

    def test_damaged_files(self):
        self.write_tfrecords()
        first = self.source / "toy-train.tfrecord-00000"
        whole = first.read_bytes()
        length = int.from_bytes(whole[:8], "little")
        second = 16 + length
        for name, damaged, code, steps, words in [
            ("a flipped byte", whole[:40] + b"\xff" + whole[41:], 1, STEPS[2:], "record 0: its checksum at byte 0"),
            ("a flipped length", whole[:second] + b"\xff" + whole[second + 1 :], 2, STEPS[:2], f"at byte {second}"),
            ("broken off", whole[:-9], 2, STEPS[:2], f"the record at byte {second} is truncated"),
        ]:
            with self.subTest(name):
                first.write_bytes(damaged)
                events, said = self.convert(self.source, code=code)
                self.assertIn(words, said)
                self.assertEqual([step[1:] for step in named(events, *TOLD)], [step[1:] for step in steps])

    def test_no_bytes_are_a_surprise(self):
        random = np.random.default_rng(1)
        file = self.directory / "x"
        for size in range(0, 200, 7):
            file.write_bytes(random.bytes(size))
            with self.subTest(size), contextlib.suppress(ValueError):
                self.assertEqual(list(tfrecords(file)), [])


class EpisodesTest(unittest.TestCase):
    """Episodes from elsewhere, such as tf.data."""

    def events(self, *steps, **options):
        return list(rlds_events([{"steps": steps}], policy="p", **options))

    def test_steps_need_not_have_everything(self):
        events = self.events({"reward": 1}, {"reward": np.float32(2), "is_terminal": True})
        self.assertEqual(named(events, "reward", "terminated", "truncated"), [(1, False, False), (2.0, True, False)])
        (event,) = self.events({"action": 1})
        self.assertEqual((event["truncated"], "reward" in event), (True, False))

    def test_actions_and_observations_of_every_kind(self):
        for given, sent in [
            (np.int64(2), 2),
            (b"left", "left"),
            (np.array([0.5, 1.5]), [0.5, 1.5]),
            ({"arm": np.array([1.0, 2.0]), "grip": 0.5}, [1.0, 2.0, 0.5]),
        ]:
            (event,) = self.events({"reward": 1, "action": given})
            self.assertEqual(event["action"], sent)
        observation = {"speed": 0.5, "arm": {"joints": np.array([1, 2])}, "said": b"pick it up"}
        (event,) = self.events({"reward": 1, "observation": observation}, observations=True)
        self.assertEqual(event["observation"], {"speed": 0.5, "arm.joints.0": 1, "arm.joints.1": 2})

    def test_a_bad_step_costs_itself(self):
        good = {"reward": 1}
        events = self.events(good, {"reward": "much"}, {}, good, observations=False)
        self.assertEqual([isinstance(event, dict) for event in events], [True, False, False, True])
        self.assertIn("episode 0, step 1: reward is 'much'", str(events[1]))
        self.assertIn("episode 0, step 2: an event needs one of reward", str(events[2]))
        broken = [ValueError("record 3"), {"steps": [good]}]
        self.assertEqual(len(list(rlds_events(broken, policy="p"))), 2)


if __name__ == "__main__":
    unittest.main()
