"""Finds events that the service would reject before they are sent (docs/telemetry.md, "What is refused")."""

import re
from collections.abc import Callable
from typing import Any

MAX_RECORD = 1 << 20  # bytes
MAX_NUMBERS = 1024  # in action, observation, outcomes and reward_components together
_MAX_STRING = 1 << 10  # bytes
_MAX_LABELS = 64
_MAX_COUNT = 1 << 63

_REQUIRED = ("reward", "action", "outcomes", "episode")
_COUNTED = ("action", "observation", "outcomes", "reward_components")
_NOT_FINITE = {"nan", "inf", "infinity"}
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


class Refused(ValueError):  # noqa: N818 - it says what happens
    """An event that the service would reject."""


def check(event: Any) -> None:
    """Checks a telemetry version 1 event.

    Args:
        event: The event, which must contain only plain values.

    Raises:
        Refused: If the service would reject the event. The message contains the reason.
    """
    if not isinstance(event, dict):
        raise Refused(f"an event must be a dict, not a {type(event).__name__}")
    for name, valid, expected in _FIELDS:
        value = event.get(name)
        if value is not None and not valid(value):
            raise Refused(f"{name} is {_shown(value)}: expected {expected}")
    if not event.get("policy"):
        raise Refused("an event needs a policy")
    if not any(_is_there(event.get(name)) for name in _REQUIRED):
        raise Refused("an event needs one of reward, action, outcomes and episode")
    numbers = sum(map(_count, map(event.get, _COUNTED)))
    if numbers > MAX_NUMBERS:
        raise Refused(f"the event contains {numbers} numbers, and the limit is {MAX_NUMBERS}")


def check_name(what: str, value: str) -> str:
    """Checks a name, ID or version.

    Args:
        what: What the text is, for the error message.
        value: The text.

    Returns:
        The text.

    Raises:
        ValueError: If the text is invalid.
    """
    if not _is_name(value):
        raise ValueError(f"{what} is {_shown(value)}: expected {_NAME}")
    return value


def _is_there(value: Any) -> bool:
    return value is not None and (not isinstance(value, (dict, list)) or len(value) > 0)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(x is not None and _is_component(x) for x in value.values())
    # One number alone is an action or an observation, and a whole number may be a category: it is left uncounted.
    return len(value) if isinstance(value, list) else 0


def _is_name(value: Any) -> bool:
    if not isinstance(value, str):
        return _is_number(value)
    try:
        return "\0" not in value and len(value.encode()) <= _MAX_STRING
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.lstrip("+-").lower() in _NOT_FINITE
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_component(value: Any) -> bool:
    return value is None or isinstance(value, bool) or _is_number(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and not isinstance(value, str) and value == value // 1 and 0 <= value < _MAX_COUNT


def _is_time(value: Any) -> bool:
    if isinstance(value, str):
        return _RFC3339.fullmatch(value) is not None
    return _is_number(value) and 0 <= value < _MAX_COUNT


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_action(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_component, value))
    return isinstance(value, bool) or _is_name(value)


def _is_observation(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_name, value))
    return isinstance(value, (list, bool)) or _is_number(value)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_name(k) and _is_component(v) for k, v in value.items())


def _is_labels(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MAX_LABELS
        and all(_is_name(k) and (v is None or isinstance(v, bool) or _is_name(v)) for k, v in value.items())
    )


def _is_episode(value: Any) -> bool:
    return isinstance(value, dict) and _is_number(value.get("r")) and (value.get("l") is None or _is_count(value["l"]))


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}... ({len(shown)} characters)"


_NAME = f"a string of at most {_MAX_STRING} bytes in UTF-8, without NUL"

_FIELDS: list[tuple[str, Callable[[Any], bool], str]] = [
    ("policy", _is_name, _NAME),
    ("policy_version", _is_name, _NAME),
    ("env", _is_name, _NAME),
    ("env_version", _is_name, _NAME),
    ("reward_version", _is_name, _NAME),
    ("agent_id", _is_name, _NAME),
    ("episode_id", _is_name, _NAME),
    ("ts", _is_time, "RFC 3339 or a Unix time"),
    ("step", _is_count, "a whole number of at least 0"),
    ("reward", _is_number, "a number"),
    ("action_prob", _is_number, "a number"),
    ("target_prob", _is_number, "a number"),
    ("action", _is_action, "a string, a boolean, a number or a list of numbers"),
    ("observation", _is_observation, "a number, a list or a dict"),
    ("outcomes", _is_numbers, "a dict of numbers"),
    ("reward_components", _is_numbers, "a dict of numbers"),
    ("labels", _is_labels, f"a dict of at most {_MAX_LABELS} strings"),
    ("episode", _is_episode, "a dict with the return r and, optionally, the length l"),
    ("terminated", _is_bool, "True or False"),
    ("truncated", _is_bool, "True or False"),
]
