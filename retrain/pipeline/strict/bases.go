package strict

import (
	"regexp"
	"strings"
)

// IsBare reports whether an image may lack the certificates of authorities, which official images of Python contain.
func IsBare(base string) bool { return !strings.HasPrefix(base, "python:") }

// ofDebian matches what the names of images of Debian and Ubuntu contain.
var ofDebian = regexp.MustCompile(`debian|ubuntu|bookworm|bullseye|trixie|jammy|noble`)

// IsDebian reports whether an image is certain to be one of Debian or Ubuntu, whose sh is dash.
func IsDebian(base string) bool {
	return ofDebian.MatchString(base) || strings.HasPrefix(base, "python:") && !strings.Contains(base, "alpine")
}
