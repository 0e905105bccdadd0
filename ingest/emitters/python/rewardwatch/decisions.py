"""Decision functions: recommenders, routers, pricing and whatever else returns an action."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Unpack

from .calls import Function, watched
from .checks import check
from .emitter import Emitter, Event
from .encoding import plain, snapshot
from .source import Names, Source


def decision(
    emitter: Emitter | None = None,
    *,
    action: Callable[[Any], Any] | None = None,
    **names: Unpack[Names],
) -> Callable[[Function], Function]:
    """Returns a decorator that sends what the function returns as an action. action: takes the action out of what the
    function returns, where that is more. policy is by default the function's name.
    """

    def decorate(function: Function) -> Function:
        source = Source(emitter, {"policy": getattr(function, "__name__", None), **names})

        def send(result: Any) -> None:
            source.begin()
            chosen = snapshot(action(result) if action else result)
            source.emitter.put(1, _decided, source.identity.fixed, time.time_ns() // 1000, chosen)

        return watched(function, source.emitter, send)

    return decorate


def _decided(fixed: Event, ts: int, action: Any) -> Iterable[Event]:
    event = {"ts": ts, **fixed, "action": plain(action)}
    check(event)
    yield event
