"""Writes the two topics of a recommender: its decisions, and the clicks on the tiles it showed.

One in four tiles is clicked, two minutes later on average. From decision 6,000 of 8,000, it is one in eight.
"""

import json
import random

DECISIONS, HALVED = 8_000, 6_000
KINDS = ["video", "article", "product"]
START = 1793520000.0  # 2026-11-01

rng = random.Random(15)


def milliseconds(seconds):
    return int(seconds * 1000)


def main():
    now, clicks = START, []
    with open("decisions.ndjson", "w") as file:
        for number in range(DECISIONS):
            now += rng.expovariate(1 / 8)
            request = {"id": f"r-{number:05}", "user": {"id": f"u-{int(rng.random() * 2000)}", "country": "de"}}
            chosen = {"kind": rng.choices(KINDS, [5, 3, 2])[0], "rank_score": round(rng.gauss(0.5, 0.1), 3)}
            decision = {"request": request, "chosen": chosen, "model": "ranker-31", "shown_at_ms": milliseconds(now)}
            file.write(json.dumps(decision, separators=(",", ":")) + "\n")
            if rng.random() < (0.125 if number >= HALVED else 0.25):
                clicks.append((now + rng.expovariate(1 / 120), request["id"]))
    with open("clicks.ndjson", "w") as file:
        for at, request in sorted(clicks):
            click = {"clicked_at_ms": milliseconds(at), "request_id": request}
            file.write(json.dumps(click, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
