package strict

import (
	"net/url"
	"strings"
)

const github = "github.com"

// githubHost returns the host of the GitHub that has an API at a URL, which is "" for github.com.
func githubHost(api string) string {
	if u, err := url.Parse(api); err == nil && u.Hostname() != "" {
		return strings.TrimPrefix(u.Hostname(), "api.")
	}
	return github
}

// IsEnterprise reports whether an API is that of a GitHub Enterprise Server. The hosts in ghe.com are GitHub's own, with
// the features of github.com.
func IsEnterprise(api string) bool {
	host := githubHost(api)
	return host != github && !strings.HasSuffix(host, ".ghe.com")
}

// IsOwnRegistry reports whether an image is in a registry of the GitHub with an API, which accepts the token of a
// workflow. No other registry may see that token.
func IsOwnRegistry(image, api string) bool {
	registry, _, _ := strings.Cut(image, "/")
	registry, _, _ = strings.Cut(registry, ":")
	host := githubHost(api)
	return host == github && registry == "ghcr.io" || strings.HasSuffix(registry, "."+host)
}
