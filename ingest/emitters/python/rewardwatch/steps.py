"""The steps of one agent, as records in the agent's thread and as events in the emitter's thread."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from .checks import check
from .emitter import Event
from .encoding import plain, scalar, snapshot
from .source import Identity, Source
from .spaces import Encoders

_TOLD = ("outcomes", "reward_components")


class Agent:
    """Sends the steps of one agent. Only the constructor raises exceptions."""

    def __init__(self, source: Source, encoders: Encoders, member: str | None = None) -> None:
        """Creates an agent.

        Args:
            source: The source of the agent's identity.
            encoders: How actions and observations are sent.
            member: The name of this agent if the source has several. It is also the label `agent`.
        """
        self._source = source
        self._encoders = encoders
        self._member = member
        self._episode = -1
        self._step = 0
        self._observation: Any = None

    def begin(self, observation: Any) -> None:
        """Begins an episode."""
        try:
            self._source.begin()
            self._episode += 1
            self._step = 0
            self._observation = self._seen(observation)
        except Exception as error:  # such as one of the function that summarises
            self._source.emitter.failed(error)

    def stepped(
        self, action: Any, reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any], observation: Any
    ) -> None:
        """Sends a step. `observation` is the observation after the step."""
        source = self._source
        try:
            when = (source.identity, self._member, time.time_ns() // 1000, self._episode, self._step)
            what = (snapshot(action), snapshot(reward), terminated, truncated, told(info), self._observation)
            self._step += 1
            source.emitter.put(1, _step, self._encoders, when, what)
            if self._encoders.seen:
                self._observation = self._seen(observation)
        except Exception as error:
            source.emitter.failed(error)

    def _seen(self, observation: Any) -> Any:
        return self._encoders.seen(observation) if self._encoders.seen else None


def told(info: Mapping[str, Any]) -> Event | None:
    """Returns what an environment provides for telemetry in `info`: `outcomes` and `reward_components`, by name."""
    if "outcomes" in info or "reward_components" in info:
        return {name: snapshot(info[name]) for name in _TOLD if name in info}
    return None


def step_event(encoders: Encoders, event: Event, what: tuple[Any, ...]) -> Event:
    """Adds the content of a step to its event.

    Raises:
        Refused: If the service would reject what the environment provided.
    """
    action, reward, terminated, truncated, extra, observation = what
    if encoders.action:
        event["action"] = encoders.action(action)
    if reward is not None:
        event["reward"] = scalar(reward)
    event["terminated"] = bool(terminated)
    event["truncated"] = bool(truncated)
    if encoders.observation:
        event["observation"] = encoders.observation(observation)
    if extra:
        event.update(plain(extra))
        check(event)
    return event


def _step(encoders: Encoders, when: tuple[Identity, Any, int, int, int], what: tuple[Any, ...]) -> Iterable[Event]:
    identity, member, ts, episode, step = when
    event = identity.step(member, ts, episode, step)
    if member is not None:
        event["labels"] = {**event.get("labels", {}), "agent": member}
    yield step_event(encoders, event, what)
