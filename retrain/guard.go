package retrain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
)

// errRefusedAddress is the class of addresses that a target may not have unless it says so.
var errRefusedAddress = errors.New("refused")

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer gives how connections to a target are made. The address is judged once it is certain, right before the
// connection is made, so that a name that resolves to another address the second time is not let through.
func dialer(allowPrivate bool) dialFunc {
	d := &net.Dialer{}
	if !allowPrivate {
		d.Control = func(_, address string, _ syscall.RawConn) error { return judgeAddress(address) }
	}
	return d.DialContext
}

// judgeAddress gives an errRefusedAddress where an address, with its port, does not lie on the public internet.
func judgeAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not an address", errRefusedAddress, address)
	}
	if why := notPublic(at.Addr()); why != "" {
		return fmt.Errorf("%w: %s is %s address; give the target allow_private: true if it is meant", errRefusedAddress, at.Addr(), why)
	}
	return nil
}

// notPublic says what kind of address it is, with its article, and "" where it lies on the public internet.
func notPublic(a netip.Addr) string {
	a = embedded(a.WithZone(""))
	switch {
	case a.IsLoopback():
		return "a loopback"
	case a.IsPrivate():
		return "a private"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return "a link-local"
	case a.IsUnspecified():
		return "the unspecified"
	case a.IsMulticast():
		return "a multicast"
	case slices.ContainsFunc(reserved(), func(p netip.Prefix) bool { return p.Contains(a) }):
		return "a reserved"
	}
	return ""
}

// embedded gives the IPv4 address that an IPv6 address stands for: a mapped one (RFC 4291, section 2.5.5.2), or one
// behind the well-known prefix of NAT64 (RFC 6052).
func embedded(a netip.Addr) netip.Addr {
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.Unmap()
}

// reserved gives those of the special-purpose addresses (RFC 6890 and its registries) that lead to nobody else, or to a
// private network by another way.
func reserved() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", // this network, shared, protocols, benchmarks, future
		"::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16", "fec0::/10", // IPv4-compatible, local NAT64, Teredo, 6to4, site-local
	} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// newTransport makes the transport of a target.
func newTransport(t Target) http.RoundTripper {
	return guarded{
		proxy:   http.ProxyFromEnvironment,
		direct:  transportBy(dialer(t.AllowPrivate), nil),
		proxied: transportBy(dialer(true), http.ProxyFromEnvironment),
	}
}

// guarded judges the addresses that it connects to itself. Through a proxy it knows that of the proxy alone, which is
// mostly a private one: where such requests may go is the proxy's to say.
type guarded struct {
	proxy           func(*http.Request) (*url.URL, error)
	direct, proxied http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if by, err := g.proxy(req); err != nil || by != nil {
		return g.proxied.RoundTrip(req) // which gives the error
	}
	return g.direct.RoundTrip(req)
}

// transportBy makes a connection for each attempt: deliveries are rare, and a connection that was kept would be dead when
// it is needed.
func transportBy(dial dialFunc, proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		Proxy:                  proxy,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
	}
}
