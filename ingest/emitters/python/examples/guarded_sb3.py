"""A Stable-Baselines3 DQN that drives a taxi. While its guards hold, it stops learning and takes its best actions.

Its guard limits how often it picks up or drops off a passenger, which is expensive in the wrong place:

    policies:
      - match: taxi
        guards: {limits: [{name: stops, actions: ["4", "5"], share: 0.25}]}

Set REWARDWATCH_URL to the URL of the service.
"""

import argparse

import gymnasium
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from tally import Tally

import rewardwatch

STOPS = (4, 5)


class Allowed(gymnasium.Wrapper):
    """Keeps driving if the guards do not allow a stop. It wraps the wrapper that sends the telemetry."""

    def __init__(self, env, guard, tally):
        super().__init__(env)
        self.guard, self.tally = guard, tally

    def step(self, action):
        action = int(action)
        if not self.guard.allows(action):
            action = int(self.action_space.sample()) % STOPS[0]
        self.tally.count(stops=action in STOPS)
        return self.env.step(action)


class WhileAllowed(BaseCallback):
    """Ends learn() when the guards hold."""

    def __init__(self, tally):
        super().__init__()
        self.tally = tally

    def _on_step(self):
        self.tally.count(learned=1)
        return self.tally.exploration()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    args = parser.parse_args()

    with rewardwatch.Emitter() as emitter, rewardwatch.Guard("taxi", unsafe=STOPS) as guard:
        tally = Tally(guard)
        taxi = rewardwatch.wrap(gymnasium.make("Taxi-v3"), emitter, policy="taxi")
        env = Allowed(taxi, guard, tally)
        model = DQN("MlpPolicy", env, seed=1, learning_starts=100, device="cpu")
        done = 0
        observation, _ = env.reset(seed=1)
        while done + model.num_timesteps < args.steps:
            if tally.exploration():
                model.set_env(env)  # it has moved on without the model
                model.learn(args.steps - done - model.num_timesteps, WhileAllowed(tally), reset_num_timesteps=False)
                observation, _ = env.reset()
                continue
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, _ = env.step(action)
            done += 1
            if terminated or truncated:
                observation, _ = env.reset()


if __name__ == "__main__":
    main()
