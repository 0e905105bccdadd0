"""Sends the telemetry of agents to Rewardwatch.

wrap(env) sends every step of an environment, decision() sends the decisions of a function, feedback() sends their later
results, and Emitter sends any event. Guard tells an agent what it can do. The modules stable_baselines3 and llm contain
a callback and wrappers for reward functions.
"""

from .decisions import decision, feedback
from .emitter import Emitter
from .guard import Guard
from .wrapping import wrap

__all__ = ["Emitter", "Guard", "decision", "feedback", "wrap"]
