package alerts

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// severityOf returns the severity of an incident that a finding opens. A guard that makes agents act is critical.
func severityOf(f *finding.Finding) Severity {
	if f.Guard == nil {
		return severity(f.Signal, f.Improvement, f.Provisional)
	}
	if f.Guard.State == guardWarns {
		return Warning
	}
	return Critical
}

// guardWarns is the state of a guard that asks nothing of agents.
const guardWarns = "warn"

// severity returns the severity of an incident whose first alarm is of this signal.
func severity(signal string, improvement, provisional bool) Severity {
	switch {
	case improvement, provisional:
		return Info
	case isPrimary(signal):
		return Critical
	default:
		return Warning
	}
}

// isPrimary reports whether a change of the signal alone shows that the agent does worse or behaves differently.
func isPrimary(signal string) bool {
	switch signal {
	case "return", "reward", "episode_length", "action":
		return true
	}
	return strings.HasPrefix(signal, "action.") || strings.HasPrefix(signal, "outcome.")
}
