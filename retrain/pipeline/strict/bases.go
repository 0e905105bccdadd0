package strict

import "strings"

// IsBare reports whether an image may lack the certificates of authorities, which official images of Python contain.
func IsBare(base string) bool { return !strings.HasPrefix(base, "python:") }
