"""The keys by which the service joins decisions with later feedback."""

from typing import Any

from .checks import Refused, check

_LABEL = "labels."


def check_key_field(field: str) -> str:
    """Returns the field. Raises ValueError if it cannot contain the key of a decision."""
    if field not in ("episode_id", "agent_id") and (not field.startswith(_LABEL) or field == _LABEL):
        raise ValueError(f"key_field must be episode_id, agent_id or labels.<name>, not {field!r}")
    return field


def keyed(event: dict[str, Any], field: str, key: object) -> tuple[dict[str, Any], str]:
    """Returns the event with its key, which is also the message key, because a decision and its feedback must be in the
    same partition. Raises Refused if the service would refuse the event or could not join it.
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
