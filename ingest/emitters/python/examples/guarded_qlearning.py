"""Tabular Q-learning on a frozen lake that explores and learns only while the guards of its policy allow it.

Its guard limits exploration:

    policies:
      - match: lake
        guards: {limits: [{name: exploration, outcome: explored, share: 0.1}]}

Set REWARDWATCH_URL to the URL of the service.
"""

import argparse
import time

import gymnasium
import numpy as np
from tally import Tally

import rewardwatch


class Explored(gymnasium.Wrapper):
    """Adds to the telemetry of each step whether the agent explored."""

    explored = False

    def step(self, action):
        *result, info = self.env.step(action)
        return *result, info | {"outcomes": {"explored": float(self.explored)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--per-second", type=float, default=500, help="steps")
    args = parser.parse_args()

    rng = np.random.default_rng(1)
    marked = Explored(gymnasium.make("FrozenLake-v1"))
    table = np.zeros((marked.observation_space.n, marked.action_space.n))
    with rewardwatch.Emitter() as emitter, rewardwatch.Guard("lake") as guard:
        env = rewardwatch.wrap(marked, emitter, policy="lake", observations=True)
        tally = Tally(guard)
        for episode in range(args.episodes):
            state, _ = env.reset(seed=int(rng.integers(2**31)))
            over = False
            while not over:
                learning = tally.exploration()
                marked.explored = learning and rng.random() < max(0.02, 0.5 * 0.98**episode)
                action = int(rng.integers(4)) if marked.explored else int(table[state].argmax())
                following, reward, terminated, truncated, _ = env.step(action)
                if learning:
                    goal = reward + 0.95 * table[following].max() * (not terminated)
                    table[state, action] += 0.1 * (goal - table[state, action])
                tally.count(explored=marked.explored, learned=learning)
                state, over = following, terminated or truncated
                time.sleep(1 / args.per_second)


if __name__ == "__main__":
    main()
