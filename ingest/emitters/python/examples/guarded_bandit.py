"""Thompson sampling over four offers, one of which refunds everything: customers like it, and so does the bandit.

Its guard limits how often that offer is made:

    policies:
      - match: offers
        guards: {limits: [{name: refunds, actions: [refund_all], share: 0.05}]}

Set REWARDWATCH_URL to the URL of the service.
"""

import argparse
import random
import time

from tally import Tally

import rewardwatch

CLICKS = {"none": 0.05, "discount": 0.10, "gift": 0.08, "refund_all": 0.30}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--visitors", type=int, default=100_000)
    parser.add_argument("--per-second", type=float, default=200)
    args = parser.parse_args()

    rng = random.Random(1)
    won = dict.fromkeys(CLICKS, 1)
    lost = dict.fromkeys(CLICKS, 1)
    with rewardwatch.Emitter() as emitter, rewardwatch.Guard("offers", unsafe=["refund_all"]) as guard:
        tally = Tally(guard)
        for visitor in range(args.visitors):
            learning = tally.exploration()
            if learning:
                values = {offer: rng.betavariate(won[offer], lost[offer]) for offer in CLICKS}
            else:
                values = {offer: won[offer] / (won[offer] + lost[offer]) for offer in CLICKS}
            offer = max((o for o in CLICKS if guard.allows(o)), key=values.__getitem__)
            clicked = rng.random() < CLICKS[offer]
            if learning:
                (won if clicked else lost)[offer] += 1
            tally.count(refunds=offer == "refund_all")
            emitter.emit(
                {
                    "policy": "offers",
                    "agent_id": "web",
                    "episode_id": f"{visitor}",
                    "step": 0,
                    "ts": time.time(),
                    "action": offer,
                    "reward": float(clicked),
                    "terminated": True,
                }
            )
            time.sleep(1 / args.per_second)


if __name__ == "__main__":
    main()
