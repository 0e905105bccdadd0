"""The guards of a policy, for its agents.

A thread reads the state over HTTP and waits for changes. The methods return immediately, based on the last state that
was read.

Example:
    guard = Guard("checkout", url="https://rewardwatch.example", unsafe=["refund_all"])
    if guard.exploration() and random() < epsilon: ...
    action = policy(observation) if guard.allows(action) else safe(observation)
"""

import http.client
import json
import os
import threading
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlsplit

from .http import Http

_WAIT = 25.0  # seconds that the service waits for a change
_PAUSE = 0.5  # seconds between attempts after a failure; it doubles up to the longest
_LONGEST_PAUSE = 10.0
_ANSWER = 1024 * 1024  # bytes of an answer that are read at most
_STATES = ("ok", "warn", "hold", "fallback")
_SILENT = {"keep": "ok", "hold": "hold", "fallback": "fallback"}


def _has(actions: frozenset[Any], action: Any) -> bool:
    """Returns whether an action is one of the given actions. Unhashable actions, such as arrays, never are."""
    try:
        return action in actions
    except TypeError:
        return False


class Guard:
    """Follows the guards of a policy.

    Args:
        policy: The name of the policy in the telemetry.
        url: URL of the service. Defaults to `REWARDWATCH_URL`.
        token_file: File with the token for the service. Defaults to `REWARDWATCH_TOKEN_FILE`.
        unsafe: The actions that are allowed only while no guard is tripped.
        safe: The only actions that are allowed in the state `fallback`. `None` allows all actions except the unsafe
            ones.
        on_silence: What to do before the first state has been read, and later if the service does not specify it:
            `"keep"`, `"hold"` or `"fallback"`.

    Raises:
        ValueError: If `on_silence` or the URL is invalid, or if there is no URL.
    """

    def __init__(
        self,
        policy: str,
        *,
        url: str | None = None,
        token_file: str | None = None,
        unsafe: Collection[Any] = (),
        safe: Collection[Any] | None = None,
        on_silence: str = "hold",
    ) -> None:
        if on_silence not in _SILENT:
            raise ValueError(f"on_silence must be keep, hold or fallback, not {on_silence!r}")
        url = url or os.environ.get("REWARDWATCH_URL")
        if not url:
            raise ValueError("the URL of the service is missing: set url or REWARDWATCH_URL")
        self.policy = policy
        self._service = Http(url, token_file or os.environ.get("REWARDWATCH_TOKEN_FILE"))
        self._path = urlsplit(url).path.rstrip("/") + "/api/v1/guards/" + quote(policy, safe="")
        self._unsafe = frozenset(unsafe)
        self._safe = None if safe is None else frozenset(safe)
        self._silence = _SILENT[on_silence]
        # What was read last. It is replaced as a whole, so that readers need no lock.
        self._read: tuple[str, float, dict[str, Any]] = (self._silence, float("-inf"), {})
        self._tag = ""
        self._age = 0.0
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rewardwatch-guard", daemon=True)
        self._thread.start()

    @property
    def state(self) -> str:
        """The state: `ok`, `warn`, `hold` or `fallback`. Once the last state is too old, `on_silence` applies."""
        state, until, _ = self._read
        return state if time.monotonic() < until else self._silence

    @property
    def document(self) -> dict[str, Any]:
        """The most recent response of the service, including the reasons for the state. Empty before the first one."""
        return self._read[2]

    def exploration(self) -> bool:
        """Returns whether the agent can explore and learn."""
        return self.state in ("ok", "warn")

    def allows(self, action: Any) -> bool:
        """Returns whether the agent can take an action.

        Args:
            action: The action.
        """
        state = self.state
        if state in ("ok", "warn"):
            return True
        if state == "fallback" and self._safe is not None:
            return _has(self._safe, action)
        return not _has(self._unsafe, action)

    def wait(self, timeout: float) -> bool:
        """Waits until a state has been read.

        Args:
            timeout: Maximum time to wait, in seconds.

        Returns:
            `False` if no state was read in time.
        """
        return self._changed.wait(timeout)

    def close(self) -> None:
        """Stops following the guards. Once the last state is too old, `on_silence` applies."""
        self._closed.set()

    def __enter__(self) -> "Guard":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._closed.is_set():
            try:
                self._poll()
                pause = _PAUSE
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                self._tag = ""  # the service may have restarted
                self._closed.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _poll(self) -> None:
        """Reads the state: immediately at first, then whenever it changes."""
        connection = self._service.connection()
        asked = time.monotonic()
        try:
            headers = self._service.authorization()
            path = self._path
            if self._tag:
                headers["If-None-Match"] = self._tag
                path += f"?wait={min(_WAIT, max(0.1, self._age / 3)):.3f}s"
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            text = answer.read(_ANSWER)
        finally:
            connection.close()
        if answer.status == 304 and self._tag:
            state, _, document = self._read
            self._read = (state, asked + self._age, document)
            return
        if answer.status != 200:
            raise ValueError(f"the service responded with HTTP {answer.status}")
        self._take(json.loads(text), asked)
        self._tag = answer.headers.get("ETag", "")

    def _take(self, document: dict[str, Any], asked: float) -> None:
        state, age = document["state"], float(document["max_age_seconds"])
        if state not in _STATES or not age > 0:
            raise ValueError(f"the service responded with the state {state!r} for {age} s")
        self._silence = _SILENT[document["on_silence"]]
        self._age = age
        self._read = (state, asked + age, document)
        self._changed.set()
