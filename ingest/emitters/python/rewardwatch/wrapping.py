"""Wraps any supported environment."""

import importlib
import sys
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from .emitter import Emitter
from .source import Options

if TYPE_CHECKING:
    import gymnasium

    from .environment import EnvWrapper
    from .vectors import VectorEnvWrapper

Environment = TypeVar("Environment")

# Where a kind of environment is from, and what wraps it. A library that is not imported has made no environment.
_KINDS = [
    ("gymnasium", "Env", "environment", "EnvWrapper"),
    ("gymnasium.vector", "VectorEnv", "vectors", "VectorEnvWrapper"),
    ("stable_baselines3.common.vec_env", "VecEnv", "stable_baselines3", "RewardwatchVecEnv"),
    ("pettingzoo.utils.env", "ParallelEnv", "pettingzoo", "ParallelEnvWrapper"),
    ("pettingzoo.utils.env", "AECEnv", "pettingzoo", "AECEnvWrapper"),
]


@overload
def wrap(
    env: "gymnasium.Env[Any, Any]", /, emitter: Emitter | None = None, **options: Unpack[Options]
) -> "EnvWrapper": ...
@overload
def wrap(
    env: "gymnasium.vector.VectorEnv[Any, Any, Any]", /, emitter: Emitter | None = None, **options: Unpack[Options]
) -> "VectorEnvWrapper": ...
@overload
def wrap(env: Environment, /, emitter: Emitter | None = None, **options: Unpack[Options]) -> Environment: ...
def wrap(env: Any, /, emitter: Emitter | None = None, **options: Any) -> Any:
    """Wraps an environment so that each of its steps is sent.

    Args:
        env: A Gymnasium `Env` or `VectorEnv`, a Stable-Baselines3 `VecEnv`, or a PettingZoo `ParallelEnv` or `AECEnv`.
        emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
        **options: Optional arguments:

            - `observations`: Whether to send the observation that each action was based on, or a function that converts
              an observation to the value to send. The function is called in the agent's thread.
            - `actions`: Whether to send the actions.
            - `policy`, `policy_version`, `env`, `env_version`, `reward_version`, `agent_id` and `labels`: The names of
              the agent. `policy` and `env` default to the ID of the environment.

    Returns:
        An environment of the same kind, with an additional method `set_versions`.

    Raises:
        TypeError: If `env` is not a supported environment, or an option is unknown.
        ValueError: If the observations or actions cannot be sent, for example because they are images.
    """
    for library, kind, module, wrapper in _KINDS:
        if library in sys.modules and isinstance(env, getattr(sys.modules[library], kind)):
            return getattr(importlib.import_module(f".{module}", __package__), wrapper)(env, emitter, **options)
    raise TypeError(f"not an environment of Gymnasium, Stable-Baselines3 or PettingZoo: {type(env).__name__}")
