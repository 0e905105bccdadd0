package pins

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// ofWindows matches the images of Windows, by a part of their path or a word of their tag.
	ofWindows = regexp.MustCompile(`(?:^|/)(?:windows|nanoserver|servercore)(?:[/@]|:[^/]*$|$)|` +
		`:(?:[\w.-]*[._-])?(?:windows|windowsservercore|nanoserver)(?:[._-][\w.-]*)?(?:@|$)`)
	// official matches one of Docker's own images, with its name and what its tag says of a version. The name of a
	// registry, which may have a port as well, is followed by a path.
	official = regexp.MustCompile(`^(?:docker\.io/)?(?:library/)?([a-z0-9-]+)(?::(?:([0-9]+)(?:\.([0-9]+))?(?:[.@-]|$))?[^/]*|@[^/]*)$`)
	// withoutPython are Docker's own images that are for something else, without Python or with too little of it.
	withoutPython = strings.Fields("alpine amazoncorretto bash busybox caddy composer docker drupal eclipse-temurin elasticsearch elixir erlang ghost golang gradle groovy haproxy " +
		"haskell httpd influxdb jenkins jruby julia kong logstash mariadb maven memcached mongo mysql nats nginx node openjdk perl php postgres r-base rabbitmq redis registry " +
		"ruby rust scratch sonarqube swift telegraf tomcat traefik vault wordpress zookeeper")
)

// NoPython returns why an image cannot be the base of a pipeline, by its name; "" if it may.
func NoPython(image string) string {
	const advice = ": use an image with Python, such as python:3.11.15-slim-bookworm"
	name := official.FindStringSubmatch(image)
	switch {
	case ofWindows.MatchString(image):
		return "must be an image of Linux, not " + image + advice
	case name == nil:
	case name[1] == "python" && name[2] != "" && (name[2] != "3" || name[3] != "" && Compare(name[3], "7") < 0):
		return "must have a version of Python 3, of at least 3.7, not " + strings.TrimSuffix(name[2]+"."+name[3], ".")
	case slices.Contains(withoutPython, name[1]):
		return "must be an image with Python, which " + name[1] + " is not, such as python:3.11.15-slim-bookworm"
	}
	return ""
}

// firsts are the first releases of packages that took over from others, whose versions people keep.
var firsts = map[string]string{"gymnasium": "0.26.0"}

// pure are packages whose versions before those of the table have files for every Python, though they do not say so.
var pure = strings.Fields("ipykernel nbconvert")

// Before returns why a requirement cannot be installed in an image: its version is older than all that have files for the
// image's Python. It is "" if that is not known, or if a compiler alone would help.
func Before(base, requirement string) string {
	image := ofBase.FindStringSubmatch(base)
	name, version, exact := strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	if first := firsts[Normalized(name)]; exact && first != "" && Compare(version, first) < 0 {
		return "must be at least " + first + ", the first release of " + name
	}
	if image == nil || !exact || slices.Contains(slices.Concat(builds, pure), Normalized(name)) {
		return ""
	}
	version, _, _ = strings.Cut(version, "+")
	all := windows(Normalized(name))
	oldest := all[image[1]].low
	if oldest == "" || Compare(version, oldest) >= 0 {
		return ""
	}
	fault := fmt.Sprintf("must be at least %s with Python %s, because version %s has no files for it", oldest, image[1], version)
	for _, b := range bases {
		if w, ok := all[b.python]; ok && Compare(version, w.low) >= 0 && Compare(version, w.high) <= 0 {
			return fault + "; or set base: " + b.image
		}
	}
	return fault
}

// usual are packages whose names others imitate.
var usual = strings.Fields("gymnasium matplotlib numpy opencv-python pandas pettingzoo scikit-learn scipy stable-baselines3 tensorboard tensorflow torch torchvision transformers")

// Misspelled returns why a requirement is not the package that it seems to be, "" if it may be. No other one that the list
// has is meant as well.
func Misspelled(requirement string, all []string) string {
	name, _, _ := strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	name = Normalized(name)
	joined := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	for _, near := range usual {
		if len(name) > 4 && near != name && (joined(name) == joined(near) || slipped(name, near)) && pinned(near, all) == "" && !Known(Default, name) && allNewest()[name] == "" {
			return fmt.Sprintf("must be %s, not %s, which is another package", near, name)
		}
	}
	return ""
}

// slipped reports whether a name is another one with two letters transposed, a letter doubled, or a letter before the last
// one missing. A digit, or another letter at the end, makes a name of its own.
func slipped(name, of string) bool {
	short, long := name, of
	if len(name) > len(of) {
		short, long = of, name
	}
	if len(long) != len(short)+1 {
		return transposed(name, of)
	}
	i := 0
	for i < len(short) && short[i] == long[i] {
		i++
	}
	if short[i:] != long[i+1:] || long[i] >= '0' && long[i] <= '9' {
		return false
	}
	return long == of && i < len(short) || long == name && i > 0 && long[i-1] == long[i]
}

// transposed reports whether two names differ in the order of two letters that follow one another.
func transposed(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}
