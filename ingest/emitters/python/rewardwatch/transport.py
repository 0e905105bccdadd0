"""The interface through which an emitter sends its messages."""

from collections.abc import Callable
from typing import Protocol

Lost = Callable[[int, str], None]
"""Receives how many events were lost, and why. With 0 events, it reports a problem that has not caused any losses
yet.
"""


class Transport(Protocol):
    """A connection used by one thread. It delivers every event that it has accepted, or reports it as lost."""

    def send(self, key: str, lines: list[bytes]) -> bool:
        """Accepts events, one per line, in order for each key. Returns False if there is no room now: offer them
        again.
        """

    def serve(self, timeout: float) -> None:
        """Handles the results of sent messages, and waits up to timeout seconds for them."""

    def waiting(self) -> int:
        """Returns how many events are neither delivered nor lost."""

    def close(self) -> None:
        """Closes the connection. Events that are still waiting are lost."""

    def abandon(self) -> None:
        """Forgets the connection in a forked child, which must not close its parent's connection."""


Connect = Callable[[Lost], Transport]
"""Opens a connection. Must be picklable for environments that are sent to other processes."""
