"""Who acts, and where: what all events of an environment have in common."""

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
    """Names that describe an agent. All of them are optional if the environment has an id."""

    policy: str  # logical name of the policy; by default the id of the environment
    policy_version: str | int
    env: str  # where the policy acts; by default the id of the environment
    env_version: str | int
    reward_version: str | int
    agent_id: str  # by default the host name and a random part; must be unique among agents that act at the same time
    labels: Mapping[str, str]


Observations = bool | Callable[[Any], Any]
"""Whether observations are sent, or a function that converts an observation to what is sent."""


class Options(Names, total=False):
    """What an environment is wrapped with."""

    observations: Observations
    actions: bool


@dataclass(frozen=True)
class Identity:
    """What events of a source begin with."""

    fixed: Event
    run: str  # so that the episodes of an agent that was restarted get new ids

    def step(self, member: Any, ts: int, episode: int, step: int) -> Event:
        """Returns the beginning of a step's event. member: which of several agents it is; None is the only one."""
        agent_id = self.fixed["agent_id"] if member is None else f"{self.fixed['agent_id']}/{member}"
        return {
            "ts": ts,
            **self.fixed,
            "agent_id": agent_id,
            "episode_id": f"{agent_id}/{self.run}/{episode}",
            "step": step,
        }


class Source:
    """Who acts, under an identity that may change.

    A copy, or one in a forked process, is another agent: its episodes have ids of their own, and where no agent_id was
    given it has its own.
    """

    def __init__(self, emitter: Emitter | None, names: Mapping[str, Any], env: str | None = None) -> None:
        """env: what the environment calls itself."""
        unknown = names.keys() - Names.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown option: {', '.join(sorted(unknown))}")
        self.emitter = emitter or default_emitter()
        self._given_agent_id = names.get("agent_id")
        self._names = _fixed({"policy": env, "env": env, **names})
        self.renew()

    def renew(self) -> None:
        """Makes the ids of an agent that begins."""
        self._process = os.getpid()
        run = uuid.uuid4().hex[:8]
        self._names["agent_id"] = self._given_agent_id or f"{socket.gethostname()}-{run}"
        self.identity = Identity(dict(self._names), run)

    def begin(self) -> None:
        """Has to be called when an episode begins."""
        if self._process != os.getpid():
            self.renew()

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes policy_version, env_version or reward_version from the next step on. None removes a version."""
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
    """The emitter of those who give none: where the process's environment says."""
    if not _defaults:
        _defaults.append(Emitter())
    return _defaults[0]


def _fixed(names: Mapping[str, Any]) -> Event:
    """The names that are given, as texts. Raises ValueError where one is none."""
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
