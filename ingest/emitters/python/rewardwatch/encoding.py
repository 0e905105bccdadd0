"""Events as lines of JSON."""

import json
import math
from typing import Any

_SEPARATORS = (",", ":")


def line(event: dict[str, Any]) -> bytes:
    """The event as JSON. NaN and infinities, which JSON lacks, are the strings that telemetry has for them."""
    try:
        return _json(event)
    except ValueError:
        return _json(_finite(event))


def plain(value: Any) -> Any:
    """The value without numpy or torch in it: a scalar as Python's, an array as the flat list of its components."""
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return value.ravel().tolist() if getattr(value, "ndim", 0) else value.item()
    return value


def scalar(value: Any) -> int | float:
    """The value as one number. Environments give rewards of every kind, an array of one component among them."""
    number = value.item() if hasattr(value, "item") else value
    return int(number) if isinstance(number, bool) else number


def snapshot(value: Any) -> Any:
    """A copy that stays as it is when the agent writes into the same memory again."""
    if hasattr(value, "tolist"):  # first: it is the usual case, in the agent's thread
        if hasattr(value, "copy"):
            return value.copy()
        return value.detach().clone() if hasattr(value, "clone") else value  # a tensor of torch
    if isinstance(value, dict):
        return {name: snapshot(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [snapshot(v) for v in value]
    return value


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=_SEPARATORS).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
