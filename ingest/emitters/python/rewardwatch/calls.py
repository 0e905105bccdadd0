"""Monitored functions: their results are sent, and their behavior does not change."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .emitter import Emitter

Function = TypeVar("Function", bound=Callable[..., Any])


Send = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
"""Receives the result of a function and the arguments of the call."""


def watched(function: Function, emitter: Emitter, send: Send) -> Function:
    """Wraps a function or coroutine function so that its result is passed to send. Exceptions raised by send do not
    reach the caller.
    """

    def sent(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            send(result, args, kwargs)
        except Exception as error:  # whatever it is, the caller must go on
            emitter.failed(error)
        return result

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return sent(await function(*args, **kwargs), args, kwargs)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return sent(function(*args, **kwargs), args, kwargs)

    return called  # type: ignore[return-value]
