"""The keys by which the service joins decisions with later feedback."""

from typing import Any

from .checks import Refused, check

_LABEL = "labels."


def check_key_field(field: str) -> str:
    """Checks the name of the field that contains the key of a decision.

    Args:
        field: The name of the field.

    Returns:
        The name of the field.

    Raises:
        ValueError: If the field cannot contain a key.
    """
    if field not in ("episode_id", "agent_id") and (not field.startswith(_LABEL) or field == _LABEL):
        raise ValueError(f"key_field must be episode_id, agent_id or labels.<name>, not {field!r}")
    return field


def keyed(event: dict[str, Any], field: str, key: object) -> tuple[dict[str, Any], str]:
    """Adds the key of a decision to an event.

    Args:
        event: The event of the decision or its feedback.
        field: The field for the key.
        key: The key.

    Returns:
        The event with the key, and the message key. They are the same, because a decision and its feedback must be in
        the same partition.

    Raises:
        Refused: If the service would reject the event, or could not join it.
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
