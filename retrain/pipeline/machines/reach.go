package machines

import (
	"net/netip"
	"slices"
	"strings"
)

// inNetworks end the names that only some private network knows.
var inNetworks = []string{".local", ".internal", ".lan", ".intranet", ".home.arpa"}

// Inside returns from where alone a host can be reached, "" if it may be reached from everywhere. certain says that no
// machine of a hosting service is there; others may be, such as through a name server of their own.
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

// MayBeShared reports whether GitLab may run the stage on a machine that it shares among all its users. api is the URL of a
// GitLab of one's own, whose machines are one's own as well.
func (s Stage) MayBeShared(api string) bool {
	own := api != "" && !strings.HasPrefix(api, "https://gitlab.com")
	return s.GitLab && !own && !slices.ContainsFunc(s.Runner, func(tag string) bool { return !strings.HasPrefix(tag, "saas-linux-") })
}

// Registry returns the host of the registry that the name of an image begins with, and whether it has one.
func Registry(image string) (host string, named bool) {
	host, _, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "docker.io", false
	}
	host, _, _ = strings.Cut(host, ":")
	return host, true
}
