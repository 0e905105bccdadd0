package strict

import (
	"net/url"
	"strings"
)

const github = "github.com"

// githubHost returns the host of the GitHub instance with the given API URL, or github.com if the URL has none.
func githubHost(api string) string {
	if u, err := url.Parse(api); err == nil && u.Hostname() != "" {
		return strings.TrimPrefix(u.Hostname(), "api.")
	}
	return github
}

// IsEnterprise reports whether an API URL belongs to a GitHub Enterprise Server. Hosts in ghe.com are run by GitHub and
// have the features of github.com.
func IsEnterprise(api string) bool {
	host := githubHost(api)
	return host != github && !strings.HasSuffix(host, ".ghe.com")
}

// IsOwnRegistry reports whether an image is in a registry of the GitHub instance with the given API URL, which accepts
// a workflow's token. The token must not be sent to any other registry.
func IsOwnRegistry(image, api string) bool {
	registry, _, _ := strings.Cut(image, "/")
	registry, _, _ = strings.Cut(registry, ":")
	host := githubHost(api)
	return host == github && registry == "ghcr.io" || strings.HasSuffix(registry, "."+host)
}
