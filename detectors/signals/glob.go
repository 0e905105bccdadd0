package signals

import (
	"path"
	"strings"
)

// MayMatch reports whether a glob may match a signal. It detects misspelt names, which would silently leave a
// signal unwatched. A pattern may always match.
func MayMatch(glob string) bool { return strings.ContainsAny(glob, `*?[\`) || IsSignal(glob) }

// IsSignal reports whether a signal can have this name.
func IsSignal(name string) bool {
	switch name {
	case "return", "reward", "episode_length", "action", "feedback_delay":
		return true
	}
	for _, prefix := range []string{"action.", "outcome.", "reward_component.", "observation.", lawPrefix} {
		if len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ValidGlob reports whether a glob is well formed.
func ValidGlob(glob string) bool {
	_, err := path.Match(glob, "")
	return err == nil
}

// Match reports whether a name matches a glob: * is any run of characters, ? any one, [a-z] one of a set. A slash is a
// character like any other, as names such as ALE/Pong-v5 are common. A malformed glob matches nothing.
func Match(glob, name string) bool {
	const flat = "\x1f"
	ok, err := path.Match(strings.ReplaceAll(glob, "/", flat), strings.ReplaceAll(name, "/", flat))
	return err == nil && ok
}
