package alerts

import "strings"

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
