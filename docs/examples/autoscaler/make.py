"""Writes the decisions of an autoscaler that adds and removes replicas of eight services once per minute.

The task has no end, so there are no episodes. The load depends on the hour of the day. From 06:00 on the sixth day,
each replica handles 15% fewer requests.
"""

import datetime
import json
import math
import random

HOURS, SLOWER = 5 * 24 + 12, 5 * 24 + 6
BEGIN = datetime.datetime(2026, 10, 5, tzinfo=datetime.timezone.utc)


class Service:
    """A service whose replicas handle a queue of requests."""

    def __init__(self, name, rng):
        self.name, self.rng = name, rng
        self.size, self.surge = rng.uniform(0.7, 1.3), 0.0
        self.queue, self.replicas = 0.0, 5

    def decide(self, load):
        if self.rng.random() < 0.03:
            return self.rng.choice(["up", "down", "stay"])
        if self.queue > 8:
            return "up"
        return "down" if self.queue < 2 and load < 4.2 * self.replicas else "stay"

    def minute(self, now, answered):
        """Returns the record of a minute in which each replica can handle the given number of requests."""
        self.surge = 0.95 * self.surge + 0.1 * self.rng.gauss(0, 1)
        hour = (now - BEGIN).total_seconds() / 3600
        load = self.size * (30 + 18 * math.sin((hour - 8) / 24 * 2 * math.pi)) * math.exp(0.3 * self.surge)
        state = {"load": round(load, 2), "queue": round(self.queue, 2), "replicas": self.replicas}
        decision = self.decide(load)
        self.replicas = min(20, max(1, self.replicas + {"up": 1, "down": -1, "stay": 0}[decision]))
        waiting = self.queue + load + self.rng.gauss(0, 2) - answered * self.replicas
        self.queue = min(200, max(0.0, waiting))
        return {
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "service": self.name,
            "model": "scaler",
            "state": state,
            "decision": decision,
            "reward": round(-0.1 * self.replicas - 0.05 * self.queue, 4),
        }


def main():
    rng = random.Random(3)
    services = [Service(f"service-{k}", rng) for k in range(8)]
    with open("decisions.ndjson", "w") as out:
        for minute in range(60 * HOURS):
            answered = 6.0 if minute < 60 * SLOWER else 5.1
            for k, service in enumerate(services):
                now = BEGIN + datetime.timedelta(minutes=minute, seconds=k)
                out.write(json.dumps(service.minute(now, answered)) + "\n")


if __name__ == "__main__":
    main()
