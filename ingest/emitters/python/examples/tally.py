"""Prints what the guarded agents in these examples did, as a line of JSON, whenever their guards change."""

import json


class Tally:
    def __init__(self, guard):
        self.guard = guard
        self.held = self.state = None
        self.counts = {}

    def exploration(self):
        """Begins a step: asks the guards whether the agent may explore, and prints what was done if the answer has
        changed.
        """
        held = not self.guard.exploration()
        if held != self.held:
            print(json.dumps({"held": held, "state": self.guard.state, "before": self.counts}), flush=True)
            self.held, self.counts = held, {"steps": 0}
        self.counts["steps"] += 1
        return not held

    def count(self, **done):
        """Adds what was done in the step, such as explored=1, to the totals."""
        for name, n in done.items():
            self.counts[name] = self.counts.get(name, 0) + int(n)
