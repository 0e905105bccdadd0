"""Converts episodes of datasets for offline learning (Minari and RLDS) to telemetry events."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .checks import Refused, check
from .emitter import Event, Made
from .encoding import plain, scalar

Chosen = bool | Sequence[str]
"""Whether events contain observations, or the names of the observation parts that they contain."""

_LARGEST = 512  # numbers of an observation; Rewardwatch follows no more signals of an agent


def minari_events(
    dataset: Any,
    *,
    policy: str | None = None,
    env: str | None = None,
    actions: bool = True,
    observations: Chosen = False,
) -> Iterator[Made]:
    """Converts a Minari dataset to events.

    Args:
        dataset: The `minari.MinariDataset`.
        policy: The policy of all steps. Defaults to the ID of the dataset.
        env: The environment of all steps. Defaults to the ID of the dataset's environment.
        actions: Whether to include the actions.
        observations: Whether to include the observations, or the names of the parts to include.

    Yields:
        An event for each step, or a `Refused` for a step that the service would reject.

    Raises:
        ValueError: If the actions or observations cannot be sent, for example because they are images.
    """
    from .spaces import action_encoder, observation_encoder

    seen = _part(dataset.observation_space, observations, "spaces") if observations else None
    encode_action = action_encoder(dataset.action_space) if actions else None
    encode_observation = observation_encoder(seen) if seen is not None else None
    fixed = _fixed(policy or dataset.spec.dataset_id, env or (dataset.env_spec and dataset.env_spec.id))
    for episode in dataset.iterate_episodes():
        for step in range(len(episode.rewards)):

            def happened(step: int = step, episode: Any = episode) -> Event:
                event: Event = {
                    "reward": scalar(episode.rewards[step]),
                    "terminated": bool(episode.terminations[step]),
                    "truncated": bool(episode.truncations[step]),
                }
                if encode_action:
                    event["action"] = encode_action(_at(episode.actions, step))
                if encode_observation:
                    event["observation"] = encode_observation(_at(_chosen(episode.observations, observations), step))
                return event

            yield _made(fixed, str(episode.id), step, happened)


def rlds_events(
    episodes: Iterable[Mapping[str, Any] | Exception],
    *,
    policy: str,
    env: str | None = None,
    actions: bool = True,
    observations: Chosen = False,
    keep_last: bool = False,
    prefix: str = "",
) -> Iterator[Made]:
    """Converts episodes in the RLDS format to events.

    The last step of an episode contains only the final observation. It is not an event, but determines how the previous
    step ended (https://github.com/google-research/rlds#dataset-format).

    Args:
        episodes: The episodes, which are dicts with `steps`. Exceptions among them are yielded unchanged.
        policy: The policy of all steps.
        env: The environment of all steps.
        actions: Whether to include the actions.
        observations: Whether to include the observations, or the names of the parts to include.
        keep_last: Whether the last step of an episode also contains an action, and is an event.
        prefix: The prefix of the episode IDs, which is followed by a number.

    Yields:
        An event for each step, or a `Refused` for a step that the service would reject.
    """
    fixed = _fixed(policy, env)
    for number, episode in enumerate(episodes):
        if isinstance(episode, Exception):
            yield episode
            continue
        steps = _without_last(episode["steps"], keep_last)
        for at, (step, ended, terminal) in enumerate(steps):

            def happened(step: Any = step, ended: bool = ended, terminal: bool = terminal) -> Event:
                event: Event = {"terminated": ended and terminal, "truncated": ended and not terminal}
                if step.get("reward") is not None:
                    event["reward"] = scalar(step["reward"])
                if actions and step.get("action") is not None:
                    event["action"] = _action(step["action"])
                if observations:
                    event["observation"] = _numbers(_chosen(step["observation"], observations))
                return event

            yield _made(fixed, f"{prefix}{number}", at, happened)


def check_features(features: Any, observations: Chosen) -> Any:
    """Checks the features of a TensorFlow Datasets dataset.

    Args:
        features: The features of an observation.
        observations: Whether to include the observations, or the names of the parts to include.

    Returns:
        The features of the included observations.

    Raises:
        ValueError: If an event cannot contain that many numbers.
    """
    chosen = _part(features, observations, "keys")
    sizes: dict[str, int] = {}
    _sizes("", chosen.get_tensor_info(), sizes)
    if sum(sizes.values()) > _LARGEST:
        by_size = sorted(sizes.items(), key=lambda part: -part[1])
        large = ", ".join(f"{name or 'it'} has {size}" for name, size in by_size[:5])
        raise ValueError(f"an observation has {sum(sizes.values())} numbers, and the limit is {_LARGEST} ({large})")
    return chosen


def _fixed(policy: str, env: str | None) -> Event:
    return {"policy": policy, **({"env": env} if env else {})}


def _made(fixed: Event, episode: str, step: int, happened: Callable[[], Event]) -> Made:
    try:
        event = {**fixed, "episode_id": episode, "step": step, **happened()}
        check(event)
    except Exception as error:  # a bad step must not cost those behind it
        return Refused(f"episode {episode}, step {step}: {error}")
    return event


def _without_last(steps: Iterable[Any], keep_last: bool) -> Iterator[tuple[Any, bool, bool]]:
    """Yields each step with an action, whether it ends the episode, and whether it ends in a terminal state."""
    before: Any = None
    for step in steps:
        last = bool(step.get("is_last", False))
        if before is not None:
            yield before, last and not keep_last, bool(step.get("is_terminal", False))
        before = None if last and not keep_last else step
        if last:
            break
    if before is not None:
        yield before, True, bool(before.get("is_terminal", False))


def _part(whole: Any, observations: Chosen, names_in: str) -> Any:
    """Returns the observations, or only their selected parts. Raises ValueError if a part does not exist."""
    if isinstance(observations, bool):
        return whole
    parts = getattr(whole, names_in, None)
    names = sorted(parts() if callable(parts) else parts or ())
    for name in observations:
        if name not in names:
            raise ValueError(
                f"the observations have no part {name!r}; their parts are: {', '.join(map(repr, names)) or 'none'}"
            )
    return type(whole)({name: whole[name] for name in observations})


def _chosen(value: Any, observations: Chosen) -> Any:
    return value if isinstance(observations, bool) else {name: value[name] for name in observations}


def _at(values: Any, step: int) -> Any:
    """Returns the value of one step from the values of all steps."""
    if isinstance(values, Mapping):
        return {name: _at(part, step) for name, part in values.items()}
    if isinstance(values, tuple):
        return tuple(_at(part, step) for part in values)
    return values[step]


def _action(value: Any) -> Any:
    """Converts an action: to a category if it is a string or a whole number, otherwise to a number or a list of
    numbers.
    """
    made = _numbers(value)
    if isinstance(made, dict):
        return list(made.values())
    return made.decode() if isinstance(made, bytes) else made


def _numbers(value: Any) -> Any:
    """Converts an observation to a number, a list of numbers, or a dict of numbers with dotted names. Strings in a dict
    are omitted.
    """
    if not isinstance(value, Mapping):
        return plain(value)
    flat: dict[str, Any] = {}
    for name, part in value.items():
        made = _numbers(part)
        if isinstance(made, (dict, list)):
            parts = made.items() if isinstance(made, dict) else enumerate(made)
            flat.update({f"{name}.{deeper}": x for deeper, x in parts})
        elif not isinstance(made, (str, bytes)):
            flat[str(name)] = made
    return flat


def _sizes(name: str, info: Any, sizes: dict[str, int]) -> None:
    """Collects how many numbers each part of the observations has, by name."""
    if isinstance(info, Mapping):
        for part, inner in info.items():
            _sizes(f"{name}.{part}" if name else str(part), inner, sizes)
    elif info.np_dtype.kind != "O":  # no text
        sizes[name] = math.prod(length or 1 for length in info.shape)
