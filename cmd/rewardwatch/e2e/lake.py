"""The frozen lake of the retraining test: a Gymnasium environment that moves, and a tabular policy that can be retrained."""

import json

import gymnasium
import numpy as np

# By env_version. On the second lake the way that was learnt on the first one ends in a hole.
MAPS = {"1": ["SFFF", "FHFH", "FFFH", "HFFG"], "2": ["SFFF", "HHFF", "FFFH", "HHFG"]}


class Toll(gymnasium.RewardWrapper):
    """Each step costs a little, so that returns tell a long way from a short one."""

    def reward(self, reward):
        return float(reward) - 0.01


def make(version):
    """The lake of an env_version. One step in five slips to the side."""
    return Toll(gymnasium.make("FrozenLake-v1", desc=MAPS[version], success_rate=0.8))


def learn(env, episodes, learning_rate, discount, seed):
    """Tabular Q-learning with a falling share of random actions; gives the table, states by actions."""
    rng = np.random.default_rng(seed)
    table = np.zeros((env.observation_space.n, env.action_space.n))
    for episode in range(episodes):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        curious = max(0.1, 1 - episode / (0.8 * episodes))
        done = False
        while not done:
            action = int(rng.integers(4)) if rng.random() < curious else best(table, state, rng)
            following, reward, terminated, truncated, _ = env.step(action)
            value = reward + (0 if terminated else discount * table[following].max())
            table[state, action] += learning_rate * (value - table[state, action])
            state, done = following, terminated or truncated
    return table


def stand(env):
    """The table of a policy that has unlearnt everything: it walks against the upper shore."""
    table = np.zeros((env.observation_space.n, env.action_space.n))
    table[:, 3] = 1
    return table


def best(table, state, rng):
    """The best action; of several that are as good, any."""
    values = table[state]
    return int(rng.choice(np.flatnonzero(values == values.max())))


def save(path, version, table):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy_version": version, "table": table.tolist()}, file)


def load(path):
    """The version and the table."""
    with open(path, encoding="utf-8") as file:
        saved = json.load(file)
    return saved["policy_version"], np.array(saved["table"])
