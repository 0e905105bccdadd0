package pins

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// ofWindows matches the images of Windows, by a part of their path or a word of their tag.
	ofWindows = pattern.MustCompile(`(?:^|/)(?:windows|nanoserver|servercore)(?:[/@]|:[^/]*$|$)|` +
		`:(?:[\w.-]*[._-])?(?:windows|windowsservercore|nanoserver)(?:[._-][\w.-]*)?(?:@|$)`)
	// official matches one of Docker's own images, with its name and what its tag says of a version. The name of a
	// registry, which may have a port as well, is followed by a path.
	official = pattern.MustCompile(`^(?:docker\.io/)?(?:library/)?([a-z0-9-]+)(?::(?:([0-9]+)(?:\.([0-9]+))?(?:[.@-]|$))?[^/]*|@[^/]*)$`)
	// withoutPython are Docker's own images that are for something else, without Python or with too little of it.
	withoutPython = strings.Fields("alpine amazoncorretto bash busybox caddy composer docker drupal eclipse-temurin elasticsearch elixir erlang ghost golang gradle groovy haproxy " +
		"haskell httpd influxdb jenkins jruby julia kong logstash mariadb maven memcached mongo mysql nats nginx node openjdk perl php postgres r-base rabbitmq redis registry " +
		"ruby rust scratch sonarqube swift telegraf tomcat traefik vault wordpress zookeeper")
)

// NoPython returns why an image cannot be the base of a pipeline, by its name; "" if it may.
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
