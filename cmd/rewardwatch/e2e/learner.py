"""A Q-learner on a frozen lake that goes on learning, and obeys its guards. Lines on stdin change its world, which the
telemetry does not tell: {"grip": 0.4} makes the ice more slippery, and {"sign": -1} turns the reward around. With
{"restore": true}, it goes back to the table with which it was deployed.
"""

import argparse
import json
import sys
import threading
import time

import gymnasium
import numpy as np

import lake
import rewardwatch

sys.path.append("../../../ingest/emitters/python/examples")
from tally import Tally  # noqa: E402

# A step costs 0.01, so that no episode returns less than -0.4 while the reward has its sign.
STEPS = 40


class World(gymnasium.Env):
    """The lake with the grip and the sign of its reward. They change between two episodes."""

    def __init__(self):
        self.now = {"grip": 0.8, "sign": 1, "restore": False}
        self.lakes = {
            grip: lake.Toll(gymnasium.make("FrozenLake-v1", desc=lake.MAPS["1"], success_rate=grip, max_episode_steps=STEPS))
            for grip in (0.8, 0.4)
        }
        self.observation_space, self.action_space = self.lakes[0.8].observation_space, self.lakes[0.8].action_space
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in sys.stdin:
            self.now = self.now | json.loads(line)

    def reset(self, *, seed=None, options=None):
        self.grip, self.sign = self.now["grip"], self.now["sign"]
        return self.lakes[self.grip].reset(seed=seed)

    def step(self, action):
        state, reward, terminated, truncated, info = self.lakes[self.grip].step(action)
        # Each step slips with the chance 1 - grip, whatever the policy does. The lake says the chance of the way taken.
        info["outcomes"] = {"slipped": float(info["prob"] != self.grip)}
        return state, self.sign * reward, terminated, truncated, info


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    args = parser.parse_args()
    world, rng = World(), np.random.default_rng(5)
    deployed = lake.learn(world.lakes[0.8], 3000, 0.1, 0.99, 5)
    table = deployed.copy()
    with rewardwatch.Emitter() as emitter, rewardwatch.Guard("learner", url=args.url) as guard:
        env, tally = rewardwatch.wrap(world, emitter, policy="learner", observations=True), Tally(guard)
        while True:
            if world.now["restore"]:
                world.now = world.now | {"restore": False}
                table = deployed.copy()
            state, _ = env.reset(seed=int(rng.integers(2**31)))
            over = False
            while not over:
                learning = tally.exploration()
                explored = learning and rng.random() < 0.05
                action = int(rng.integers(4)) if explored else lake.best(table, state, rng)
                following, reward, terminated, truncated, _ = env.step(action)
                if learning:
                    goal = reward + (0 if terminated else 0.99 * table[following].max())
                    table[state, action] += 0.01 * (goal - table[state, action])
                tally.count(explored=explored, learned=learning)
                state, over = following, terminated or truncated
                time.sleep(1 / 1000)


if __name__ == "__main__":
    main()
