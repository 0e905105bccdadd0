package engine

// NothingJudged says why telemetry that the first stage has read contains nothing to judge.
func NothingJudged(in *Intake) string {
	if !in.Watches() {
		return "no policy in the telemetry is watched"
	}
	return NoUnits
}

// NoUnits explains why the watched telemetry has produced no units.
const NoUnits = "no episode has ended, and blocks of steps in their place begin after 10,000 events of a policy; they need 20 " +
	"steps of an agent, or 20,000 more events where agents take fewer"
