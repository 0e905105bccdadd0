"""Sends telemetry in every way that the Python package has, from this process and from children of it, each under a
policy of its own. Says on stdout how many events of each policy there are.
"""

import argparse
import json
import multiprocessing
import sys

import gymnasium
import numpy as np
import pettingzoo
from gymnasium import spaces

import rewardwatch
from rewardwatch.llm import watch_trl_reward, watch_verl_reward

STEPS = 60
LANES = 4


class Everything(gymnasium.Env):
    """Observes and does what has names, and tells of outcomes. Some of its numbers are not finite."""

    observation_space = spaces.Dict({
        "speed": spaces.Box(-1, 1, (3,)), "gear": spaces.Discrete(5), "note": spaces.Text(9),
        "far": spaces.Tuple([spaces.MultiBinary(3), spaces.Box(-np.inf, np.inf, ())]),
    })  # fmt: skip
    action_space = spaces.Tuple([spaces.MultiDiscrete([3, 2]), spaces.Box(-1, 1, (2, 2))])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        reward = np.float32("nan") if self.steps == 3 else np.array([0.5])
        told = {"outcomes": {"done": self.steps == 5}, "reward_components": {"a": np.float64(0.5), "b": np.int8(0)}}
        return self.observation_space.sample(), reward, self.steps == 5, False, told


def act(env, steps=STEPS):
    """Takes random actions, and says how many."""
    env.action_space.seed(1)
    env.reset(seed=1)
    for _ in range(steps):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return steps


def act_together(env):
    """Takes random actions in sub-environments. A step that resets one is no step of it."""
    env.action_space.seed(1)
    env.reset(seed=1)
    steps, resetting = 0, np.zeros(LANES, bool)
    for _ in range(STEPS):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        steps += int((~resetting).sum())
        resetting = terminated | truncated
    return steps


def play(env):
    """Plays a few games to the end."""
    moves = 0
    for seed in range(5):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
            else:
                env.step(int(np.flatnonzero(observation["action_mask"])[0]))
                moves += 1
    return moves


def move(env):
    """Acts with all agents of a parallel environment at once."""
    env.reset(seed=1)
    moves = 0
    for _ in range(STEPS):
        moves += len(env.agents)
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
    return moves


def decide(emitter):
    @rewardwatch.decision(emitter, policy="decision")
    def choose(n):
        return ["offer_a", "offer_b"][n % 2]

    for n in range(STEPS):
        choose(n)
    return STEPS


def decide_later(emitter):
    """Decides, and says later what came of every other decision."""

    @rewardwatch.decision(emitter, policy="later", key="request")
    def choose(request):
        return ["offer_a", "offer_b"][request % 2]

    for request in range(STEPS):
        choose(request)
    for request in range(0, STEPS, 2):
        emitter.feedback(request, 1, policy="later", outcomes={"paid": request})
    return STEPS + STEPS // 2


def rate(emitter):
    rewards = watch_trl_reward(lambda completions: [0.5] * len(completions), emitter, policy="trl", env="length")
    rewards(completions=["a"] * STEPS)
    score = watch_verl_reward(lambda n: {"score": n, "acc": n % 2 == 0, "pred": "x"}, emitter, policy="verl", env="x")
    for n in range(STEPS):
        score(n)
    return {"trl": STEPS, "verl": STEPS}


def in_child(method, env):
    child = multiprocessing.get_context(method).Process(target=act, args=(env,))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"a child ended with {child.exitcode}")
    return STEPS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers")
    parser.add_argument("--topic")
    parser.add_argument("--url")
    args = parser.parse_args()

    with rewardwatch.Emitter(args.brokers, args.topic, url=args.url) as emitter:

        def wrapped(env, policy):
            return rewardwatch.wrap(env, emitter, policy=policy, observations=True)

        cart_pole = gymnasium.make("CartPole-v1")
        sent = {
            "single": act(wrapped(cart_pole, "single")),
            "everything": act(wrapped(Everything(), "everything")),
            "vector": act_together(wrapped(gymnasium.make_vec("CartPole-v1", LANES), "vector")),
            "turns": play(wrapped(pettingzoo.make("aec", "classic/tictactoe-v3"), "turns")),
            "parallel": move(wrapped(pettingzoo.make("parallel", "sisl/multiwalker-v9"), "parallel")),
            "decision": decide(emitter),
            "later": decide_later(emitter),
            **rate(emitter),
            **{method: in_child(method, wrapped(cart_pole, method)) for method in ("fork", "spawn", "forkserver")},
        }
        emitter.emit({"policy": "event", "action": "offer_b", "reward": -0.25, "outcomes": {"conversion": 1}})
        sent["event"] = 1
        waiting = emitter.flush(30)
    print(json.dumps({"sent": sent, "waiting": waiting, "lost": emitter.lost}))


if __name__ == "__main__":
    sys.exit(main())
