"""A wrapper that sends every step of a Gymnasium vector environment."""

from typing import Any, Unpack

from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from .emitter import Emitter
from .lanes import Lanes, Told
from .source import Names, Observations, Source
from .steps import told


class VectorEnvWrapper(VectorWrapper[Any, Any, Any, Any, Any]):
    """Sends every step of the sub-environments without changing their behavior.

    Each sub-environment is a separate agent: `AGENT_ID/0`, `AGENT_ID/1` and so on.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        /,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Wraps a vector environment.

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
        self._lanes = Lanes(
            self._source,
            env.num_envs,
            env.single_action_space,
            env.single_observation_space,
            actions,
            observations,
            pause=int(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP) == AutoresetMode.NEXT_STEP),
            told_of=_told,
        )

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._source.set_versions(**versions)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        which = (options or {}).get("reset_mask")  # before reset, which takes it out
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._lanes.begin(observations, which)
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._lanes.stepped(actions, rewards, terminated, truncated, infos, observations)
        return observations, rewards, terminated, truncated, infos


def _told(infos: dict[str, Any], count: int) -> Told | None:
    if "outcomes" in infos or "reward_components" in infos or "final_info" in infos:
        each = [_of(infos, lane) for lane in range(count)]
        # After a reset in the same step the info is that of the reset, and final_info that of the step.
        return [told(info.get("final_info", info)) for info in each]
    return None


def _of(infos: dict[str, Any], lane: int) -> dict[str, Any]:
    """Returns the info of one sub-environment. Gymnasium provides arrays, with masks under names that begin with
    "_".
    """
    info = {}
    for name, values in infos.items():
        mask = infos.get(f"_{name}")
        if mask is not None and mask[lane]:
            info[name] = _of(values, lane) if isinstance(values, dict) else values[lane]
    return info
