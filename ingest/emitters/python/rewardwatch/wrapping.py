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

    env: a gymnasium.Env or VectorEnv, a VecEnv of Stable-Baselines3, or a ParallelEnv or AECEnv of PettingZoo.
    emitter: by default Emitter(), which all environments of the process share.
    observations: whether to send the observation that each action was based on; or a function, called in the agent's
    thread, that converts an observation to what is sent. actions: whether to send the actions. For the other options,
    see Names; policy and env default to the id of the environment.

    Raises ValueError if the environment's observations or actions cannot be sent, for example images.
    """
    for library, kind, module, wrapper in _KINDS:
        if library in sys.modules and isinstance(env, getattr(sys.modules[library], kind)):
            return getattr(importlib.import_module(f".{module}", __package__), wrapper)(env, emitter, **options)
    raise TypeError(f"not an environment of Gymnasium, Stable-Baselines3 or PettingZoo: {type(env).__name__}")
