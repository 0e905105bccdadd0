"""Monitors reward functions for LLM training with TRL (a batch of completions) and verl (a single completion)."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from .calls import Function, watched
from .checks import check
from .emitter import Emitter, Event, Made
from .encoding import plain, scalar
from .source import Identity, Names, Source


def watch_trl_reward(reward: Function, emitter: Emitter | None = None, **names: Unpack[Names]) -> Function:
    """Wraps a reward function for TRL (`reward_funcs` of `GRPOTrainer` and others), and sends the rewards it returns.

    A completion is an episode of one step. Completions for which the function returns `None` are skipped.

    Args:
        reward: The reward function.
        emitter: The emitter to use. By default, all functions of the process share one `Emitter()`.
        **names: The names that identify the agent: see `rewardwatch.wrap`. `env` defaults to the function's name, so
            several functions are judged separately.

    Returns:
        A function that returns the same rewards.
    """
    episodes = _Episodes(reward, emitter, names)
    return watched(reward, episodes.emitter, lambda rewards, *_: episodes.send([(reward, {}) for reward in rewards]))


def watch_verl_reward(reward: Function, emitter: Emitter | None = None, **names: Unpack[Names]) -> Function:
    """Wraps a reward function for verl (`custom_reward_function`), and sends the scores it returns.

    A solution is an episode of one step. If the function returns a dict, `score` is the reward, and the other numbers
    are outcomes.

    Args:
        reward: The reward function.
        emitter: The emitter to use. By default, all functions of the process share one `Emitter()`.
        **names: The names that identify the agent: see `rewardwatch.wrap`. `env` defaults to the function's name.

    Returns:
        A function that returns the same scores.
    """
    episodes = _Episodes(reward, emitter, names)

    def send(result: Any, *_: Any) -> None:
        if isinstance(result, Mapping):
            episodes.send([(result["score"], {name: x for name, x in result.items() if name != "score"})])
        else:
            episodes.send([(result, {})])

    return watched(reward, episodes.emitter, send)


class _Episodes:
    """Sends episodes of one step."""

    def __init__(self, function: Callable[..., Any], emitter: Emitter | None, names: Mapping[str, Any]) -> None:
        self._source = Source(emitter, {"env": getattr(function, "__name__", None), **names})
        self._numbers = itertools.count()  # of episodes; threads share it
        self.emitter = self._source.emitter

    def send(self, steps: list[tuple[Any, dict[str, Any]]]) -> None:
        """Sends a reward and its outcomes as one step."""
        self._source.begin()
        numbered = [(next(self._numbers), *step) for step in steps]
        self.emitter.put(len(steps), _rewarded, self._source.identity, time.time_ns() // 1000, numbered)


def _rewarded(identity: Identity, ts: int, steps: list[tuple[int, Any, dict[str, Any]]]) -> Iterable[Made]:
    for number, reward, outcomes in steps:
        if reward is None:
            continue
        try:
            yield _episode(identity.step(None, ts, number, 0), reward, outcomes)
        except Exception as error:  # the others of the batch are sent all the same
            yield error


def _episode(event: Event, reward: Any, outcomes: dict[str, Any]) -> Event:
    event.update(reward=scalar(reward), terminated=True)
    numbers = {name: x for name, x in plain(outcomes).items() if isinstance(x, (bool, int, float))}
    if numbers:
        event["outcomes"] = numbers
    check(event)
    return event
