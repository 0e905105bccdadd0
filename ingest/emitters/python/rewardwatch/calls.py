"""Functions that are watched: what they return is sent, and what they do stays the same."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .emitter import Emitter

Function = TypeVar("Function", bound=Callable[..., Any])


Send = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
"""Takes what a function has returned, and the arguments that it was called with."""


def watched(function: Function, emitter: Emitter, send: Send) -> Function:
    """Returns the function, which may be a coroutine function, such that send takes what it returns. What send raises
    does not reach the caller.
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
