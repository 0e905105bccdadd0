"""Agents of two deployed policies. After a while, customers of one of them begin to pay less."""

import argparse
import itertools
import random
import time

import rewardwatch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-second", type=float, default=4, help="episodes of each policy")
    parser.add_argument("--healthy", type=int, default=1000, help="episodes of each policy before the drift")
    args = parser.parse_args()

    rng = random.Random(1)
    with rewardwatch.Emitter() as emitter:
        for episode in itertools.count():
            begun = time.monotonic()
            for policy, loss in (("checkout-ranker", 0.5 if episode >= args.healthy else 0), ("warehouse-router", 0)):
                play(emitter, rng, policy, f"{episode}", loss)
            time.sleep(max(0, 1 / args.per_second - (time.monotonic() - begun)))


def play(emitter, rng, policy, episode, loss):
    """Sends an episode of five steps."""
    for step in range(5):
        emitter.emit(
            {
                "policy": policy,
                "env": "prod",
                "policy_version": "1",
                "agent_id": "agent-1",
                "episode_id": episode,
                "step": step,
                "action": rng.choice(["a", "b", "b", "c"]),
                "reward": rng.gauss(1 - loss, 0.5),
                "terminated": step == 4,
            }
        )


if __name__ == "__main__":
    main()
