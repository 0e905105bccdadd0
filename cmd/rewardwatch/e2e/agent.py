"""Runs scripted policies in real Gymnasium environments, in phases of different physics, and emits every step.

A phase is JSON: {"episodes": 700, "physics": {"gravity": -11.5}, "versions": {"env_version": "2"}}. Physics are
attributes of the environment (of CartPole: gravity, length, force_mag, ...; of LunarLander: gravity, enable_wind,
wind_power, ...); what a phase does not name is as the environment was made. Versions hold until a later phase names
them again. On FrozenLake the env_version is the map, and the policy is read from --policy-file when a phase begins. After each phase, when the broker has all its events, one line of JSON says on stdout what was run; the next
phase begins when a line comes on stdin, or at once where stdin is closed.
"""

import argparse
import json
import sys
import time

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic

import lake
import rewardwatch


def balance(env, observation, rng):
    """Pushes the cart below the pole in three steps of five, and anywhere in the others: lengths vary, as they should."""
    if rng.random() < 0.4:
        return int(rng.integers(2))
    return int(observation[2] + 0.5 * observation[3] > 0)


def land(env, observation, rng):
    """The controller that LunarLander comes with."""
    return heuristic(env.unwrapped, observation)


POLICIES = {"CartPole-v1": balance, "LunarLander-v3": land}

# Environments step much faster than a busy broker takes events. Ahead of it by more than two seconds, the agents would
# break the order of their episodes over several partitions.
AHEAD_SECONDS = 0.2


class Agent:
    """One environment with the policy that acts in it."""

    def __init__(self, args, emitter, number):
        self.env = rewardwatch.wrap(
            self.make(args), emitter, policy=args.policy, policy_version="1", env_version="1",
            reward_version="1", agent_id=f"agent-{number}",
        )  # fmt: skip
        self.act = POLICIES.get(args.env)
        self.rng = np.random.default_rng([args.seed, number])
        self.usual = {}

    def make(self, args):
        return gymnasium.make(args.env)

    def change(self, physics, versions):
        world = self.env.unwrapped
        for name in physics:
            self.usual.setdefault(name, getattr(world, name))
        for name, value in {**self.usual, **physics}.items():
            setattr(world, name, value)
        if hasattr(world, "masspole"):  # what CartPole derives when it is made
            world.total_mass = world.masspole + world.masscart
            world.polemass_length = world.masspole * world.length
        self.env.set_versions(**versions)

    def run(self, episodes):
        """A generator that makes one step of the agent at a time and yields the return of each episode it finishes."""
        for _ in range(episodes):
            observation, _ = self.env.reset(seed=int(self.rng.integers(2**31)))
            total, done = 0.0, False
            while not done:
                observation, reward, terminated, truncated, _ = self.env.step(
                    self.act(self.env, observation, self.rng)
                )
                total, done = total + reward, terminated or truncated
                yield total if done else None


class Walker(Agent):
    """An agent on a frozen lake that moves, with a policy that is retrained."""

    def make(self, args):
        self.policy_file = args.policy_file
        return lake.make("1")

    def change(self, physics, versions):
        if "env_version" in versions:
            self.env.env = lake.make(versions["env_version"])
        version, table = lake.load(self.policy_file)
        self.env.set_versions(policy_version=version, **versions)
        # One action in twenty is any, as in production: what never varies cannot be judged.
        self.act = lambda env, state, rng: int(rng.integers(4)) if rng.random() < 0.05 else lake.best(table, state, rng)


def run_phase(agents, phase, emitter):
    """Steps the agents in turn, so that their episodes overlap, until each has finished its share. They pause until the
    broker has their events, AHEAD_SECONDS after it last had them all."""
    delivered = time.monotonic()
    for agent in agents:
        agent.change(phase.get("physics", {}), phase.get("versions", {}))
    returns, steps = [], 0
    running = [agent.run(phase["episodes"] // len(agents)) for agent in agents]
    while running:
        for run in list(running):
            try:
                total = next(run)
            except StopIteration:
                running.remove(run)
                continue
            steps += 1
            if total is not None:
                returns.append(total)
        if time.monotonic() - delivered > AHEAD_SECONDS:
            emitter.flush(60)
            delivered = time.monotonic()
    return {"episodes": len(returns), "steps": steps, "mean": np.mean(returns), "sd": np.std(returns)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--env", required=True, choices=[*POLICIES, "FrozenLake-v1"])
    parser.add_argument("--policy", required=True)
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy-file", help="of the walker on FrozenLake-v1")
    parser.add_argument("--phase", type=json.loads, action="append", required=True)
    args = parser.parse_args()

    # The queue holds a whole run: a slow broker may delay the tests but must not change what they see.
    with rewardwatch.Emitter(args.brokers, args.topic, queue=2_000_000) as emitter:
        kind = Agent if args.env in POLICIES else Walker
        agents = [kind(args, emitter, number) for number in range(args.agents)]
        for number, phase in enumerate(args.phase):
            if number:
                sys.stdin.readline()
            done = run_phase(agents, phase, emitter)
            done["waiting"] = emitter.flush(60)
            print(json.dumps({"phase": number, **done, "lost": emitter.lost}), flush=True)
    return 1 if emitter.lost else 0


if __name__ == "__main__":
    sys.exit(main())
