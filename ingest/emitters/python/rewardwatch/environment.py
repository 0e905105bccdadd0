"""A wrapper that sends every step of a Gymnasium environment."""

from typing import Any, Unpack

import gymnasium

from .emitter import Emitter
from .source import Names, Observations, Source
from .spaces import encoders
from .steps import Agent


class EnvWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Sends every step of an environment without changing its behavior.

    If the environment or an inner wrapper adds `outcomes` or `reward_components` (name to number) to `info`, these are
    also sent. Closing the environment does not close the emitter, because environments can share it.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        /,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Wraps an environment.

        Args:
            env: The environment to wrap.
            emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
            observations: Whether to send the observation that each action was based on, or a function that converts an
                observation to the value to send. The function is called in the agent's thread.
            actions: Whether to send the actions.
            **names: The names that identify the agent, such as `policy` and `policy_version`: see `rewardwatch.wrap`.

        Raises:
            ValueError: If the observations or actions cannot be sent, for example because they are images.
        """
        super().__init__(env)
        self._source = Source(emitter, names, env.spec.id if env.spec else None)
        self._agent = Agent(self._source, encoders(env.action_space, env.observation_space, actions, observations))

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._source.set_versions(**versions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._agent.begin(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._agent.stepped(action, reward, terminated, truncated, info, observation)
        return observation, reward, terminated, truncated, info
