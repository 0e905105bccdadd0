"""Sends the telemetry of agents to Rewardwatch.

wrap(env) sends every step of an environment, decision() what a function decides, feedback() what became of it later,
and Emitter any event. Guard says what an agent may do. The modules stable_baselines3 and llm have a callback and reward
functions.
"""

from .decisions import decision, feedback
from .emitter import Emitter
from .guard import Guard
from .wrapping import wrap

__all__ = ["Emitter", "Guard", "decision", "feedback", "wrap"]
