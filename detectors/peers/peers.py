"""Runs the change detectors of river, frouros and scipy on streams that make bench-detection has written.

peers.py DIRECTORY reads DIRECTORY/plan.json and the arrays that it names, and prints one JSON object a line:
{"column": name, "row": name, "first": [...]}, where first holds, for each stream, the number of the first observation
with an alarm, counted from 1, 0 where there is none; and {"column": name, "alarms": n, "observations": n} on the long
stream in which nothing changes, where a detector starts anew after each alarm.
"""

import json
import multiprocessing
import pathlib
import random
import sys
import warnings

import numpy
import river.drift
import scipy.stats
from frouros.detectors.concept_drift import ADWIN, KSWIN, KSWINConfig, PageHinkley

# frouros's ADWIN refuses a negative total; to a detector of changes in the mean a constant says nothing.
RAISED = 1000.0


class River:
    """A detector of river."""

    def __init__(self, make):
        self.detector = make()

    def alarm(self, x):
        self.detector.update(x)
        return self.detector.drift_detected


class Frouros:
    """A detector of frouros."""

    def __init__(self, make):
        self.detector = make()

    def alarm(self, x):
        self.detector.update(value=x + RAISED)
        return self.detector.drift


class CramerVonMises:
    """scipy's two-sample statistic of the last observations against the first ones, at a given threshold."""

    def __init__(self, baseline, window, threshold):
        self.baseline, self.window, self.threshold = baseline, window, threshold
        self.seen = []

    def alarm(self, x):
        self.seen.append(x)
        if len(self.seen) < self.baseline + self.window:
            return False
        latest = self.seen[-self.window :]
        test = scipy.stats.cramervonmises_2samp(self.seen[: self.baseline], latest, method="asymptotic")
        return test.statistic >= self.threshold


def columns(plan):
    """The detectors by name: how one is made, and whether it is so slow that it sees only the first streams."""
    seeds = random.Random(1)
    seed = lambda: seeds.randrange(2**31)
    cvm = plan["cvm"]
    return {
        "river ADWIN, delta .002": (lambda: River(river.drift.ADWIN), False),
        "river KSWIN, alpha .005": (lambda: River(lambda: river.drift.KSWIN(seed=seed())), True),
        "river Page-Hinkley, 50": (lambda: River(river.drift.PageHinkley), False),
        "frouros ADWIN, delta .002": (lambda: Frouros(ADWIN), True),
        "frouros KSWIN, alpha .005": (lambda: Frouros(lambda: KSWIN(KSWINConfig(alpha=0.005, seed=seed()))), True),
        "frouros Page-Hinkley, 50": (lambda: Frouros(PageHinkley), False),
        "river ADWIN, calibrated": (lambda: River(lambda: river.drift.ADWIN(delta=plan["adwin_delta"])), False),
        "river Page-Hinkley, calibrated": (
            lambda: River(lambda: river.drift.PageHinkley(threshold=plan["page_hinkley"])),
            False,
        ),
        "scipy CvM, calibrated": (lambda: CramerVonMises(cvm["baseline"], cvm["window"], cvm["threshold"]), True),
    }


def first_alarm(make, stream):
    detector = make()
    for at, x in enumerate(stream.tolist(), start=1):
        if detector.alarm(x):
            return at
    return 0


def alarms(make, stream):
    """The alarms, and the observations up to the last of them or, where there are none, all."""
    detector, count, until = make(), 0, len(stream)
    for at, x in enumerate(stream.tolist(), start=1):
        if detector.alarm(x):
            detector, count, until = make(), count + 1, at
    return count, until


def work(job):
    directory, column, row = job
    warnings.simplefilter("ignore")
    plan = json.loads((directory / "plan.json").read_text())
    make, slow = columns(plan)[column]
    if row is None:
        stream = numpy.load(directory / plan["healthy"], mmap_mode="r")
        count, until = alarms(make, stream[: plan["slow_observations"]] if slow else stream)
        return {"column": column, "alarms": count, "observations": until}
    streams = numpy.load(directory / row["file"], mmap_mode="r")
    if slow:
        streams = streams[: plan["slow_streams"]]
    return {"column": column, "row": row["name"], "first": [first_alarm(make, s) for s in streams]}


def main():
    directory = pathlib.Path(sys.argv[1])
    plan = json.loads((directory / "plan.json").read_text())
    jobs = [(directory, column, row) for column in columns(plan) for row in [None, *plan["rows"]]]
    with multiprocessing.Pool() as pool:
        for result in pool.imap(work, jobs):
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
