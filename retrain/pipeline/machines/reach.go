package machines

import (
	"net/netip"
	"slices"
	"strings"
)

// inNetworks are the suffixes of host names that resolve only in a private network.
var inNetworks = []string{".local", ".internal", ".lan", ".intranet", ".home.arpa"}

// Inside describes a host that can be reached only from certain machines, or returns "" if it may be reachable from
// everywhere. certain reports whether no machine of a hosting service can reach it; otherwise, some may, for example
// through their own name server.
func Inside(host string) (where string, certain bool) {
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	address, err := netip.ParseAddr(host)
	address = address.Unmap()
	labels := strings.Split(host, ".")
	switch {
	case host == "":
		return "", false
	case host == "localhost", err == nil && (address.IsLoopback() || address.IsUnspecified()):
		return "which is the machine that a stage runs on", true
	case err == nil && (address.IsPrivate() || address.IsLinkLocalUnicast()):
		return "which is an address in a private network", false
	case err == nil:
		return "", false
	case len(labels) > 2 && slices.Contains(labels[2:], "svc"), strings.HasSuffix(host, ".cluster.local"):
		return "which can be reached only in its Kubernetes cluster", true
	case len(labels) == 1, slices.ContainsFunc(inNetworks, func(end string) bool { return strings.HasSuffix(host, end) }):
		return "which is a name in a private network", false
	}
	return "", false
}

// MayBeShared reports whether GitLab may run the stage on a runner that all its users share. api is the URL of a
// self-managed GitLab, which has its own runners, or "" for gitlab.com.
func (s Stage) MayBeShared(api string) bool {
	own := api != "" && !strings.HasPrefix(api, "https://gitlab.com")
	return s.GitLab && !own && !slices.ContainsFunc(s.Runner, func(tag string) bool { return !strings.HasPrefix(tag, "saas-linux-") })
}

// Registry returns the host and the port of the registry of an image, and whether its name begins with them.
func Registry(image string) (registry string, named bool) {
	registry, _, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return "docker.io", false
	}
	return registry, true
}
