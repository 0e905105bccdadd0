package pins

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

var (
	// ofWindows matches the images of Windows.
	ofWindows = regexp.MustCompile(`(^|[/:_-])(windows|windowsservercore|nanoserver|servercore)([/:._-]|$)`)
	// numbered matches an image of Python, of any registry, with its version.
	numbered = regexp.MustCompile(`(?:^|/)python:([0-9]+)(\.[0-9]+)?(?:[.-]|$)`)
	// official matches the name of one of Docker's own images.
	official = regexp.MustCompile(`^(?:docker\.io/)?(?:library/)?([a-z0-9-]+)[:@]`)
	// withoutPython are Docker's own images that are for something else, without Python or with too little of it.
	withoutPython = strings.Fields("alpine amazoncorretto bash busybox caddy composer docker drupal eclipse-temurin elasticsearch elixir erlang ghost golang gradle groovy haproxy " +
		"haskell httpd influxdb jenkins jruby julia kong logstash mariadb maven memcached mongo mysql nats nginx node openjdk perl php postgres r-base rabbitmq redis registry " +
		"ruby rust scratch sonarqube swift telegraf tomcat traefik vault wordpress zookeeper")
)

// NoPython returns why an image cannot be the base of a pipeline, by its name; "" if it may.
func NoPython(image string) string {
	const advice = ": use an image with Python, such as python:3.11.15-slim-bookworm"
	version := numbered.FindStringSubmatch(image)
	name := official.FindStringSubmatch(image)
	switch {
	case ofWindows.MatchString(image):
		return "must be an image of Linux, not " + image + advice
	case version != nil && (version[1] != "3" || version[2] != "" && Base(version[1]+version[2]) == ""):
		return fmt.Sprintf("must have a version of Python from 3.7 to 3.14, not %s%s", version[1], version[2])
	case name != nil && slices.Contains(withoutPython, name[1]):
		return "must be an image with Python, which " + path.Base(name[1]) + " is not, such as python:3.11.15-slim-bookworm"
	}
	return ""
}

// firsts are the first releases of packages that took over from others, whose versions people keep.
var firsts = map[string]string{"gymnasium": "0.26.0"}

// Before returns why a requirement cannot be installed in an image: its version is older than all that have files for the
// image's Python. It is "" if that is not known, or if a compiler alone would help.
func Before(base, requirement string) string {
	image := ofBase.FindStringSubmatch(base)
	name, version, exact := strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	if first := firsts[Normalized(name)]; exact && first != "" && Compare(version, first) < 0 {
		return "must be at least " + first + ", the first release of " + name
	}
	if image == nil || !exact || slices.Contains(builds, Normalized(name)) {
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
	name, version, _ := strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	name = Normalized(name)
	near := nearest.Of(name, slices.Values(usual))
	if len(name) < 5 || near == "" || near == name || nearest.Distance(name, near) > 1 && !transposed(name, near) || pinned(near, all) != "" || Known(Default, name) || allNewest()[name] != "" {
		return ""
	}
	return fmt.Sprintf("must be %s==%s, not %s, which is another package", near, version, name)
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
