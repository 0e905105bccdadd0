package strict

import (
	"regexp"
	"strings"
)

var (
	moving  = regexp.MustCompile(`(?i)^(latest|stable|nightly|main|master|edge|dev|devel|rolling)([._-]|$)`)
	numbers = regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*`)
)

// Moves reports whether the tag of an image can later refer to another image: a branch such as latest-py3, or a version
// of an official Docker image without its last number, such as python:3.12-slim.
func Moves(image string) bool {
	if strings.Contains(image, "@") {
		return false
	}
	name, tag := image, ""
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		name, tag = image[:i], image[i+1:]
	}
	given := strings.Count(numbers.FindString(tag), ".") + 1
	switch {
	case moving.MatchString(tag):
		return true
	case name[strings.LastIndex(name, "/")+1:] == "python":
		return given < 3
	}
	return !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/"), "/") && given < 2
}
