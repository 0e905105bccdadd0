import asyncio
import inspect
import unittest

import numpy as np
from support import KeepingEmitter, named

from rewardwatch.llm import watch_trl_reward, watch_verl_reward


def brevity(prompts, completions, **columns):
    return [None if completion is None else -float(len(completion)) for completion in completions]


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(solution_str == ground_truth), "acc": True, "length": np.int64(2), "pred": solution_str}


class RewardsTest(unittest.TestCase):
    def setUp(self):
        self.emitter = KeepingEmitter()
        self.addCleanup(self.emitter.close)

    def test_rewards_of_a_batch(self):
        watched = watch_trl_reward(brevity, self.emitter, policy="writer", reward_version="7")
        self.assertEqual(watched.__name__, "brevity", "the trainer's metrics are by the name")
        rewards = watched(prompts=["a"] * 3, completions=["b", None, "ccc"], completion_ids=[[1], [2], [3]])
        self.assertEqual(rewards, [-1.0, None, -3.0])
        watched(prompts=["a"], completions=["dd"])
        events = self.emitter.events()
        self.assertEqual(
            named(events, "policy", "env", "reward_version", "reward", "terminated"),
            [("writer", "brevity", "7", reward, True) for reward in (-1.0, -3.0, -2.0)],
        )
        self.assertEqual(len({e["episode_id"] for e in events}), 3)

    def test_scores_one_by_one(self):
        watched = watch_verl_reward(compute_score, self.emitter, policy="solver", env="gsm8k")
        result = watched(data_source="gsm8k", solution_str="42", ground_truth="42", extra_info={})
        self.assertEqual(result["pred"], "42")
        plain = watch_verl_reward(lambda **_: 0.5, self.emitter, policy="solver", env="gsm8k")
        self.assertEqual(plain(data_source="gsm8k", solution_str="4", ground_truth="42"), 0.5)
        self.assertEqual(
            named(self.emitter.events(), "env", "reward", "outcomes"),
            [("gsm8k", 1.0, {"acc": True, "length": 2}), ("gsm8k", 0.5, None)],
        )

    def test_coroutines(self):
        async def judge(completions, **_):
            return [1.0 for _ in completions]

        watched = watch_trl_reward(judge, self.emitter, policy="writer")
        self.assertTrue(inspect.iscoroutinefunction(watched))
        self.assertEqual(asyncio.run(watched(prompts=["a"], completions=["b"])), [1.0])
        self.assertEqual(named(self.emitter.events(), "reward"), [(1.0,)])

    def test_a_bad_reward_costs_only_itself(self):
        watched = watch_trl_reward(lambda **_: [1.0, "good", np.zeros(2), 4.0], self.emitter, policy="writer", env="e")
        with self.assertLogs("rewardwatch"):
            watched()
            sent = named(self.emitter.events(), "reward")
            self.emitter.close()
        self.assertEqual(sent, [(1.0,), (4.0,)])
        self.assertEqual(self.emitter.lost, 2)

    def test_what_cannot_be_sent_does_not_reach_the_trainer(self):
        watched = watch_verl_reward(lambda **_: {"acc": 1}, self.emitter, policy="solver", env="e")
        with self.assertLogs("rewardwatch"):
            self.assertEqual(watched(), {"acc": 1})
            self.emitter.close()
        self.assertEqual(self.emitter.lost, 1)


if __name__ == "__main__":
    unittest.main()
