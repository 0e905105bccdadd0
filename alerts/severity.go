package alerts

import "strings"

// severity says how loudly an incident asks for attention when its first alarm is of this signal.
func severity(signal string, provisional bool) Severity {
	switch {
	case provisional:
		return Info
	case isPrimary(signal):
		return Critical
	default:
		return Warning
	}
}

// isPrimary reports whether a signal says by itself that the agent does worse or does something else.
func isPrimary(signal string) bool {
	switch signal {
	case "return", "reward", "episode_length", "action":
		return true
	}
	return strings.HasPrefix(signal, "action.") || strings.HasPrefix(signal, "outcome.")
}
