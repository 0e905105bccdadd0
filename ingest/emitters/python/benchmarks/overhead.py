"""Measures the overhead of the package in the agent's thread: the time of a call with and without the package.

    python benchmarks/overhead.py [--url http://127.0.0.1:9464 | --brokers 127.0.0.1:9092]

Between calls, the agent computes for as long as a small policy network would. Without a service or brokers, events pass
through the emitter's thread and are dropped instead of being sent.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

import rewardwatch
from rewardwatch.emitter import Emitter
from rewardwatch.llm import watch_verl_reward

CALLS = 20_000
PAUSE = 50e-6  # seconds that the agent computes between two steps


class Still(gymnasium.Env):
    """Does nothing, so that only the cost of the wrapper is measured."""

    observation_space = gymnasium.spaces.Box(-1, 1, (8,))
    action_space = gymnasium.spaces.Discrete(4)
    at = np.zeros(8, np.float32)

    def reset(self, *, seed=None, options=None):
        return self.at, {}

    def step(self, action):
        return self.at, 1.0, False, False, {}


class StillVector(SyncVectorEnv):
    def step(self, actions):
        return self._observations, self._rewards, self._terminations, self._truncations, {}


class Nowhere:
    """A transport that drops everything."""

    def __init__(self, lost):
        pass

    def send(self, key, lines):
        return True

    def serve(self, timeout):
        pass

    def waiting(self):
        return 0

    def close(self):
        pass


def timed(call: Callable[[], object]) -> np.ndarray:
    """Duration of each call in seconds."""
    seconds = np.empty(CALLS)
    clock = time.perf_counter
    for i in range(CALLS):
        begin = clock()
        call()
        end = clock()
        seconds[i] = end - begin
        while clock() - end < PAUSE:
            pass
    return seconds


def cases(emitter: Emitter) -> Iterator[tuple[str, Callable[[], object], Callable[[], object]]]:
    for name, observations in (("Env", False), ("Env with 8 observations", True)):
        bare = Still()
        env = rewardwatch.wrap(bare, emitter, policy="p", observations=observations)
        env.reset()
        yield name, lambda bare=bare: bare.step(1), lambda env=env: env.step(1)
    many = StillVector([Still] * 8)
    vector = rewardwatch.wrap(many, emitter, policy="p")
    vector.reset()
    actions = np.ones(8, np.int64)
    yield "VectorEnv of 8", lambda: many.step(actions), lambda: vector.step(actions)

    def choose():
        return "offer_b"

    yield "decision", choose, rewardwatch.decision(emitter, policy="p")(choose)

    def score():
        return 0.5

    yield "reward of verl", score, watch_verl_reward(score, emitter, policy="p", env="e")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--brokers")
    args = parser.parse_args()
    goes = {"url": args.url, "brokers": args.brokers} if args.url or args.brokers else {"connect": Nowhere}
    print("load", " ".join(f"{load:.2f}" for load in os.getloadavg()))
    print("| call | median | p99 | median without | p99 without |\n| --- | --- | --- | --- | --- |")
    with Emitter(queue=1_000_000, **goes) as emitter:
        for name, bare, watched in cases(emitter):
            figures = [us for call in (watched, bare) for us in np.quantile(timed(call) * 1e6, (0.5, 0.99))]
            print(f"| {name} | {' | '.join(f'{us:.1f} us' for us in figures)} |", flush=True)
            emitter.flush(60)
        if emitter.lost:
            raise SystemExit(f"{emitter.lost} events were lost")


if __name__ == "__main__":
    main()
