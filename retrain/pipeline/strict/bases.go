package strict

import (
	"regexp"
	"strings"
)

// IsBare reports whether an image may lack CA certificates, which the official Python images contain.
func IsBare(base string) bool { return !strings.HasPrefix(base, "python:") }

// ofDebian matches names of images that are based on Debian or Ubuntu.
var ofDebian = regexp.MustCompile(`debian|ubuntu|bookworm|bullseye|trixie|jammy|noble`)

// IsDebian reports whether an image is certainly based on Debian or Ubuntu, where sh is dash.
func IsDebian(base string) bool {
	return ofDebian.MatchString(base) || strings.HasPrefix(base, "python:") && !strings.Contains(base, "alpine")
}
