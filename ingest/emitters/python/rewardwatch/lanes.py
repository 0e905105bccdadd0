"""Sub-environments that take steps together, with one record for all of them."""

import time
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space, iterate

from .emitter import Event, Made
from .encoding import line, plain, snapshot
from .source import Identity, Observations, Source
from .spaces import encoders
from .steps import step_event

Told = list[Event | None]

_BOOL = np.dtype(np.bool_)


class Lanes:
    """Sends the steps of sub-environments, each of which is an agent. Only the constructor raises exceptions."""

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
        """Creates the agents of the sub-environments.

        Args:
            source: The source of the agents' identity.
            count: The number of sub-environments.
            action_space: The action space of one sub-environment.
            observation_space: The observation space of one sub-environment.
            actions: Whether to send the actions.
            observations: Whether to send the observations, or a function that converts an observation to the
                value to send.
            pause: The number of steps between the end of an episode and the first step of the next one.
            told_of: A function that extracts the sub-environments' telemetry from the infos of a step.

        Raises:
            ValueError: If the actions or observations cannot be sent.
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
        self._headed: Identity | None = None  # whose heads were made; the emitter's thread alone uses them
        self._heads: list[tuple[str, str]] = []

    def begin(self, observations: Any, which: Any = None) -> None:
        """Begins the episodes selected by the mask `which`, or all episodes if there is no mask."""
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
        """Sends a step of all sub-environments. `observations` are the observations after the step."""
        source, now = self._source, self._now
        try:
            when = (source.identity, time.time_ns() // 1000, now, self._began, self._episodes)
            told = self._told_of(infos, self._count)
            over, cut = _flags(terminated), _flags(truncated)
            self._now = now + 1
            what = (snapshot(actions), snapshot(rewards), over, cut, told, self._observed)
            source.emitter.put(self._count, self._events, when, what)
            if 1 in over or 1 in cut:
                ended = np.frombuffer(over, np.bool_) | np.frombuffer(cut, np.bool_)
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
        steps, episodes = (now - began).tolist(), episodes.tolist()
        actions, rewards, terminated, truncated, told, observed = what
        each_action = self._each(self._actions, actions)
        each_observed = iter(observed) if self._summarised else self._each(self._observations, observed)
        rewards, heads = _listed(rewards), self._heads_of(identity)
        for lane in range(self._count):
            action, observation = next(each_action), next(each_observed)
            if steps[lane] < 0:  # the sub-environment was reset in this step
                continue
            extra = told[lane] if told else None
            happened = (action, rewards[lane], terminated[lane], truncated[lane], extra, observation)
            if _is_plain(happened):
                head, agent_id = heads[lane]
                yield _line(head, ts, episodes[lane], steps[lane], happened), agent_id
                continue
            event = identity.step(lane, ts, episodes[lane], steps[lane])
            try:
                yield step_event(self._encoders, event, happened)
            except Exception as error:  # the other lanes are sent all the same
                yield error

    def _heads_of(self, identity: Identity) -> list[tuple[str, str]]:
        """Returns the constant part of each agent's line, from after the time to the number of the episode, with the
        agent's id.
        """
        if self._headed is not identity:
            agents = [identity.step(lane, 0, 0, 0) for lane in range(self._count)]
            for event in agents:
                del event["ts"], event["step"]
            self._heads = [(line(event).decode()[1:-3], event["agent_id"]) for event in agents]
            self._headed = identity
        return self._heads

    def _each(self, space: Space[Any] | None, values: Any) -> Iterator[Any]:
        if space is None:
            return iter([None] * self._count)
        if isinstance(values, np.ndarray):
            return iter(_listed(values))
        return iter(iterate(space, values))


def _is_plain(what: tuple[Any, ...]) -> bool:
    """Returns whether a step consists only of finite numbers and flags, as most steps do."""
    action, reward, _, _, extra, observation = what
    return (
        type(reward) is float
        and isfinite(reward)
        and (type(action) is int or (type(action) is float and isfinite(action)))
        and observation is None
        and not extra
    )


def _line(head: str, ts: int, episode: int, step: int, what: tuple[Any, ...]) -> bytes:
    """Returns the line for a plain step. This takes a third of the time needed to create and encode an event. Time
    spent in the emitter's thread also delays the agent.
    """
    action, reward, terminated, truncated, _, _ = what
    ended = f'"terminated":{"true" if terminated else "false"},"truncated":{"true" if truncated else "false"}'
    return f'{{"ts":{ts},{head}{episode}","step":{step},"action":{action},"reward":{reward},{ended}}}'.encode()


def _flags(values: Any) -> bytes:
    """Returns a byte for each flag, which is faster to copy and to search than an array."""
    if type(values) is np.ndarray and values.dtype is _BOOL:
        return values.tobytes()
    return bytes(map(bool, plain(values)))


def _listed(values: Any) -> Any:
    """Returns the values of an array as a list, because Python numbers are faster to encode one by one."""
    return values.tolist() if isinstance(values, np.ndarray) and values.ndim == 1 else values
