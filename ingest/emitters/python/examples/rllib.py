"""PPO with RLlib: the environment is wrapped where RLlib creates it, in the processes of its env runners."""

import argparse

import gymnasium
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

import rewardwatch


def make_env(_config):
    return rewardwatch.wrap(gymnasium.make("CartPole-v1"), policy="rllib-cartpole", policy_version="1")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--env-runners", type=int, default=2)
    args = parser.parse_args()

    register_env("watched-cartpole", make_env)
    config = (
        PPOConfig()
        .environment("watched-cartpole")
        .env_runners(num_env_runners=args.env_runners)
        .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=1)
    )
    algorithm = config.build_algo()
    for _ in range(args.iterations):
        algorithm.train()
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
