"""Sends the telemetry of reinforcement-learning agents to Rewardwatch.

- `wrap` wraps an environment and sends each of its steps.
- `decision` sends the decisions of a function, and `feedback` sends their later results.
- `Emitter` sends any event.
- `Guard` tells an agent whether it can explore, and which actions it can take.

The module `stable_baselines3` contains a callback, and the module `llm` contains wrappers for reward functions.
"""

from .decisions import decision, feedback
from .emitter import Emitter
from .guard import Guard
from .wrapping import wrap

__all__ = ["Emitter", "Guard", "decision", "feedback", "wrap"]
