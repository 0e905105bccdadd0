"""Sends the telemetry of reinforcement-learning agents to Rewardwatch over Kafka.

Emitter sends any event; RewardwatchWrapper, which needs gymnasium, sends every step of an environment.
"""

from .emitter import Emitter

__all__ = ["Emitter", "RewardwatchWrapper"]


def __getattr__(name):
    # Gymnasium is imported by those who use the wrapper only, and need not be there for the others.
    if name == "RewardwatchWrapper":
        from .wrapper import RewardwatchWrapper

        return RewardwatchWrapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
