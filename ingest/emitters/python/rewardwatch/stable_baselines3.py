"""A wrapper for Stable-Baselines3 vector environments, and a callback."""

from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from .emitter import Emitter
from .lanes import Lanes, Told
from .source import Names, Observations, Source
from .steps import told


class RewardwatchVecEnv(VecEnvWrapper):
    """Sends every step of a `VecEnv`, in this process (`DummyVecEnv`) or in others (`SubprocVecEnv`).

    Each environment is a separate agent: `AGENT_ID/0`, `AGENT_ID/1` and so on.
    """

    def __init__(
        self,
        venv: VecEnv,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Wraps a vector environment.

        Args:
            venv: The environment to wrap.
            emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
            observations: Whether to send the observation that each action was based on, or a function that converts an
                observation to the value to send. The function is called in the agent's thread.
            actions: Whether to send the actions.
            **names: The names that identify the agent, such as `policy` and `policy_version`: see `rewardwatch.wrap`.
                `policy` is required.

        Raises:
            ValueError: If the observations or actions cannot be sent, for example because they are images.
        """
        super().__init__(venv)
        self._source = Source(emitter, names)
        self._lanes = _lanes(self._source, venv, actions, observations)
        self._actions: Any = None

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._source.set_versions(**versions)

    def reset(self) -> Any:
        observations = self.venv.reset()
        self._lanes.begin(observations)
        return observations

    def step_async(self, actions: Any) -> None:
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        truncated = _truncated(dones, infos)
        self._lanes.stepped(self._actions, rewards, dones & ~truncated, truncated, infos, observations)
        return observations, rewards, dones, infos


class RewardwatchCallback(BaseCallback):
    """Sends every step that a model learns from, without a wrapper.

    Rewards and observations are sent as they were before `VecNormalize`.
    """

    def __init__(
        self,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Creates a callback.

        Args:
            emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
            observations: Whether to send the observation that each action was based on, or a function that converts an
                observation to the value to send. The function is called in the agent's thread.
            actions: Whether to send the actions.
            **names: The names that identify the agent, such as `policy` and `policy_version`: see `rewardwatch.wrap`.
                `policy` is required.

        Raises:
            ValueError: When the model starts to learn, if the observations or actions cannot be sent.
        """
        super().__init__()
        self._source = Source(emitter, names)
        self._sent = (actions, observations)
        self._lanes: Lanes | None = None
        self._shape: tuple[Any, ...] | None = None  # of the environments that the lanes are of
        # What the model holds as _last_episode_starts unless it resets its environments, which makes a new array.
        self._starts: tuple[Any, ...] = ()

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._source.set_versions(**versions)

    def _on_training_start(self) -> None:
        if self._lanes and any(self.model._last_episode_starts is each for each in self._starts):
            return  # the model goes on in the episodes that are open
        self._normalised = self.model.get_vec_normalize_env()
        venv = self.training_env
        shape = (venv.num_envs, venv.action_space, venv.observation_space)
        if self._shape != shape:
            if self._lanes:
                self._source.renew()  # or the ids of episodes would come again
            self._lanes = _lanes(self._source, venv, *self._sent)
            self._shape = shape
        assert self._lanes is not None
        self._starts = (self.model._last_episode_starts,)
        self._lanes.begin(self._observations(self.model._last_obs))

    def _on_step(self) -> bool:
        assert self._lanes is not None
        dones, infos = self.locals["dones"], self.locals["infos"]
        self._starts = (self.model._last_episode_starts, dones)
        rewards = self._normalised.get_original_reward() if self._normalised else self.locals["rewards"]
        truncated = _truncated(dones, infos)
        observations = self._observations(self.locals["new_obs"])
        self._lanes.stepped(self.locals["actions"], rewards, dones & ~truncated, truncated, infos, observations)
        return True

    def _observations(self, observations: Any) -> Any:
        return self._normalised.get_original_obs() if self._normalised else observations


def _lanes(source: Source, venv: VecEnv, actions: bool, observations: Observations) -> Lanes:
    return Lanes(
        source,
        venv.num_envs,
        venv.action_space,
        venv.observation_space,
        actions,
        observations,
        pause=0,
        told_of=_told,
    )


def _truncated(dones: Any, infos: list[dict[str, Any]]) -> Any:
    if not np.count_nonzero(dones):
        return dones
    return np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones


def _told(infos: list[dict[str, Any]], _count: int) -> Told | None:
    each = [told(info) for info in infos]
    return each if any(each) else None
