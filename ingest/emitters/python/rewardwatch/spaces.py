"""Determines what is sent of observations and actions from their spaces, before the first step."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gymnasium import spaces

from .checks import Refused, check
from .encoding import plain, scalar, snapshot
from .source import Observations

Encode = Callable[[Any], Any]

MAX_OBSERVATION = 512
"""Maximum number of numbers in an observation: Rewardwatch does not monitor more signals."""
_MAX_ACTION = 256

_Numbers = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Encoders:
    """How actions and observations are sent. A part that is not sent is `None`."""

    action: Encode | None
    observation: Encode | None
    seen: Encode | None  # runs in the agent's thread: what is to be kept of an observation


def encoders(
    action_space: spaces.Space[Any], observation_space: spaces.Space[Any], actions: bool, observations: Observations
) -> Encoders:
    """Returns the encoders of an environment.

    Args:
        action_space: The space of the actions.
        observation_space: The space of the observations.
        actions: Whether to send the actions.
        observations: Whether to send the observations, or a function that converts an observation to the value to send.

    Raises:
        ValueError: If the actions or observations cannot be sent.
    """
    action = action_encoder(action_space) if actions else None
    if callable(observations):
        _check_summary(observation_space, observations)
        return Encoders(action, plain, observations)
    if observations:
        return Encoders(action, observation_encoder(observation_space), snapshot)
    return Encoders(action, None, None)


def action_encoder(space: spaces.Space[Any]) -> Encode:
    """Returns a function that converts an action to telemetry.

    Actions of `Discrete` and `Text` spaces become categories, and all others lists of numbers.

    Args:
        space: The space of the actions.

    Raises:
        ValueError: If telemetry does not support the space.
    """
    try:
        numbers = 0 if isinstance(space, spaces.Text) else _numbers(space)
    except ValueError as error:
        raise ValueError(f"the action {error}; use actions=False to omit actions") from None
    if numbers > _MAX_ACTION:
        raise ValueError(
            f"an action of {space} has {numbers} numbers, and the limit is {_MAX_ACTION};"
            " use actions=False to omit actions"
        )
    if isinstance(space, spaces.Discrete):
        return scalar
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return functools.partial(_flat_list, space)
    return plain


def observation_encoder(space: spaces.Space[Any]) -> Encode:
    """Returns a function that converts an observation to telemetry: to a number, a list, or a dict with dotted names.

    Args:
        space: The space of the observations.

    Raises:
        ValueError: If telemetry does not support the space, such as images.
    """
    advice = "use observations=False to omit observations, or observations=FUNCTION to send its result instead"
    try:
        numbers = _numbers(space)
    except ValueError as error:
        raise ValueError(f"the observation {error}; {advice}") from None
    if numbers > MAX_OBSERVATION:
        raise ValueError(
            f"an observation of {space} has {numbers} numbers, and the limit is {MAX_OBSERVATION}; {advice}, such as"
            ' lambda image: {"mean": image.mean(), "sd": image.std()}'
        )
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return functools.partial(_flat, space)
    return plain


def _check_summary(space: spaces.Space[Any], summarise: Encode) -> None:
    """Raises `ValueError` if the result of `summarise` cannot be sent."""
    made = plain(summarise(space.sample()))
    try:
        check({"policy": "p", "reward": 0, "observation": made})
    except Refused as error:
        raise ValueError(f"the result of observations={summarise!r} cannot be sent: {error}") from None
    if isinstance(made, (dict, list)) and len(made) > MAX_OBSERVATION:
        raise ValueError(f"observations={summarise!r} returns {len(made)} numbers, and the limit is {MAX_OBSERVATION}")


def _numbers(space: spaces.Space[Any]) -> int:
    """Returns the number of values that are sent for the space; 0 for text."""
    if isinstance(space, spaces.Dict):
        return sum(_numbers(part) for part in space.spaces.values())
    if isinstance(space, spaces.Tuple):
        return sum(_numbers(part) for part in space.spaces)
    if isinstance(space, spaces.Text):
        return 0
    if not isinstance(space, _Numbers):
        raise ValueError(f"space contains a {type(space).__name__}, which telemetry does not support")
    numbers = 1
    for length in space.shape or ():
        numbers *= length
    return numbers


def _flat(space: spaces.Space[Any], value: Any) -> dict[str, Any]:
    """Returns the numbers of a Dict or Tuple by dotted name."""
    flat: dict[str, Any] = {}
    parts: Any = value.items() if isinstance(space, spaces.Dict) else enumerate(value)
    for name, part in parts:
        inner: Any = space[name]  # type: ignore[index]
        if isinstance(inner, (spaces.Dict, spaces.Tuple)):
            flat.update({f"{name}.{deeper}": x for deeper, x in _flat(inner, part).items()})
        elif not isinstance(inner, spaces.Text):
            made = plain(part)
            flat.update({f"{name}.{i}": x for i, x in enumerate(made)} if isinstance(made, list) else {str(name): made})
    return flat


def _flat_list(space: spaces.Space[Any], value: Any) -> list[Any]:
    return list(_flat(space, value).values())
