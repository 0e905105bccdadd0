package pins

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// ofWindows matches Windows images, by a part of their path or a word in their tag.
	ofWindows = pattern.MustCompile(`(?:^|/)(?:windows|nanoserver|servercore)(?:[/@]|:[^/]*$|$)|` +
		`:(?:[\w.-]*[._-])?(?:windows|windowsservercore|nanoserver)(?:[._-][\w.-]*)?(?:@|$)`)
	// official matches an official Docker image, with its name and the version in its tag. A registry, which may have a
	// port, is followed by a path and does not match.
	official = pattern.MustCompile(`^(?:docker\.io/)?(?:library/)?([a-z0-9-]+)(?::(?:([0-9]+)(?:\.([0-9]+))?(?:[.@-]|$))?[^/]*|@[^/]*)$`)
	// withoutPython are official Docker images for other purposes, which contain no Python, or too little of it.
	withoutPython = strings.Fields("alpine amazoncorretto bash busybox caddy composer docker drupal eclipse-temurin elasticsearch elixir erlang ghost golang gradle groovy haproxy " +
		"haskell httpd influxdb jenkins jruby julia kong logstash mariadb maven memcached mongo mysql nats nginx node openjdk perl php postgres r-base rabbitmq redis registry " +
		"ruby rust scratch sonarqube swift telegraf tomcat traefik vault wordpress zookeeper")
)

// NoPython returns why an image cannot be the base of a pipeline, judging by its name, or "" if it may.
func NoPython(image string) string {
	example := Base(Default)
	name := official.FindStringSubmatch(image)
	switch {
	case ofWindows.MatchString(image):
		return "must be a Linux image, not " + image + ": use an image with Python, such as " + example
	case name == nil:
	case name[1] == "python" && name[2] != "" && (name[2] != "3" || name[3] != "" && Compare(name[3], "7") < 0):
		return "must have Python 3.7 or later, not " + strings.TrimSuffix(name[2]+"."+name[3], ".")
	case slices.Contains(withoutPython, name[1]):
		return "must be an image that contains Python, such as " + example + ", unlike " + name[1]
	}
	return ""
}
