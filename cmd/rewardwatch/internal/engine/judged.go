package engine

import (
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// NothingJudged says why telemetry that an assembler has read contains nothing to judge.
func NothingJudged(a *assemble.Assembler) string {
	if !a.Watches() {
		return "no policy in the telemetry is watched"
	}
	return NoUnits
}

// NoUnits explains why the watched telemetry has produced no units.
const NoUnits = "no episode has ended, and blocks of steps in their place begin after 10,000 events of a policy; they need 20 " +
	"steps of an agent, or 20,000 more events where agents take fewer"
