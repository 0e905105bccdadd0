"""A training job: retrains a tabular policy as an order of Rewardwatch says, and writes it where the agent loads it from.

The order is the body of the webhook, on stdin; with --secret its signature is verified by the headers. Its config names the lake to train on and how; the last line of stdout is the
version of the policy that was made.
"""

import argparse
import json
import sys

from standardwebhooks import Webhook

import lake


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy-file", required=True)
    parser.add_argument("--secret", help="whsec_ secret that the webhook must be signed with")
    parser.add_argument("--headers", type=json.loads, default={}, help="of the webhook, as JSON")
    args = parser.parse_args()
    body = sys.stdin.read()
    if args.secret:
        Webhook(args.secret).verify(body, args.headers)
    order = json.loads(body)["data"]
    config = order["config"]
    world = lake.make(config["env_version"])
    if config["algorithm"] == "q_learning":
        table = lake.learn(world, config["episodes"], config["learning_rate"], config["discount"], config["seed"])
    elif config["algorithm"] == "stand":
        table = lake.stand(world)
    else:
        sys.exit(f"this job knows no {config['algorithm']}")
    version = "after-" + order["id"]
    lake.save(args.policy_file, version, table)
    print(version)


if __name__ == "__main__":
    main()
