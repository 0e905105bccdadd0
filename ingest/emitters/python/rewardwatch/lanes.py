"""Sub-environments that step together: one record for all of them."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space, iterate

from .emitter import Event, Made
from .encoding import plain, snapshot
from .source import Identity, Observations, Source
from .spaces import encoders
from .steps import step_event

Told = list[Event | None]


class Lanes:
    """Sends the steps of sub-environments, each of which is an agent. Nothing but the constructor raises."""

    def __init__(
        self,
        source: Source,
        count: int,
        action_space: Space[Any],
        observation_space: Space[Any],
        actions: bool,
        observations: Observations,
        pause: int,
        told_of: Callable[[Any, int], Told | None],
    ) -> None:
        """The spaces are those of one sub-environment. pause: steps between the end of an episode and the first step
        of the next one. told_of: finds in the infos of a step what the sub-environments say for telemetry.
        """
        self._source = source
        self._count = count
        self._encoders = encoders(action_space, observation_space, actions, observations)
        self._actions = batch_space(action_space, count) if actions else None
        self._observations = batch_space(observation_space, count) if observations else None
        self._summarised = callable(observations)
        self._pause = pause
        self._told_of = told_of
        self._now = 0
        # Both are replaced, never changed: records that are queued refer to them.
        self._began = np.zeros(count, np.int64)  # when each episode began, in steps
        self._episodes = np.zeros(count, np.int64)
        self._observed: Any = None

    def begin(self, observations: Any, which: Any = None) -> None:
        """Begins episodes, those of which (a mask) or all."""
        try:
            self._source.begin()
            beginning = np.ones(self._count, np.bool_) if which is None else which
            self._began = np.where(beginning, self._now, self._began)
            self._episodes = self._episodes + beginning
            self._observed = self._seen(observations)
        except Exception as error:  # such as one of the function that summarises
            self._source.emitter.failed(error)

    def stepped(
        self, actions: Any, rewards: Any, terminated: Any, truncated: Any, infos: Any, observations: Any
    ) -> None:
        """Sends a step of all. observations: those that it led to."""
        source, now = self._source, self._now
        try:
            when = (source.identity, time.time_ns() // 1000, now, self._began, self._episodes)
            told = self._told_of(infos, self._count)
            happened = (snapshot(actions), snapshot(rewards), snapshot(terminated), snapshot(truncated))
            self._now = now + 1
            source.emitter.put(self._count, self._events, when, (*happened, told, self._observed))
            ended = terminated | truncated
            if not isinstance(ended, np.ndarray):  # a tensor
                ended = np.array(plain(ended))
            if np.count_nonzero(ended):
                self._began = np.where(ended, now + 1 + self._pause, self._began)
                self._episodes = self._episodes + ended
            if self._encoders.seen:
                self._observed = self._seen(observations)
        except Exception as error:
            source.emitter.failed(error)

    def _seen(self, observations: Any) -> Any:
        if self._encoders.seen is None:
            return None
        if self._summarised:
            return [self._encoders.seen(each) for each in self._each(self._observations, observations)]
        return snapshot(observations)

    def _events(self, when: tuple[Identity, int, int, Any, Any], what: tuple[Any, ...]) -> Iterable[Made]:
        identity, ts, now, began, episodes = when
        steps = now - began
        actions, rewards, terminated, truncated, told, observed = what
        each_action = self._each(self._actions, actions)
        each_observed = iter(observed) if self._summarised else self._each(self._observations, observed)
        for lane in range(self._count):
            action, observation = next(each_action), next(each_observed)
            if steps[lane] < 0:  # the sub-environment was reset in this step
                continue
            event = identity.step(lane, ts, int(episodes[lane]), int(steps[lane]))
            extra = told[lane] if told else None
            try:
                happened = (action, rewards[lane], terminated[lane], truncated[lane], extra, observation)
                yield step_event(self._encoders, event, happened)
            except Exception as error:  # the other lanes are sent all the same
                yield error

    def _each(self, space: Space[Any] | None, values: Any) -> Iterator[Any]:
        return iter(iterate(space, values)) if space is not None else iter([None] * self._count)
