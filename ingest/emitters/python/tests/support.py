"""What the tests share: transports that keep what they are given, and environments."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rewardwatch import Emitter


class Kept:
    """A transport that keeps its messages. It has room for `room` of them at first."""

    def __init__(self, room=10**9):
        self.messages = []
        self.room = room
        self.abandoned = self.closed = False

    def __call__(self, lost):
        self.lost = lost
        return self

    def send(self, key, lines):
        if len(self.messages) >= self.room:
            return False
        self.messages.append((key, [json.loads(line) for line in lines]))
        return True

    def serve(self, timeout):
        pass

    def waiting(self):
        return 0

    def close(self):
        self.closed = True

    def abandon(self):
        self.abandoned = True


class KeepingEmitter(Emitter):
    """An emitter whose events can be looked at."""

    def __init__(self, **options):
        self.kept = Kept()
        super().__init__(connect=self.kept, **options)

    def events(self):
        assert self.flush() == 0
        return [event for _, events in self.kept.messages for event in events]


@dataclass(frozen=True)
class ToFiles:
    """Opens a transport that writes to a file of the process's own, "PID.ndjson". It pickles."""

    directory: Path

    def __call__(self, lost):
        return _ToFile(self.directory / f"{os.getpid()}.ndjson")

    def events(self) -> dict[int, list[dict[str, Any]]]:
        """The events by the process that sent them."""
        return {
            int(path.stem): [json.loads(line) for line in path.read_text().splitlines()]
            for path in self.directory.glob("*.ndjson")
        }


class _ToFile(Kept):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def send(self, key, lines):
        with self.path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        return True


class Corridor(gymnasium.Env):
    """Three steps to the right. It writes each observation into the same memory."""

    observation_space = gymnasium.spaces.Box(0, 3, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, info=None, length=3):
        self.place = np.zeros(1, dtype=np.float32)
        self.info = info or {}
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place[0] = 0
        return self.place, {}

    def step(self, action):
        self.place[0] += 1
        return self.place, float(self.place[0]), self.place[0] == self.length, False, self.info


class Tensor:
    """As much of a tensor of torch as the package uses: it has clone in the place of copy."""

    def __init__(self, values):
        self.values = np.array(values)
        self.ndim = self.values.ndim

    def detach(self):
        return self

    def clone(self):
        return Tensor(self.values)

    def ravel(self):
        return self

    def tolist(self):
        return self.values.ravel().tolist()

    def item(self):
        return self.values.item()

    def __getitem__(self, index):
        return Tensor(self.values[index])

    def __setitem__(self, index, value):
        self.values[index] = value

    def __len__(self):
        return len(self.values)

    def __or__(self, other):
        return Tensor(self.values | other.values)

    def __bool__(self):
        return bool(self.values)


def walk(env, actions):
    """Takes the actions after a reset."""
    env.reset(seed=1)
    for action in actions:
        env.step(action)


def named(events, *fields):
    """The fields of each event."""
    return [tuple(event.get(field) for field in fields) for event in events]
