"""Identifies the agent and its environment: the fields that all events of an environment share."""

import os
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from .checks import Refused, check, check_name
from .emitter import Emitter, Event

_VERSIONS = ("policy_version", "env_version", "reward_version")

_defaults: list[Emitter] = []


class Names(TypedDict, total=False):
    """The names that identify an agent. All of them are optional if the environment has an ID."""

    policy: str  # logical name of the policy; by default the id of the environment
    policy_version: str | int
    env: str  # where the policy acts; by default the id of the environment
    env_version: str | int
    reward_version: str | int
    agent_id: str  # by default the host name and a random part; must be unique among agents that act at the same time
    labels: Mapping[str, str]


Observations = bool | Callable[[Any], Any]
"""Whether to send observations, or a function that converts an observation to what is sent."""


class Options(Names, total=False):
    """The options of `rewardwatch.wrap`."""

    observations: Observations
    actions: bool


@dataclass(frozen=True)
class Identity:
    """The beginning of each event from a source."""

    fixed: Event
    run: str  # so that the episodes of an agent that was restarted get new ids

    def step(self, member: Any, ts: int, episode: int, step: int) -> Event:
        """Returns the beginning of the event for a step.

        Args:
            member: The index or name of the agent, or `None` if there is only one.
            ts: The time of the step, in microseconds.
            episode: The number of the episode.
            step: The number of the step.
        """
        agent_id = self.fixed["agent_id"] if member is None else f"{self.fixed['agent_id']}/{member}"
        return {
            "ts": ts,
            **self.fixed,
            "agent_id": agent_id,
            "episode_id": f"{agent_id}/{self.run}/{episode}",
            "step": step,
        }


class Source:
    """An agent whose identity can change.

    A copy, including one in a forked process, is a different agent: its episodes have their own ids, and it has its own
    agent_id unless one was given.
    """

    def __init__(self, emitter: Emitter | None, names: Mapping[str, Any], env: str | None = None) -> None:
        """Creates a source.

        Args:
            emitter: The emitter to use. By default, the shared emitter of the process.
            names: The names that identify the agent.
            env: The ID of the environment.

        Raises:
            TypeError: If a name is unknown.
            ValueError: If a name is invalid, or the policy is missing.
        """
        unknown = names.keys() - Names.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown option: {', '.join(sorted(unknown))}")
        self.emitter = emitter or default_emitter()
        self._given_agent_id = names.get("agent_id")
        self._names = _fixed({"policy": env, "env": env, **names})
        self.renew()

    def renew(self) -> None:
        """Creates the ids of a new agent."""
        self._process = os.getpid()
        run = uuid.uuid4().hex[:8]
        self._names["agent_id"] = self._given_agent_id or f"{socket.gethostname()}-{run}"
        self.identity = Identity(dict(self._names), run)

    def begin(self) -> None:
        """Must be called when an episode begins."""
        if self._process != os.getpid():
            self.renew()

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        unknown = versions.keys() - set(_VERSIONS)
        if unknown:
            raise TypeError(f"unknown version: {', '.join(sorted(unknown))}")
        self._names = _fixed({**self._names, **versions})
        self.identity = Identity(dict(self._names), self.identity.run)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._names = dict(self._names)
        self.renew()


def default_emitter() -> Emitter:
    """Returns the shared emitter of the process, which is configured by environment variables."""
    if not _defaults:
        _defaults.append(Emitter())
    return _defaults[0]


def _fixed(names: Mapping[str, Any]) -> Event:
    """Returns the given names as strings. Raises `ValueError` if one is not a string."""
    fixed: Event = {}
    for name, value in names.items():
        if value is None:
            continue
        if name == "labels":
            fixed[name] = {str(label): str(text) for label, text in value.items()}
        else:
            fixed[name] = check_name(name, str(value))
    try:
        check({**fixed, "reward": 0})
    except Refused as error:
        raise ValueError(f"{error}; pass policy=..." if "policy" not in fixed else str(error)) from None
    return fixed
