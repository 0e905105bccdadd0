"""Writes obp_estimates.json: logged decisions, and what the estimators of the Open Bandit Pipeline make of them.

obp needs torch, of which the estimators only check the type, so that this takes some GB for a minute:

    python3 -m venv venv && venv/bin/pip install obp==0.4.1 torch==2.4.1 numpy==1.26.4 scikit-learn==1.4.2 pandas==2.2.2
    venv/bin/python obp_estimates.py > obp_estimates.json
"""

import importlib.metadata
import json

import numpy
from obp.ope import DirectMethod, DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting


def softmax(x):
    e = numpy.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def case(title, seed, rounds, actions, sharpness, target):
    """Decisions of a policy that depends on the situation, and the estimates for another policy.

    target is "frequencies", a policy with the same shares of actions in every situation and a model of rewards by
    action, or "situation", a policy that depends on the situation too and a model with one reward for all actions.
    """
    rng = numpy.random.default_rng(seed)
    situation = rng.normal(size=(rounds, actions))
    behaviour = softmax(sharpness * situation)
    taken = numpy.array([rng.choice(actions, p=p) for p in behaviour])
    at = numpy.arange(rounds)
    reward = (rng.random(rounds) < 1 / (1 + numpy.exp(-situation[at, taken]))).astype(float) * (1 + taken)
    if target == "frequencies":
        share = rng.dirichlet(numpy.ones(actions))
        model = rng.normal(1, 0.5, size=actions)
        accepted = numpy.tile(share, (rounds, 1))
    else:
        share = numpy.zeros(actions)
        model = numpy.full(actions, 0.7)
        accepted = softmax(rng.normal(size=(rounds, actions)))
    by_model = numpy.tile(model, (rounds, 1))[:, :, None]
    of = dict(reward=reward, action=taken, pscore=behaviour[at, taken], action_dist=accepted[:, :, None])
    modelled = dict(action_dist=accepted[:, :, None], estimated_rewards_by_reg_model=by_model)
    return {
        "title": title,
        "target": target,
        "actions": taken.tolist(),
        "action_prob": behaviour[at, taken].tolist(),
        "target_prob": accepted[at, taken].tolist(),
        "rewards": reward.tolist(),
        "shares": share.tolist(),
        "model": model.tolist(),
        "ipw": InverseProbabilityWeighting().estimate_policy_value(**of),
        "snipw": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**of),
        "dm": DirectMethod().estimate_policy_value(**modelled),
        "dr": DoublyRobust().estimate_policy_value(**of, estimated_rewards_by_reg_model=by_model),
    }


CASES = [
    case("light weights", 1, 60, 3, 0.5, "frequencies"),
    case("heavy weights", 2, 80, 5, 3.0, "frequencies"),
    case("one action", 3, 20, 1, 1.0, "frequencies"),
    case("an accepted policy that depends on the situation", 4, 60, 4, 1.0, "situation"),
    case("the same, heavy weights", 5, 60, 4, 4.0, "situation"),
]

print(json.dumps({"obp": importlib.metadata.version("obp"), "cases": CASES}))
