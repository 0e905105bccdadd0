"""Records episodes of Gymnasium environments with scripted agents: healthy ones, then some for each kind of change.

recordings.py DIRECTORY [SEED ...] writes DIRECTORY/ENVIRONMENT-SEED.bin for each environment and seed (1 to 3 without
any). A file is a list of recordings, the healthy one first. A recording is a line of JSON, then its episodes: the
number of steps that were kept (int32), and for each step its number (int32), whether there is a next one and whether
it terminates (one byte each), then as float32 the observation, the action, the reward, and the next observation (zeros
without one). All numbers are little-endian.
"""

import json
import pathlib
import struct
import sys

import gymnasium
import numpy as np
from gymnasium.envs.box2d import lunar_lander

HEAD, PAIRS = 16, 23  # kept steps: the first ones, and random pairs of consecutive ones; and the last one
BASELINE, FRESH, CHANGED = 500, 300, 100  # episodes to learn from, other healthy ones, and those of each change

CAUSES = {
    "healthy": "none",
    "eps": "policy",
    "replaced": "policy",
    "bias": "policy",
    "gravity": "environment",
    "length": "environment",
    "force": "environment",
    "start": "environment",
    "rscale": "reward_function",
    "roffset": "reward_function",
    "rterm": "reward_function",
    "raction": "reward_function",
    "noise": "observations",
    "delay": "observations",
    "stuck": "observations",
    "shifted": "observations",
}


class World:
    """An environment with an agent.

    act returns the action for an observation, see the observation as a vector; grid worlds number theirs. actions is
    the number of categories, or of numbers if numeric. reward is a typical deviation of a step's reward.
    """

    grid = False
    numeric = False
    actions = 2
    reward = 1.0
    stuck = -1  # the component that stands still, or is shifted
    never = frozenset()  # changes that say nothing here
    together = 1  # episodes that count as one

    def __init__(self, rng, change):
        self.rng = rng
        self.change = change

    def see(self, observation):
        return observation

    def unless(self, change, usual, changed):
        """Returns a value that one change sets."""
        return changed if self.change == change else usual

    def explores(self):
        return self.rng.random() < self.eps


class CartPole(World):
    def __init__(self, rng, change):
        super().__init__(rng, change)
        self.env = gymnasium.make("CartPole-v1", max_episode_steps=200)
        pole = self.env.unwrapped
        pole.gravity = self.unless("gravity", pole.gravity, 15.0)
        pole.force_mag = self.unless("force", pole.force_mag, 7.5)
        if change == "length":
            pole.length = 0.8
            pole.polemass_length = pole.masspole * pole.length
        self.weights = self.unless("replaced", np.array([0.15, 0.4, 1.0, 0.6]), np.array([0.6, 0.8, 1.0, 0.9]))
        self.eps, self.bias = self.unless("eps", 0.02, 0.15), self.unless("bias", 0, 0.12)

    def act(self, o):
        if self.explores():
            return int(self.rng.integers(2))
        return int(self.weights @ o + 0.15 * self.rng.normal() + self.bias > 0)


class Acrobot(World):
    actions = 3

    def __init__(self, rng, change):
        super().__init__(rng, change)
        self.env = gymnasium.make("Acrobot-v1", max_episode_steps=200)
        arm = self.env.unwrapped
        arm.LINK_MASS_1 = self.unless("gravity", arm.LINK_MASS_1, 1.4)
        arm.LINK_LENGTH_1 = self.unless("length", arm.LINK_LENGTH_1, 1.2)
        arm.AVAIL_TORQUE = self.unless("force", arm.AVAIL_TORQUE, [-0.8, 0.0, 0.8])
        self.eps, self.bias = self.unless("eps", 0.05, 0.25), self.unless("bias", 0, 0.6)
        self.weight = self.unless("replaced", 1.0, 0.2)

    def act(self, o):
        if self.explores():
            return int(self.rng.integers(3))
        x = o[5] * self.weight + 0.4 * (1 - self.weight) * o[4] + 0.3 * self.rng.normal() + self.bias
        return 2 if x > 0.1 else 0 if x < -0.1 else 1


class MountainCarContinuous(World):
    numeric, actions, reward, never = True, 1, 0.1, frozenset({"rterm"})

    def __init__(self, rng, change):
        super().__init__(rng, change)
        self.env = gymnasium.make("MountainCarContinuous-v0", max_episode_steps=200)
        car = self.env.unwrapped
        car.power = {"gravity": 0.0013, "force": 0.0018}.get(change, car.power)
        car.max_speed = self.unless("length", car.max_speed, 0.05)
        self.eps, self.bias = self.unless("eps", 0.15, 0.5), self.unless("bias", 0, 0.15)
        self.gain = self.unless("replaced", 0.9, 0.6)

    def act(self, o):
        a = self.gain * np.tanh(120 * o[1]) + 0.2 * np.sin(4 * o[0]) + self.bias + self.eps * self.rng.normal()
        return np.array([np.clip(a, -1, 1)], np.float32)


class Pendulum(World):
    numeric, actions, reward, never = True, 1, 3.0, frozenset({"rterm"})

    def __init__(self, rng, change):
        super().__init__(rng, change)
        self.env = gymnasium.make("Pendulum-v1", max_episode_steps=120, g=self.unless("gravity", 10.0, 13.0))
        pole = self.env.unwrapped
        pole.m = self.unless("length", pole.m, 1.25)
        pole.dt = self.unless("force", pole.dt, 0.06)
        self.eps, self.bias = self.unless("eps", 0.2, 0.6), self.unless("bias", 0, 0.4)
        self.gain = self.unless("replaced", 1.0, 0.6)

    def act(self, o):
        cos, sin, speed = o
        if cos > 0.8:
            a = -(8 * np.arctan2(sin, cos) + 1.5 * speed) * self.gain
        elif abs(speed) > 0.05:
            a = 1.5 * np.sign(speed) * np.sign(20 - 0.5 * speed * speed - 10 * cos)
        else:
            a = 1.0
        return np.array([np.clip(a + self.bias + self.eps * self.rng.normal(), -2, 2)], np.float32)


class LunarLander(World):
    actions, reward, stuck = 4, 2.0, 4

    def __init__(self, rng, change):
        super().__init__(rng, change)
        wind = {"enable_wind": True, "wind_power": 8.0} if change == "length" else {}
        gravity = self.unless("gravity", -10.0, -11.5)
        self.env = gymnasium.make("LunarLander-v3", max_episode_steps=300, gravity=gravity, **wind)
        lunar_lander.MAIN_ENGINE_POWER = self.unless("force", 13.0, 10.4)
        self.eps, self.bias = self.unless("eps", 0.03, 0.2), self.unless("bias", 0, 0.12)

    def act(self, o):
        if self.explores():
            return int(self.rng.integers(4))
        if self.rng.random() < self.bias:
            return 1
        if self.change == "replaced":
            o = o * np.array([0.6, 1.2, 0.7, 1.1, 1, 1.3, 1, 1], np.float32)
        return int(lunar_lander.heuristic(self.env.unwrapped, o))


class Slippery(gymnasium.Wrapper):
    """A grid world in which some actions are replaced by random ones."""

    def __init__(self, env, share, rng):
        super().__init__(env)
        self.share, self.rng = share, rng

    def step(self, action):
        if self.share and self.rng.random() < self.share:
            action = int(self.rng.integers(self.env.action_space.n))
        return self.env.step(action)


def values(env, rounds):
    """Returns the value of each action in each state, by value iteration."""
    outcomes = env.unwrapped.P
    best = np.zeros(env.observation_space.n)

    def value(state, action):
        return sum(p * (reward + (0 if end else 0.99 * best[to])) for p, to, reward, end in outcomes[state][action])

    for _ in range(rounds):
        q = np.array([[value(s, a) for a in range(env.action_space.n)] for s in range(len(best))])
        if abs(q.max(1) - best).max() < 1e-9:
            break
        best = q.max(1)
    return q


class Grid(World):
    """A world of numbered states. Its agent chooses by the values of actions: softly, or sometimes at random."""

    grid = True
    never = frozenset({"start", "noise", "delay", "stuck", "shifted"})

    def soft(self, o, temperature):
        q = self.values[o] / temperature
        p = np.exp(q - q.max())
        return int(self.rng.choice(len(p), p=p / p.sum()))


class Taxi(Grid):
    actions, reward = 6, 5.0

    def __init__(self, rng, change):
        super().__init__(rng, change)
        wet = {"is_rainy": change == "gravity", "fickle_passenger": change == "length"}
        env = gymnasium.make("Taxi-v4", max_episode_steps=60, **wet)
        self.env = Slippery(env, self.unless("force", 0, 0.15), rng)
        self.values = values(gymnasium.make("Taxi-v4"), 400)
        liking = {"replaced": [0.6, 0.6, 0, 0, 0, 0], "bias": [0, 0, 0.5, 0, 0, 0]}.get(change, np.zeros(6))
        self.values = self.values + np.array(liking)
        self.temperature = self.unless("eps", 0.35, 1.5)

    def see(self, o):
        return np.array(list(self.env.unwrapped.decode(o)), np.float32)

    def act(self, o):
        return self.soft(o, self.temperature)


class FrozenLake(Grid):
    actions, reward = 4, 0.3

    def __init__(self, rng, change):
        super().__init__(rng, change)
        lake = {"map_name": "8x8", "is_slippery": True}
        env = gymnasium.make("FrozenLake-v1", max_episode_steps=100, **lake)
        self.env = Slippery(env, {"gravity": 0.15, "length": 0.3, "force": 0.08}.get(change, 0), rng)
        self.values = values(gymnasium.make("FrozenLake-v1", **lake), 600)
        if change == "bias":
            self.values = self.values + np.array([0, 0.03, 0, 0])
        if change == "replaced":
            self.values = np.round(self.values, 1) + np.array([0, 0.01, 0.02, 0])
        self.eps = self.unless("eps", 0.1, 0.35)

    def see(self, o):
        return np.array([o // 8, o % 8], np.float32)

    def act(self, o):
        return int(self.rng.integers(4)) if self.explores() else int(self.values[o].argmax())


class Decisions(gymnasium.Env):
    """Single decisions: a context of three numbers, four actions, a reward of 0 or 1."""

    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, rng, shift, spread):
        self.rng = rng
        self.weights = np.random.default_rng(5).normal(size=(4, 3))
        self.shift, self.spread = np.array([shift, 0, 0]), np.array([1, 1, spread])

    def reset(self, seed=None, options=None):
        self.context = self.rng.normal(size=3) * self.spread + self.shift
        return self.context.astype(np.float32), {}

    def step(self, action):
        likely = 1 / (1 + np.exp(-(self.weights[action] @ self.context)))
        return self.context.astype(np.float32), float(self.rng.random() < likely), True, False, {}


class Bandit(World):
    actions, reward, together = 4, 0.5, 20
    never = frozenset({"start", "noise", "delay", "stuck", "shifted", "rterm"})

    def __init__(self, rng, change):
        super().__init__(rng, change)
        shift = {"gravity": 0.7, "length": 0.4, "force": 1.0}.get(change, 0)
        self.env = Decisions(rng, shift, self.unless("length", 1, 1.5))
        self.weights = self.env.weights
        if change == "replaced":
            self.weights = self.weights + 0.9 * np.random.default_rng(8).normal(size=(4, 3))
        self.temperature = self.unless("eps", 0.6, 2.0)
        self.liking = self.unless("bias", np.zeros(4), np.array([0.7, 0, 0, 0]))

    def act(self, o):
        q = self.weights @ o / self.temperature + self.liking
        p = np.exp(q - q.max())
        return int(self.rng.choice(4, p=p / p.sum()))


class MountainCar(World):
    """Was not looked at while the method was made."""

    actions = 3

    def __init__(self, rng, change):
        super().__init__(rng, change)
        self.env = gymnasium.make("MountainCar-v0", max_episode_steps=200)
        car = self.env.unwrapped
        car.gravity = self.unless("gravity", car.gravity, 0.0028)
        car.max_speed = self.unless("length", car.max_speed, 0.05)
        car.force = self.unless("force", car.force, 0.0013)
        self.eps, self.bias = self.unless("eps", 0.05, 0.3), self.unless("bias", 0, 0.004)
        self.wave = self.unless("replaced", 0, 0.01)

    def act(self, o):
        if self.explores():
            return int(self.rng.integers(3))
        return 2 if o[1] + self.bias - self.wave * np.sin(3 * o[0]) + 0.003 * self.rng.normal() > 0 else 0


class CliffWalking(Grid):
    """Was not looked at while the method was made."""

    actions, reward = 4, 5.0

    def __init__(self, rng, change):
        super().__init__(rng, change)
        env = gymnasium.make("CliffWalking-v1", max_episode_steps=60)
        self.env = Slippery(env, {"gravity": 0.15, "length": 0.3, "force": 0.08}.get(change, 0), rng)
        self.values = values(gymnasium.make("CliffWalking-v1"), 600)
        self.values = self.values + np.array([{"bias": 0.6, "replaced": 1.2}.get(change, 0), 0, 0, 0])
        self.temperature = self.unless("eps", 0.35, 1.2)

    def see(self, o):
        return np.array([o // 12, o % 12], np.float32)

    def act(self, o):
        return self.soft(o, self.temperature)


WORLDS = {
    "cartpole": CartPole,
    "acrobot": Acrobot,
    "mountain": MountainCarContinuous,
    "pendulum": Pendulum,
    "lander": LunarLander,
    "taxi": Taxi,
    "lake": FrozenLake,
    "bandit": Bandit,
    "cardiscrete": MountainCar,
    "cliff": CliffWalking,
}


class Sensors:
    """What the agent is told of an observation. spread is the healthy standard deviation of each component."""

    def __init__(self, world, spread):
        self.world, self.spread, self.last = world, spread, None

    def __call__(self, true):
        change = self.world.change
        if change == "noise":
            return true + (0.3 * self.spread * self.world.rng.normal(size=len(true))).astype(np.float32)
        if change == "delay":
            told = true if self.last is None else self.last
            self.last = true
            return told
        if change == "stuck":
            told = true.copy()
            told[self.world.stuck] = 0
            return told
        if change == "shifted":
            told = true.copy()
            told[self.world.stuck] += self.spread[self.world.stuck]
            return told
        return true


def paid(world, reward, action, terminated):
    """Returns the reward that is told."""
    unit = world.reward
    match world.change:
        case "rscale":
            return 0.7 * reward
        case "roffset":
            return reward - 0.1 * unit
        case "rterm" if terminated:
            return reward - 3 * unit
        case "raction":
            return reward - 0.3 * unit * float(np.abs(action).sum() if world.numeric else action == 1)
    return reward


def begin(world):
    """Returns the first observation of an episode."""
    o, _ = world.env.reset()
    if world.change == "start":
        for _ in range(6):
            o, _, terminated, truncated, _ = world.env.step(world.env.action_space.sample())
            if terminated or truncated:
                o, _ = world.env.reset()
    return o


def episode(world, spread):
    """Returns the steps of an episode: what was observed, the action, the reward, and whether it terminated."""
    o, sensors, steps, over = begin(world), Sensors(world, spread), [], False
    while not over:
        seen = sensors(np.array(world.see(o), np.float32))
        action = world.act(o if world.grid else seen)
        o, reward, terminated, truncated, _ = world.env.step(action)
        steps.append((seen, action, paid(world, float(reward), action, terminated), terminated))
        over = terminated or truncated
    return steps


def kept(rng, n):
    """Returns the numbers of the steps that are kept of n."""
    pairs = max(0, (n - HEAD) // 2)
    numbers = set(range(min(n, HEAD))) | {n - 1}
    if pairs:
        for pair in rng.choice(pairs, min(PAIRS, pairs), replace=False):
            numbers |= {HEAD + 2 * int(pair), HEAD + 2 * int(pair) + 1}
    return sorted(numbers)


def write(out, steps, numbers):
    """Writes an episode."""
    out.write(struct.pack("<i", len(numbers)))
    for t in numbers:
        seen, action, reward, terminated = steps[t]
        following = steps[t + 1][0] if t + 1 < len(steps) else np.zeros_like(seen)
        out.write(struct.pack("<iBB", t, t + 1 < len(steps), terminated))
        row = [seen, np.atleast_1d(np.array(action, np.float32)), [reward], following]
        out.write(np.concatenate(row).astype("<f4").tobytes())


def record(out, name, change, seed, episodes, spread):
    """Writes a recording. It returns the standard deviation of each component of the observation."""
    rng = np.random.default_rng([seed, sum(map(ord, change)), sum(map(ord, name))])
    world = WORLDS[name](rng, change)
    first = world.env.reset(seed=int(rng.integers(1 << 30)))[0]
    world.env.action_space.seed(seed)
    episodes *= world.together
    header = {
        "env": name,
        "seed": seed,
        "change": change,
        "cause": CAUSES[change],
        "observations": len(world.see(first)),
        "kind": "num" if world.numeric else "cat",
        "actions": world.actions,
        "episodes": episodes,
    }
    out.write((json.dumps(header) + "\n").encode())
    observed = []
    for number in range(episodes):
        steps = episode(world, spread)
        numbers = kept(rng, len(steps))
        write(out, steps, numbers)
        if number < 60:
            observed += [steps[t][0] for t in numbers]
    return np.std(observed, axis=0)


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for seed in map(int, sys.argv[2:] or ["1", "2", "3"]):
        for name, world in WORLDS.items():
            path = directory / f"{name}-{seed}.bin"
            if path.exists():
                continue
            part = path.with_suffix(".part")
            with part.open("wb") as out:
                spread = record(out, name, "healthy", seed, BASELINE + FRESH, None)
                for change in CAUSES:
                    if change != "healthy" and change not in world.never:
                        record(out, name, change, seed, CHANGED, spread)
            part.rename(path)
            print(path, flush=True)


if __name__ == "__main__":
    main()
