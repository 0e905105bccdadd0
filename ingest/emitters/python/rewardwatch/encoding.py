"""Events as lines of JSON."""

import functools
import json
import math
from collections.abc import Callable
from typing import Any

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def line(event: dict[str, Any]) -> bytes:
    """Returns the event as JSON. NaN and infinite numbers, which JSON does not support, are written as the strings that
    telemetry uses.
    """
    try:
        return _json(event)
    except ValueError:
        return _json(_finite(event))


def plain(value: Any) -> Any:
    """Converts numpy and torch values: a scalar to a Python number, an array to a flat list of its components."""
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return value.ravel().tolist() if getattr(value, "ndim", 0) else value.item()
    return value


def scalar(value: Any) -> int | float:
    """Returns the value as a single number. Rewards have many types, including arrays with one component."""
    number = value.item() if hasattr(value, "item") else value
    return int(number) if isinstance(number, bool) else number


def snapshot(value: Any) -> Any:
    """Returns a copy that does not change if the agent reuses the memory."""
    return _copier(type(value))(value)  # type: ignore[arg-type]  # every type can be hashed


@functools.cache  # to ask an array what it can do takes longer than to copy it, in the agent's thread
def _copier(kind: type) -> Callable[[Any], Any]:
    if hasattr(kind, "tolist"):
        if hasattr(kind, "copy"):
            return kind.copy  # type: ignore[no-any-return]
        return _cloned if hasattr(kind, "clone") else _same
    if issubclass(kind, dict):
        return lambda value: {name: snapshot(v) for name, v in value.items()}
    if issubclass(kind, (list, tuple)):
        return lambda value: [snapshot(v) for v in value]
    return _same


def _cloned(tensor: Any) -> Any:
    return tensor.detach().clone()  # of torch


def _same(value: Any) -> Any:
    return value


def _json(value: Any) -> bytes:
    return _encode(value).encode()


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
