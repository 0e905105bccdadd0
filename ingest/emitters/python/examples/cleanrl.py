"""A policy gradient in the style of CleanRL: a single file, with one additional line in make_env.

Each copy of the environment is wrapped separately, inside the wrappers that change rewards and observations.
"""

import argparse

import gymnasium as gym
import torch
from torch.distributions import Categorical

import rewardwatch


def make_env(env_id):
    def thunk():
        env = gym.make(env_id)
        env = rewardwatch.wrap(env, policy="cleanrl-cartpole", policy_version="1")
        return gym.wrappers.RecordEpisodeStatistics(env)

    return thunk


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-id", default="CartPole-v1")
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--updates", type=int, default=50)
    parser.add_argument("--num-steps", type=int, default=32)
    args = parser.parse_args()

    envs = gym.vector.SyncVectorEnv([make_env(args.env_id)] * args.num_envs)
    inputs = gym.spaces.flatdim(envs.single_observation_space)
    policy = torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.Tanh(), torch.nn.Linear(64, envs.single_action_space.n)
    )
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    observations, _ = envs.reset(seed=1)
    for _ in range(args.updates):
        log_probs, rewards, dones = [], [], []
        for _ in range(args.num_steps):
            chances = Categorical(logits=policy(torch.as_tensor(observations)))
            actions = chances.sample()
            observations, reward, terminated, truncated, _ = envs.step(actions.numpy())
            log_probs.append(chances.log_prob(actions))
            rewards.append(torch.as_tensor(reward))
            dones.append(torch.as_tensor(terminated | truncated))
        returns = discounted(rewards, dones)
        loss = -(torch.stack(log_probs) * (returns - returns.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    envs.close()


def discounted(rewards, dones, gamma=0.99):
    returns, later = [], torch.zeros_like(rewards[0])
    for reward, done in zip(reversed(rewards), reversed(dones), strict=True):
        later = reward + gamma * later * ~done
        returns.insert(0, later)
    return torch.stack(returns)


if __name__ == "__main__":
    main()
