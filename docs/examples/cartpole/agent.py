"""Runs a trained Stable-Baselines3 agent that balances a pole, and increases gravity partway through.

A callback sends every step to Rewardwatch: over Kafka (REWARDWATCH_BROKERS, REWARDWATCH_TOPIC), over HTTP
(REWARDWATCH_URL), or to a file (--to).
"""

import argparse
import functools

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import rewardwatch
from rewardwatch.stable_baselines3 import RewardwatchCallback

NAMES = ("cart_position", "cart_velocity", "pole_angle", "pole_velocity")


class ToFile:
    """Writes telemetry to a file, one event per line."""

    def __init__(self, path, lost):
        self.path = path

    def send(self, key, lines):
        with open(self.path, "ab") as file:
            file.writelines(line + b"\n" for line in lines)
        return True

    def serve(self, timeout):
        pass

    def waiting(self):
        return 0

    def close(self):
        pass

    abandon = close


def seen(state):
    """Returns the numbers of an observation by name, rounded to keep the telemetry small."""
    return {name: round(float(x), 2) for name, x in zip(NAMES, state, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", help="file that the telemetry is appended to")
    parser.add_argument("--training", type=int, default=2048, help="number of training steps")
    parser.add_argument("--steps", type=int, default=16384, help="steps before the change")
    parser.add_argument("--steps-after", type=int, default=3072)
    parser.add_argument("--gravity", type=float, default=30, help="gravity after the change, in m/s2 (9.8 before it)")
    args = parser.parse_args()

    torch.set_num_threads(1)
    worlds = DummyVecEnv([functools.partial(gymnasium.make, "CartPole-v1")] * 4)
    model = PPO("MlpPolicy", worlds, n_steps=256, seed=5)
    model.learn(args.training)
    model.lr_schedule = lambda _: 0.0  # from here on, the policy does not change
    model.n_epochs, model.batch_size = 1, 1024

    emitter = rewardwatch.Emitter(connect=functools.partial(ToFile, args.to) if args.to else None)
    callback = RewardwatchCallback(
        emitter, policy="cartpole", policy_version="1", env="lab", env_version="1", agent_id="pole", observations=seen
    )
    model.learn(args.steps, callback=callback)
    for world in worlds.envs:
        world.unwrapped.gravity = args.gravity
    callback.set_versions(env_version="2")
    model.learn(args.steps_after, callback=callback, reset_num_timesteps=False)
    emitter.close()


if __name__ == "__main__":
    main()
