"""What an emitter hands its messages to."""

from collections.abc import Callable
from typing import Protocol

Lost = Callable[[int, str], None]
"""Takes how many events were lost, and why. With 0 events it is trouble that has not cost any yet."""


class Transport(Protocol):
    """A connection that one thread uses. What it has taken it delivers, or reports as lost."""

    def send(self, key: str, lines: list[bytes]) -> bool:
        """Takes events, one a line, those of a key in order. False: there is no room now, offer them again."""

    def serve(self, timeout: float) -> None:
        """Handles what has come of messages, and waits for it at most timeout seconds."""

    def waiting(self) -> int:
        """How many events are neither delivered nor lost."""

    def close(self) -> None:
        """Ends the connection. What still waits is lost."""

    def abandon(self) -> None:
        """Forgets the connection in a forked child, which must not end what belongs to its parent."""


Connect = Callable[[Lost], Transport]
"""Opens a connection. It must pickle for environments that are sent to other processes."""
