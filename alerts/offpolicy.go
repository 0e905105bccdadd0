package alerts

import "github.com/rewardwatch/rewardwatch/detectors/finding"

// shownBound is the evidence, in nats, of an off-policy estimate against a cause that it excludes. Like the movements
// of signals, it cannot outweigh a version that changed.
const shownBound = 4.

// shows reports whether an off-policy estimate shows that either the policy or the world has changed.
func shows(o *finding.OffPolicy) bool {
	return o != nil && (o.Shown == finding.ShownPolicy || o.Shown == finding.ShownWorld)
}

// offPolicySays returns the evidence of an off-policy estimate for a cause, in nats. The world is the environment and
// the reward function, which the estimate cannot distinguish.
func offPolicySays(c Cause, o *finding.OffPolicy) float64 {
	if !shows(o) || (c == CausePolicy) == (o.Shown == finding.ShownPolicy) {
		return 0
	}
	return -shownBound
}

// offPolicyWords says how an off-policy estimate, if there is one, divides the change.
func offPolicyWords(o *finding.OffPolicy) []string {
	if !o.Known() {
		return nil
	}
	return []string{o.ChangeWords()}
}
