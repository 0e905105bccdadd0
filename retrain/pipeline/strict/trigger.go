package strict

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// notOfRef matches what the name of a Git branch or tag must not contain.
var notOfRef = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(/|$)|^[./-]|[./]$|^@$`)

// IsRef reports whether a text can be the name of a Git branch or tag.
func IsRef(text string) bool { return text != "" && !notOfRef.MatchString(text) }

// ofTelemetry matches the signal names that the service uses, and every pattern.
var ofTelemetry = regexp.MustCompile(`[*?[\\]|^(return|reward|episode_length|action|feedback_delay)$|^(action|outcome|reward_component|observation|law)\..`)

// Signals returns, by path, what is wrong with the signals of a trigger, such as one that is not monitored and so never
// raises an alarm. given are the signals in the file; all are those in effect, which are the defaults if given is nil.
func Signals(given, all, monitored []string) map[string]string {
	out := map[string]string{}
	if given == nil && !slices.ContainsFunc(all, func(s string) bool { return overlap(s, monitored) }) {
		out["monitoring.signals"] = "must include return or reward, which start a retraining unless you set trigger.signals"
	}
	for i, s := range given {
		path := fmt.Sprintf("trigger.signals[%d]", i)
		switch {
		case !ofTelemetry.MatchString(s):
			out[path] = fmt.Sprintf("must be return, reward, episode_length, action, feedback_delay, a name such as observation.NAME, or a pattern, not %q", s)
		case !overlap(s, monitored):
			out[path] = "must be monitored, but monitoring.signals does not include " + s
		case slices.Contains(given[:i], s):
			out[path] = "is listed twice"
		}
	}
	return out
}

// IsSignal reports whether a text is the name of a signal in the service, or a pattern.
func IsSignal(text string) bool { return ofTelemetry.MatchString(text) }

// Monitored reports whether one of the patterns may match a signal.
func Monitored(signal string, patterns []string) bool { return overlap(signal, patterns) }

// Expected returns the default signal of a contract: reward if it is monitored and return is not, otherwise return.
func Expected(monitored []string) string {
	if !overlap("return", monitored) && overlap("reward", monitored) {
		return "reward"
	}
	return "return"
}

// overlap reports whether a name or pattern may have a signal in common with one of the others. Of two patterns, it
// compares only what precedes the first wildcard.
func overlap(glob string, others []string) bool {
	return strings.HasPrefix(glob, "law.") || slices.ContainsFunc(others, func(other string) bool {
		a, aIs := before(glob)
		b, bIs := before(other)
		switch {
		case aIs && bIs:
			return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
		case aIs:
			return matches(glob, other)
		}
		return matches(other, glob)
	})
}

// before returns what precedes the first wildcard of a pattern, and whether there is a wildcard.
func before(glob string) (string, bool) {
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		return glob[:i], true
	}
	return glob, false
}

func matches(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x1f"), strings.ReplaceAll(name, "/", "\x1f"))
	return ok || err != nil // a malformed pattern is reported elsewhere
}
