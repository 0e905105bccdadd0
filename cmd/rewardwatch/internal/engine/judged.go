package engine

// NothingJudged explains why telemetry that the first stage has read contains nothing to judge.
func NothingJudged(in *Intake) string {
	if !in.Watches() {
		return "none of the policies in the telemetry is monitored"
	}
	return NoUnits
}

// NoUnits explains why the watched telemetry has produced no units.
const NoUnits = "no episode has ended. Blocks of steps replace episodes after 10,000 events of a policy; a block needs 20 " +
	"steps of one agent, or 20,000 more events if agents take fewer steps"
