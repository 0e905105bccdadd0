"""Monitors decision functions: recommenders, routers, pricing, and any other function that returns an action."""

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from .calls import Function, watched
from .checks import check
from .emitter import Emitter, Event, Made
from .encoding import plain, snapshot
from .keys import check_key_field, keyed
from .source import Names, Source, default_emitter

_Key = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def decision(
    emitter: Emitter | None = None,
    *,
    action: Callable[[Any], Any] | None = None,
    key: str | Callable[[Any], Any] | None = None,
    key_field: str = "episode_id",
    **names: Unpack[Names],
) -> Callable[[Function], Function]:
    """Returns a decorator that sends the result of a function as an action.

    Args:
        emitter: The emitter to use. By default, all functions of the process share one `Emitter()`.
        action: A function that extracts the action from the result, if the result contains more than the action.
        key: The key that identifies the decision in `feedback`: the name of a parameter of the function, or a function
            that extracts the key from the result.
        key_field: The telemetry field that contains the key: `episode_id`, `agent_id` or `labels.<name>`. It must match
            `policies[].feedback.key` in the configuration of the service.
        **names: The names that identify the agent: see `rewardwatch.wrap`. `policy` defaults to the function's name.

    Raises:
        ValueError: If the function has no parameter with the name in `key`, or if `key_field` or a name is invalid.
    """
    check_key_field(key_field)

    def decorate(function: Function) -> Function:
        source = Source(emitter, {"policy": getattr(function, "__name__", None), **names})
        key_of = _key_of(function, key)

        def send(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            source.begin()
            chosen = snapshot(action(result) if action else result)
            when = (source.identity.fixed, time.time_ns() // 1000)
            if key_of is None:
                source.emitter.put(1, _decided, *when, chosen)
            else:
                source.emitter.put(1, _awaiting, *when, chosen, key_field, key_of(result, args, kwargs))

        return watched(function, source.emitter, send)

    return decorate


def feedback(
    key: object,
    reward: float | None = None,
    *,
    policy: str,
    emitter: Emitter | None = None,
    outcomes: Mapping[str, float] | None = None,
    reward_components: Mapping[str, float] | None = None,
    key_field: str = "episode_id",
    ts: float | str | None = None,
) -> None:
    """Sends the results of a decision. See `Emitter.feedback` for the other arguments.

    Only the first call, which may create the shared emitter, can raise an exception.

    Args:
        key: The key of the decision.
        reward: The reward of the decision.
        emitter: The emitter to use. By default, all functions of the process share one `Emitter()`.
    """
    told: dict[str, Any] = {"outcomes": outcomes, "reward_components": reward_components, "ts": ts}
    (emitter or default_emitter()).feedback(key, reward, policy=policy, key_field=key_field, **told)


def _key_of(function: Callable[..., Any], key: str | Callable[[Any], Any] | None) -> _Key | None:
    """Returns a function that finds the key of a call. Raises ValueError if the function has no parameter with that
    name.
    """
    if key is None:
        return None
    if not isinstance(key, str):
        return lambda result, args, kwargs: key(result)
    parameters = inspect.signature(function).parameters
    parameter = parameters.get(key)
    if parameter is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ValueError(f"{getattr(function, '__name__', function)} has no parameter {key!r} for the key")
    place = list(parameters).index(key)
    if parameter.kind == parameter.KEYWORD_ONLY:
        place = sys.maxsize

    def argument(_result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[place] if place < len(args) else kwargs.get(key, parameter.default)

    return argument


def _decided(fixed: Event, ts: int, action: Any) -> Iterable[Event]:
    event = {"ts": ts, **fixed, "action": plain(action)}
    check(event)
    yield event


def _awaiting(fixed: Event, ts: int, action: Any, key_field: str, key: object) -> Iterable[Made]:
    yield keyed({"ts": ts, **fixed, "action": plain(action)}, key_field, key)
