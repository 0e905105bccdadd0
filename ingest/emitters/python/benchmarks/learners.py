"""Trains Stable-Baselines3 agents, some with a change during training, and records what the package sends.

learners.py DIRECTORY [--runs 6] [--healthy 10] writes DIRECTORY/LEARNER-CHANGE-RUN.ndjson for each learner, each change
and each run. Existing recordings are kept. With --judge bin/rewardwatch, replays them and prints the tables of
docs/learning.md. Needs Stable-Baselines3 (requirements-agents.txt).
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import DummyVecEnv

from rewardwatch.emitter import Emitter
from rewardwatch.stable_baselines3 import RewardwatchCallback

EPISODES, CHANGED_AT, AFTER = 3000, 2000, 400  # of a healthy run; before a change, and after it
LANES = 8
CAUSES = {
    "healthy": "",
    "rewards": "reward_function",
    "physics": "environment",
    "reversed": "environment",
    "broken": "policy",
}
BUDGET, BASELINE = 4000, 500  # episodes for one false alarm, and of the first baseline
CONFIG = f"policies: [{{match: '*', learning: continuous, false_alarms: {{per: {BUDGET} episodes}}}}]"


class Cart(gymnasium.Wrapper):
    """CartPole with at most 50 steps, and a noisy reward that decreases with the angle of the pole."""

    noise = 0.2

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=50))
        self.change = "healthy"

    def reset(self, *, seed=None, options=None):
        self.rng = np.random.default_rng(seed if seed is not None else self.rng)
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        if self.change == "reversed":
            action = 1 - action
        self.env.unwrapped.force_mag = 5.0 if self.change == "physics" else 10.0
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward -= abs(observation[2]) + self.rng.normal() * self.noise + (self.noise if self.change == "rewards" else 0)
        return observation, float(reward), terminated, truncated, info


class Mass(gymnasium.Env):
    """A mass on a line that an agent pushes to the middle within 30 steps. Wind also moves it."""

    wind, noise = 0.05, 0.2
    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)

    def __init__(self, numeric):
        self.change = "healthy"
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32) if numeric else gymnasium.spaces.Discrete(3)
        self.numeric = numeric

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([self.np_random.uniform(-1, 1), 0.0])
        self.steps = 0
        return self.at.astype(np.float32), {}

    def step(self, action):
        push = float(np.clip(action, -1, 1)[0]) if self.numeric else float(action - 1)
        if self.change == "reversed":
            push = -push
        wind = self.wind * (self.np_random.normal() + (1 if self.change == "physics" else 0))
        self.at[1] = np.clip(0.9 * self.at[1] + 0.2 * push + wind, -3, 3)
        self.at[0] = np.clip(self.at[0] + 0.2 * self.at[1], -3, 3)
        self.steps += 1
        reward = -abs(self.at[0]) - 0.05 * push**2 + self.noise * self.np_random.normal()
        if self.change == "rewards":
            reward -= self.noise
        return self.at.astype(np.float32), float(reward), False, self.steps == 30, {}


SMALL = {"net_arch": [32]}
LEARNERS = {
    "ppo-cart": lambda seed: PPO(
        "MlpPolicy", many(Cart), n_steps=64, batch_size=128, n_epochs=4, policy_kwargs=SMALL, seed=seed
    ),
    "a2c-mass": lambda seed: A2C("MlpPolicy", many(lambda: Mass(True)), policy_kwargs=SMALL, seed=seed),
    "dqn-mass": lambda seed: DQN(
        "MlpPolicy",
        many(lambda: Mass(False)),
        gamma=0.95,
        learning_rate=1e-3,
        learning_starts=500,
        train_freq=1,
        gradient_steps=2,
        exploration_fraction=6e-5,  # of the steps that record allows
        target_update_interval=250,
        buffer_size=100_000,
        policy_kwargs=SMALL,
        seed=seed,
    ),
}


def many(make):
    return DummyVecEnv([make] * LANES)


class File:
    """A transport that writes the events to a file."""

    def __init__(self, path):
        self.file = path.open("wb")

    def send(self, key, lines):
        self.file.writelines(line + b"\n" for line in lines)
        return True

    def serve(self, timeout):
        pass

    def waiting(self):
        return 0

    def close(self):
        self.file.close()

    def abandon(self):
        pass


class Changing(BaseCallback):
    """Applies the change after CHANGED_AT episodes, and ends training after the last episode."""

    def __init__(self, change):
        super().__init__()
        self.change, self.episodes = change, 0
        self.last = EPISODES if change == "healthy" else CHANGED_AT + AFTER

    def _on_step(self):
        before = self.episodes
        self.episodes += int(np.count_nonzero(self.locals["dones"]))
        if before < CHANGED_AT <= self.episodes:
            self.make()
        return self.episodes < self.last

    def make(self):
        if self.change == "broken":
            for weights in self.model.policy.parameters():
                torch.nn.init.normal_(weights.data)
            self.model.lr_schedule = lambda _: 0.0
            return
        self.training_env.set_attr("change", self.change)


def record(path, learner, change, seed):
    partial = path.with_suffix(".part")
    emitter = Emitter(connect=lambda lost: File(partial), queue=10_000_000)
    model = LEARNERS[learner](seed)
    names = {"policy": learner, "env": "bench", "observations": True}
    model.learn(10**9, callback=CallbackList([RewardwatchCallback(emitter, **names), Changing(change)]))
    emitter.close(60)
    if emitter.lost:
        raise RuntimeError(f"{emitter.lost} events are lost")
    os.replace(partial, path)


class Judged:
    """What the service found in a recording."""

    def __init__(self, binary, config, path):
        command = [binary, "replay", "--config", config, "--output", "json", path]
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        if not events or events[-1]["event"] != "summary" or events[-1]["rejected"]:
            raise RuntimeError(f"replay of {path} failed")
        self.units = events[-1]["units"]
        self.healthy = self.units if "-healthy-" in path.name else CHANGED_AT  # episodes without a change
        self.cause = {i["id"]: i["cause"] for i in events[-1]["incidents"]}
        firing = [e for e in events if e["event"] == "alarm" and e["state"] == "firing"]
        self.begun = [e for e in firing if e["id"] == e["incident"]]
        closed = {e["id"]: e["unit"] for e in events if e["event"] == "alarm" and e["state"] == "resolved"}
        self.disturbed = any(e["unit"] <= CHANGED_AT < closed.get(e["id"], self.units + 1) for e in firing)
        self.found = next((e for e in self.begun if e["unit"] > CHANGED_AT), None)


def report(directory, binary):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write(CONFIG)
        config.flush()
        judged = {
            (learner, change): [
                Judged(binary, config.name, path) for path in sorted(directory.glob(f"{learner}-{change}-*.ndjson"))
            ]
            for learner in LEARNERS
            for change in CAUSES
        }
    print("\n| learner | runs | incidents | allowed | by signal |\n| --- | --- | --- | --- | --- |")
    for learner in LEARNERS:
        runs = [r for (of, _), some in judged.items() if of == learner for r in some]
        signals = Counter(e["signal"] for r in runs for e in r.begun if e["unit"] <= r.healthy)
        allowed = sum(r.healthy - BASELINE for r in runs) / BUDGET
        by = ", ".join(f"`{s}` {n}" for s, n in sorted(signals.items()))
        print(f"| {learner} | {len(runs)} | {signals.total()} | {allowed:.1f} | {by} |")
    print("\n| learner | change | found within 60 | within 300 | median delay | cause correct, unknown, wrong |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (learner, change), runs in judged.items():
        if CAUSES[change]:
            print(f"| {learner} | {change} | {row([r for r in runs if not r.disturbed], CAUSES[change])} |")


def row(runs, cause):
    found = [r for r in runs if r.found]
    delays = [r.found["unit"] - CHANGED_AT for r in found]
    named = Counter(r.cause[r.found["incident"]] for r in found)
    wrong = len(found) - named[cause] - named["unknown"]
    within = " | ".join(f"{sum(d <= limit for d in delays)} of {len(runs)}" for limit in (60, 300))
    delay = f"{statistics.median(delays):.0f}" if delays else "-"
    return f"{within} | {delay} | {named[cause]}, {named['unknown']}, {wrong}"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("directory", type=Path)
    args.add_argument("--runs", type=int, default=6)
    args.add_argument("--healthy", type=int, default=10)
    args.add_argument("--judge", metavar="REWARDWATCH")
    args = args.parse_args()
    torch.set_num_threads(1)
    args.directory.mkdir(parents=True, exist_ok=True)
    for run in range(max(args.runs, args.healthy)):
        for learner in LEARNERS:
            for number, change in enumerate(CAUSES):
                path = args.directory / f"{learner}-{change}-{run}.ndjson"
                if run < (args.healthy if change == "healthy" else args.runs) and not path.exists():
                    record(path, learner, change, 1000 * number + run + 1)
    if args.judge:
        report(args.directory, args.judge)


if __name__ == "__main__":
    main()
