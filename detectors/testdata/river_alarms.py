"""Writes river_alarms.json: where the detectors of river itself alarm, on streams that the Go tests can draw again to the bit.

    python3 -m venv venv && venv/bin/pip install river==0.26.1
    venv/bin/python river_alarms.py > river_alarms.json
"""

import importlib.metadata
import json
import math

from river import drift


class Splitmix:
    """splitmix64 (Steele, Lea & Flood 2014)."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / (1 << 53)

    def normal(self):
        """The sum of twelve uniforms less 6: nearly normal, and the same bits in every language."""
        total = 0.0
        for _ in range(12):
            total += self.uniform()
        return total - 6.0


def draw(stream):
    rng = Splitmix(stream["seed"])
    for segment in stream["segments"]:
        for _ in range(segment["n"]):
            x = segment["sd"] * rng.normal() + segment["mean"]
            if stream["grid"]:
                x = math.floor(x / stream["grid"] + 0.5) * stream["grid"]
            yield x


def segments(*triples):
    return [{"n": n, "mean": mean, "sd": sd} for n, mean, sd in triples]


STREAMS = {
    "shifts": segments((900, 0, 1), (700, 1, 1), (400, -0.5, 1), (800, 0, 1)),
    "spread": segments((1500, 0, 1), (1500, 0, 3), (1000, 0, 0.5)),
    "slow": segments(*[(250, step / 8, 1) for step in range(16)]),
    "ratio": segments((1200, 0.5, 0.1), (1200, 0.45, 0.1), (600, 0.7, 0.1)),
    "far from zero": segments((1000, 1e6, 1), (1000, 1e6 + 2, 1), (1000, 1e6 - 2, 1)),
    "large": segments((800, -200, 500), (800, 200, 500)),
    "long": segments((40000, 0, 1), (2000, 0.3, 1)),
}

DETECTORS = [("adwin", 0.002), ("adwin", 0.1), ("adwin", 0.9), ("page-hinkley", 0.005)]


def run(name, delta, stream):
    detector = drift.ADWIN(delta=delta) if name == "adwin" else drift.PageHinkley(delta=delta)
    alarms = []
    for index, x in enumerate(draw(stream)):
        detector.update(x)
        if detector.drift_detected:
            alarm = {"index": index}
            if name == "adwin":
                alarm |= {"width": int(detector.width), "mean": detector.estimation}
            alarms.append(alarm)
    return alarms


def main():
    cases = []
    for name, delta in DETECTORS:
        for seed, (title, parts) in enumerate(STREAMS.items(), start=1):
            for grid in (0, 0.5):
                stream = {"title": title, "seed": seed, "grid": grid, "segments": parts}
                cases.append({"detector": name, "delta": delta, "stream": stream, "alarms": run(name, delta, stream)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    print(f'{{"river": "{importlib.metadata.version("river")}", "cases": [\n{lines}\n]}}')


main()
