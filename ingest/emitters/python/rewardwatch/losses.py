"""Counts events that could not be sent, and logs them once a minute."""

import logging
import threading
import time
from collections import Counter

_LOG_EVERY = 60.0  # seconds
_MAX_REASONS = 10  # that one warning names

_log = logging.getLogger("rewardwatch")


class Losses:
    """Counts lost events by reason. Any thread can add events; only one reports them."""

    def __init__(self) -> None:
        self.total = 0
        self._lock = threading.Lock()
        self._unreported: Counter[str] = Counter()
        self._next_report = 0.0

    def add(self, events: int, reason: str) -> None:
        """Counts lost events. With 0 events, reports a problem that has not caused any losses yet."""
        with self._lock:
            self.total += events
            if reason not in self._unreported and len(self._unreported) >= _MAX_REASONS:
                reason = "other reasons"
            self._unreported[reason] += events

    def report(self, last: bool = False) -> None:
        """Logs what has not been reported yet, at most once a minute except for the last report."""
        if not self._unreported or (not last and time.monotonic() < self._next_report):
            return
        with self._lock:
            reasons, self._unreported = self._unreported, Counter()
        self._next_report = time.monotonic() + _LOG_EVERY
        said = "; ".join(f"{reason} ({events} events lost)" if events else reason for reason, events in reasons.items())
        _log.warning("telemetry: %s; events lost so far: %d", said, self.total)
