"""The keys by which the service joins decisions with feedback that comes later."""

from typing import Any

from .checks import Refused, check

_LABEL = "labels."


def check_key_field(field: str) -> str:
    """The field, which can hold the key of a decision. Raises ValueError where it cannot."""
    if field not in ("episode_id", "agent_id") and (not field.startswith(_LABEL) or field == _LABEL):
        raise ValueError(f"key_field must be episode_id, agent_id or labels.<name>, not {field!r}")
    return field


def keyed(event: dict[str, Any], field: str, key: object) -> tuple[dict[str, Any], str]:
    """The event with its key, which is that of its message too: a decision and its feedback have to be in the same
    partition. Raises Refused where the service would refuse the event, or leave it unjoined.
    """
    text = "" if key is None else str(key)
    if not text:
        raise Refused("the key of a decision and its feedback must not be empty")
    if check_key_field(field).startswith(_LABEL):
        event["labels"] = {**event.get("labels", {}), field.removeprefix(_LABEL): text}
    else:
        event[field] = text
    check(event)
    return event, text
