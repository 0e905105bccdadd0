"""Trains Stable-Baselines3 agents, applies changes during training, and records what the package sends.

learners.py DIRECTORY [--seeds 1 2 3 4 5] [--learners ...] writes DIRECTORY/LEARNER-CHANGE-SEED.ndjson.gz for each
learner, change and seed. Each agent is trained once: at the change, its process is forked, so the recordings of a seed
are equal until then. Existing recordings are kept. With --judge bin/rewardwatch, replays the recordings and prints the
tables of docs/learning.md. Needs Stable-Baselines3 (requirements-agents.txt).
"""

import argparse
import gzip
import json
import os
import shutil
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

import rewardwatch.lanes
from rewardwatch.emitter import Emitter
from rewardwatch.stable_baselines3 import RewardwatchCallback

EPISODES, CHANGED_AT, AFTER = 2500, 1500, 200  # of a healthy run; before a change, and after it
LANES = 8
NOISE = 0.2  # standard deviation of the noise of rewards, and by how much the change "rewards" lowers them
CAUSES = {
    "healthy": "",
    "physics": "environment",
    "rewards": "reward_function",
    "reversed": "environment",
    "broken": "policy",
}
BUDGET, BASELINE = 4000, 500  # episodes for one false alarm, and of the first baseline
CONFIG = f"policies: [{{match: '*', learning: continuous, false_alarms: {{per: {BUDGET} episodes}}}}]"


class World(gymnasium.Wrapper):
    """An environment with a noisy reward, in which one thing changes once `change` is set."""

    def __init__(self, name, steps, physics, bonus=lambda observation: 0.0):
        super().__init__(gymnasium.make(name, max_episode_steps=steps))
        self.physics, self.bonus = physics, bonus
        self.change = "healthy"

    def reset(self, *, seed=None, options=None):
        self.rng = np.random.default_rng(seed if seed is not None else self.rng)
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        if self.change == "reversed":
            numeric = isinstance(self.action_space, gymnasium.spaces.Box)
            action = -action if numeric else self.action_space.n - 1 - action
        if self.change == "physics":
            for name, value in self.physics.items():
                setattr(self.env.unwrapped, name, value)
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward += self.bonus(observation) + self.rng.normal() * NOISE - (NOISE if self.change == "rewards" else 0)
        return observation, float(reward), terminated, truncated, info


class Mass(gymnasium.Env):
    """A mass on a line that an agent pushes to the middle within 30 steps. Wind also moves it."""

    wind = 0.05
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
        reward = -abs(self.at[0]) - 0.05 * push**2 + NOISE * self.np_random.normal()
        if self.change == "rewards":
            reward -= NOISE
        return self.at.astype(np.float32), float(reward), False, self.steps == 30, {}


WORLDS = {
    "cart": lambda: World("CartPole-v1", 50, {"force_mag": 5.0}, lambda o: -abs(o[2])),
    "pole": lambda: World("CartPole-v1", 80, {"length": 1.0, "polemass_length": 0.1}),  # twice as long
    "car": lambda: World("MountainCar-v0", 100, {"force": 0.0005}, lambda o: abs(o[0] + 0.5)),
    "pendulum": lambda: World("Pendulum-v1", 60, {"m": 1.3}),
    "mass": lambda: Mass(False),
    "push": lambda: Mass(True),
}
SMALL = {"net_arch": [32]}


def ppo(env, seed):
    return PPO("MlpPolicy", env, n_steps=64, batch_size=128, n_epochs=4, policy_kwargs=SMALL, seed=seed)


def a2c(env, seed):
    return A2C("MlpPolicy", env, policy_kwargs=SMALL, seed=seed)


def dqn(env, seed):
    return DQN(
        "MlpPolicy",
        env,
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
    )


LEARNERS = {
    "ppo-cart": ppo,
    "ppo-pole": ppo,
    "ppo-car": ppo,
    "ppo-push": ppo,
    "ppo-pendulum": ppo,
    "a2c-cart": a2c,
    "a2c-mass": a2c,
    "dqn-cart": dqn,
    "dqn-mass": dqn,
}


class Clock:
    """A clock on which each step of training takes 50 ms, so recordings do not depend on the speed of the machine."""

    now = 1_800_000_000_000_000_000

    def time_ns(self):
        self.now += 50_000_000
        return self.now


class File:
    """A transport that appends the events to a compressed file."""

    def __init__(self, path):
        self.path, self.file = path, None

    def send(self, key, lines):
        self.file = self.file or gzip.GzipFile(self.path, "ab", 1)
        self.file.writelines(line + b"\n" for line in lines)
        return True

    def serve(self, timeout):
        pass

    def waiting(self):
        return 0

    def close(self):
        if self.file:
            self.file.close()
        self.file = None

    def abandon(self):
        pass


class Recording(BaseCallback):
    """Applies the changes after CHANGED_AT episodes, each in a process of its own, and ends training."""

    def __init__(self, directory, learner, seed):
        super().__init__()
        self.name = lambda change: directory / f"{learner}-{change}-{seed}.ndjson.gz"
        self.partial = self.name("healthy").with_suffix(".part")
        self.partial.unlink(missing_ok=True)
        self.change, self.episodes, self.last = "healthy", 0, EPISODES
        self.emitter = Emitter(connect=self.connect, queue=10_000_000)

    def connect(self, lost):
        self.transport = File(self.partial)
        return self.transport

    def _on_step(self):
        before = self.episodes
        self.episodes += int(np.count_nonzero(self.locals["dones"]))
        if before < CHANGED_AT <= self.episodes:
            self.split()
        return self.episodes < self.last

    def split(self):
        if self.emitter.flush(60):
            raise RuntimeError("not all events were written")
        self.transport.close()
        for change in CAUSES:
            if change == "healthy":
                continue
            child = os.fork()
            if child == 0:
                self.begin(change)
                return
            if os.waitpid(child, 0)[1]:
                raise RuntimeError(f"{change} could not be recorded")

    def begin(self, change):
        partial = self.name(change).with_suffix(".part")
        shutil.copyfile(self.partial, partial)
        self.partial, self.change, self.last = partial, change, CHANGED_AT + AFTER
        if change == "broken":
            for weights in self.model.policy.parameters():
                torch.nn.init.normal_(weights.data)
            self.model.lr_schedule = lambda _: 0.0
            return
        self.training_env.set_attr("change", change)

    def end(self):
        self.emitter.close(60)
        if self.emitter.lost:
            raise RuntimeError(f"{self.emitter.lost} events are lost")
        os.replace(self.partial, self.name(self.change))


def record(directory, learner, seed):
    """Records a training run and its changes. The healthy recording is the last to be complete."""
    torch.manual_seed(seed)
    rewardwatch.lanes.time = Clock()
    recording = Recording(directory, learner, seed)
    model = LEARNERS[learner](DummyVecEnv([WORLDS[learner.split("-")[1]]] * LANES), seed)
    names = {"policy": learner, "env": "bench", "observations": True}
    parent = os.getpid()
    try:
        model.learn(10**9, callback=CallbackList([RewardwatchCallback(recording.emitter, **names), recording]))
        recording.end()
    finally:
        if os.getpid() != parent:  # only the parent goes on to the next run
            os._exit(recording.partial.exists())


class Judged:
    """What the service found in a recording."""

    def __init__(self, binary, config, path):
        command = [binary, "replay", "--config", config, "--output", "json", path]
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        if not events or events[-1]["event"] != "summary" or events[-1]["rejected"]:
            raise RuntimeError(f"replay of {path} failed")
        self.units = events[-1]["units"]
        self.cause = {i["id"]: i["cause"] for i in events[-1]["incidents"]}
        firing = [e for e in events if e["event"] == "alarm" and e["state"] == "firing"]
        self.begun = [e for e in firing if e["id"] == e["incident"]]
        closed = {e["id"]: e["unit"] for e in events if e["event"] == "alarm" and e["state"] == "resolved"}
        self.disturbed = any(e["unit"] <= CHANGED_AT < closed.get(e["id"], self.units + 1) for e in firing)
        self.found = next((e for e in self.begun if e["unit"] > CHANGED_AT), None)


def report(directory, binary, learners, seeds):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
        config.write(CONFIG)
        config.flush()
        judged = {
            (learner, change): [
                Judged(binary, config.name, directory / f"{learner}-{change}-{seed}.ndjson.gz") for seed in seeds
            ]
            for learner in learners
            for change in CAUSES
        }
    print("\n| learner | healthy runs | incidents | allowed | by signal |\n| --- | --- | --- | --- | --- |")
    for learner in [*learners, ""]:
        runs = [r for (of, change), some in judged.items() if change == "healthy" and learner in ("", of) for r in some]
        signals = Counter(e["signal"] for r in runs for e in r.begun)
        allowed = sum(r.units - BASELINE for r in runs) / BUDGET
        by = ", ".join(f"`{s}` {n}" for s, n in sorted(signals.items()))
        print(f"| {learner or 'all'} | {len(runs)} | {signals.total()} | {allowed:.1f} | {by} |")
    print(f"\n| change | learner | found within 60 | within {AFTER} | median delay | cause correct, unknown, wrong |")
    print("| --- | --- | --- | --- | --- | --- |")
    for change, cause in CAUSES.items():
        for learner in [*learners, ""] if cause else []:
            runs = [r for (of, c), some in judged.items() if c == change and learner in ("", of) for r in some]
            print(f"| {change} | {learner or 'all'} | {row([r for r in runs if not r.disturbed], cause)} |")


def row(runs, cause):
    found = [r for r in runs if r.found]
    delays = [r.found["unit"] - CHANGED_AT for r in found]
    named = Counter(r.cause[r.found["incident"]] for r in found)
    wrong = len(found) - named[cause] - named["unknown"]
    within = " | ".join(f"{sum(d <= limit for d in delays)} of {len(runs)}" for limit in (60, AFTER))
    delay = f"{statistics.median(delays):.0f}" if delays else "-"
    return f"{within} | {delay} | {named[cause]}, {named['unknown']}, {wrong}"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("directory", type=Path)
    args.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    args.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    args.add_argument("--judge", metavar="REWARDWATCH")
    args = args.parse_args()
    torch.set_num_threads(1)
    args.directory.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        for learner in args.learners:
            if not (args.directory / f"{learner}-healthy-{seed}.ndjson.gz").exists():
                record(args.directory, learner, seed)
    if args.judge:
        report(args.directory, args.judge, args.learners, args.seeds)


if __name__ == "__main__":
    main()
