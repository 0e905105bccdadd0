"""Wrappers that send every step of the agents in PettingZoo environments."""

import functools
from collections.abc import Callable
from typing import Any, Unpack

from pettingzoo.utils.env import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

from .emitter import Emitter
from .source import Names, Observations, Source
from .spaces import encoders
from .steps import Agent


def _quiet(method: Callable[..., None]) -> Callable[..., None]:
    """Wraps a method so that its exceptions are counted and do not reach the agents' loop."""

    @functools.wraps(method)
    def called(self: Any, *args: Any) -> None:
        try:
            method(self, *args)
        except Exception as error:  # such as of an agent that the environment does not know any more
            self._members.source.emitter.failed(error)

    return called


class ParallelEnvWrapper(BaseParallelWrapper[Any, Any, Any]):
    """Sends every step of the agents in a parallel environment without changing its behavior.

    Agent IDs are `AGENT_ID/NAME`, and the label `agent` contains the name.
    """

    def __init__(
        self,
        env: ParallelEnv[Any, Any, Any],
        /,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Wraps a parallel environment.

        Args:
            env: The environment to wrap.
            emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
            observations: Whether to send the observation that each action was based on, or a function that converts an
                observation to the value to send. The function is called in the agent's thread.
            actions: Whether to send the actions.
            **names: The names that identify the agent, such as `policy` and `policy_version`: see `rewardwatch.wrap`.

        Raises:
            ValueError: If the observations or actions cannot be sent, for example because they are images.
        """
        super().__init__(env)
        self._members = _Members(env, Source(emitter, names, env.metadata.get("name")), actions, observations)

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._members.source.set_versions(**versions)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[Any, Any], dict[Any, dict[str, Any]]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._members.begun.clear()
        self._begin_all(observations)
        return observations, infos

    def step(self, actions: dict[Any, Any]) -> Any:
        stepped = self.env.step(actions)
        self._send_all(actions, stepped)
        self._begin_all(stepped[0])
        return stepped

    @_quiet
    def _begin_all(self, observations: dict[Any, Any]) -> None:
        """Starts an episode for each agent seen for the first time."""
        for agent in observations.keys() - self._members.begun:
            self._begin(agent, observations[agent])

    @_quiet
    def _begin(self, agent: Any, observation: Any) -> None:
        self._members.begin(agent, observation)

    @_quiet
    def _send_all(self, actions: dict[Any, Any], stepped: Any) -> None:
        for agent, action in actions.items():
            if agent in stepped[1]:
                self._send(agent, action, *stepped)

    @_quiet
    def _send(
        self, agent: Any, action: Any, observations: Any, rewards: Any, terminated: Any, truncated: Any, infos: Any
    ) -> None:
        if agent not in self._members.begun:
            self._members.begin(agent, None)  # it was not observed
        ends = (terminated[agent], truncated[agent])
        info, observation = infos.get(agent, {}), observations.get(agent)
        self._members[agent].stepped(action, rewards[agent], *ends, info, observation)


class AECEnvWrapper(BaseWrapper[Any, Any, Any]):
    """Sends every step of the agents in a turn-based environment without changing its behavior.

    The reward of an action is the sum of the agent's rewards until its next turn. Agent IDs are `AGENT_ID/NAME`, and
    the label `agent` contains the name.
    """

    def __init__(
        self,
        env: AECEnv[Any, Any, Any],
        /,
        emitter: Emitter | None = None,
        *,
        observations: Observations = False,
        actions: bool = True,
        **names: Unpack[Names],
    ) -> None:
        """Wraps a turn-based environment.

        Args:
            env: The environment to wrap.
            emitter: The emitter to use. By default, all environments of the process share one `Emitter()`.
            observations: Whether to send the observation that each action was based on, or a function that converts an
                observation to the value to send. The function is called in the agent's thread.
            actions: Whether to send the actions.
            **names: The names that identify the agent, such as `policy` and `policy_version`: see `rewardwatch.wrap`.

        Raises:
            ValueError: If the observations or actions cannot be sent, for example because they are images.
        """
        super().__init__(env)
        self._members = _Members(env, Source(emitter, names, env.metadata.get("name")), actions, observations)
        self._turns: dict[Any, Any] = {}  # the last action of each agent, whose reward is still to come

    def set_versions(self, **versions: str | int | None) -> None:
        """Changes versions of the policy, the environment or the reward function, starting with the next step.

        Args:
            **versions: The versions that change: `policy_version`, `env_version` or `reward_version`. `None` removes a
                version.

        Raises:
            TypeError: If another name is passed.
        """
        self._members.source.set_versions(**versions)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._settle_all()
        self.env.reset(seed=seed, options=options)
        self._members.begun.clear()
        self._begin_all()

    def step(self, action: Any) -> None:
        self._take_turn(action)
        self.env.step(action)

    def close(self) -> None:
        self._settle_all()
        self.env.close()

    @_quiet
    def _begin_all(self) -> None:
        for agent in self.env.agents:
            self._begin(agent)

    @_quiet
    def _begin(self, agent: Any) -> None:
        self._members.begin(agent, self._observe(agent))

    @_quiet
    def _take_turn(self, action: Any) -> None:
        agent = self.env.agent_selection
        self._settle(agent)
        if agent not in self._members.begun:
            self._begin(agent)
        if action is not None and agent in self._members.begun:
            self._turns[agent] = action

    def _settle_all(self) -> None:
        for agent in list(self._turns):
            self._settle(agent)

    @_quiet
    def _settle(self, agent: Any) -> None:
        """Sends the agent's last step, whose reward is complete only at the agent's next turn or at the end."""
        if agent not in self._turns:
            return
        action = self._turns.pop(agent)
        if agent in self.env.agents:
            self._members[agent].stepped(
                action,
                self.env._cumulative_rewards[agent],
                self.env.terminations[agent],
                self.env.truncations[agent],
                self.env.infos.get(agent, {}),
                self._observe(agent),
            )

    def _observe(self, agent: Any) -> Any:
        return self.env.observe(agent) if self._members.observations else None


class _Members(dict[Any, Agent]):
    """The agents of an environment by name. They are created in the constructor if the environment lists them all."""

    def __init__(self, env: Any, source: Source, actions: bool, observations: Observations) -> None:
        super().__init__()
        self.source = source
        self.observations = observations
        self.begun: set[Any] = set()  # the agents that have an episode since the last reset
        self._env = env
        self._actions = actions
        for agent in getattr(env, "possible_agents", []):
            self[agent]

    def begin(self, agent: Any, observation: Any) -> None:
        """Begins an episode of an agent. Raises an exception if the agent's steps cannot be sent."""
        self[agent].begin(observation)
        self.begun.add(agent)

    def __missing__(self, agent: Any) -> Agent:
        spaces = (self._env.action_space(agent), self._env.observation_space(agent))
        self[agent] = Agent(self.source, encoders(*spaces, self._actions, self.observations), str(agent))
        return self[agent]
