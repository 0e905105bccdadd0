"""The Gymnasium wrapper: one telemetry event for each step of an environment."""

import itertools
import socket
import time
import uuid

import gymnasium

from .emitter import plain


class RewardwatchWrapper(gymnasium.Wrapper):
    """Sends every step of an environment through an emitter, and changes nothing about the environment.

    From info it takes `outcomes` and `reward_components` (name to number), where the environment or a wrapper inside
    this one puts them there. Closing the environment leaves the emitter open: environments share it.
    """

    def __init__(
        self,
        env,
        emitter,
        *,
        policy,
        policy_version=None,
        env_version=None,
        reward_version=None,
        env_name=None,
        agent_id=None,
        labels=None,
        observations=False,
    ):
        """policy: the logical name of what acts. env_name: by default the id of the environment's spec. agent_id: by
        default the host's name and a random part; it must not be shared by environments that run at the same time.
        labels: name to text. observations: send the observation that the action was chosen on.
        """
        super().__init__(env)
        self.emitter = emitter
        self.agent_id = agent_id or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self._fixed = {"policy": policy, "agent_id": self.agent_id}
        name = env_name or (env.spec.id if env.spec else None)
        if name:
            self._fixed["env"] = name
        if labels:
            self._fixed["labels"] = dict(labels)
        self.set_versions(policy_version=policy_version, env_version=env_version, reward_version=reward_version)
        self._observations = observations
        self._observation = None
        self._run = uuid.uuid4().hex[:8]  # so that the episodes of an agent that was restarted get new ids
        self._episodes = itertools.count()
        self._episode_id = None
        self._steps = None

    def set_versions(self, **versions):
        """Changes policy_version, env_version or reward_version, as when a new policy is loaded; it holds from the
        next step on. A version not named stays; None takes it away.
        """
        unknown = versions.keys() - {"policy_version", "env_version", "reward_version"}
        if unknown:
            raise TypeError(f"not a version: {', '.join(sorted(unknown))}")
        for name, version in versions.items():
            if version is None:
                self._fixed.pop(name, None)
            else:
                self._fixed[name] = str(version)

    def reset(self, **kwargs):
        observation, info = self.env.reset(**kwargs)
        self._episode_id = f"{self.agent_id}/{self._run}/{next(self._episodes)}"
        self._steps = itertools.count()
        self._observation = self._seen(observation)
        return observation, info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        event = {
            "ts": time.time_ns() // 1000,
            **self._fixed,
            "episode_id": self._episode_id,
            "step": next(self._steps),
            "action": action,
            "reward": reward,
            "terminated": bool(terminated),
            "truncated": bool(truncated),
        }
        for name in ("outcomes", "reward_components"):
            if name in info:
                event[name] = info[name]
        if self._observations:
            event["observation"] = self._observation
            self._observation = self._seen(observation)
        self.emitter.emit(event)
        return observation, reward, terminated, truncated, info

    def _seen(self, observation):
        # A copy: some environments write the next observation into the same memory.
        return _flat(observation) if self._observations else None


def _flat(observation):
    """The observation as telemetry has it: an array, or an object of numbers. A name inside a name is joined by "."."""
    if not isinstance(observation, (dict, tuple, list)):
        return plain(observation) if hasattr(observation, "tolist") else [observation]
    flat = {}
    items = observation.items() if isinstance(observation, dict) else enumerate(observation)
    for name, value in items:
        if isinstance(value, (dict, tuple, list)) or getattr(value, "ndim", 0):
            inner = _flat(value)
            parts = inner.items() if isinstance(inner, dict) else enumerate(inner)
            flat.update({f"{name}.{part}": x for part, x in parts})
        else:
            flat[str(name)] = value
    return flat
