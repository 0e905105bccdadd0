"""A Gymnasium environment that sends every step."""

from typing import Any, Unpack

import gymnasium

from .emitter import Emitter
from .source import Names, Observations, Source
from .spaces import encoders
from .steps import Agent


class EnvWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Sends every step of an environment without changing it.

    Also sends `outcomes` and `reward_components` (name to number) if the environment or an inner wrapper puts them
    into info. Closing the environment does not close the emitter, because environments share it.
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
        """Takes the arguments of rewardwatch.wrap."""
        super().__init__(env)
        self._source = Source(emitter, names, env.spec.id if env.spec else None)
        self._agent = Agent(self._source, encoders(env.action_space, env.observation_space, actions, observations))

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes policy_version, env_version or reward_version, starting with the next step. None removes a
        version.
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
