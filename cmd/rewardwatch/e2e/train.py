"""A training job: retrains a tabular policy as an order of Rewardwatch says, and writes it where the agent loads it from.

The order is the body of the webhook, on stdin. Its config names the lake to train on and how; the last line of stdout is the
version of the policy that was made.
"""

import argparse
import json
import sys

import lake


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy-file", required=True)
    args = parser.parse_args()
    order = json.load(sys.stdin)["data"]
    config = order["config"]
    if config["algorithm"] != "q_learning":
        sys.exit(f"this job knows no {config['algorithm']}")
    table = lake.learn(
        lake.make(config["env_version"]), config["episodes"], config["learning_rate"], config["discount"], config["seed"]
    )
    version = "after-" + order["id"]
    lake.save(args.policy_file, version, table)
    print(version)


if __name__ == "__main__":
    main()
