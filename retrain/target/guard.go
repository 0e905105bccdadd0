package target

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"

	"github.com/rewardwatch/rewardwatch/ingest/httpclient"
)

// errRefusedAddress is the class of addresses that a target may not use unless its configuration allows them.
var errRefusedAddress = errors.New("address not allowed")

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer returns the function that connects to a target. It checks the resolved address right before the connection is
// made, so that a name cannot resolve to another address afterwards.
func dialer(allowPrivate bool) dialFunc {
	d := &net.Dialer{}
	if !allowPrivate {
		d.Control = func(_, address string, _ syscall.RawConn) error { return judgeAddress(address) }
	}
	return d.DialContext
}

// judgeAddress returns an errRefusedAddress if an address, with its port, is not on the public internet.
func judgeAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not an address", errRefusedAddress, address)
	}
	if why := notPublic(at.Addr()); why != "" {
		return fmt.Errorf("%w: %s is %s address; to allow it, set allow_private: true for the target", errRefusedAddress, at.Addr(), why)
	}
	return nil
}

// notPublic returns the kind of an address, with its article, and "" if it is on the public internet.
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
	case a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a): // the only prefix from which public addresses are assigned
		return "a reserved"
	case slices.ContainsFunc(reserved(), func(p netip.Prefix) bool { return p.Contains(a) }):
		return "a reserved"
	}
	return ""
}

// embedded returns the IPv4 address that an IPv6 address represents: a mapped one (RFC 4291, section 2.5.5.2), or one
// behind the well-known prefix of NAT64 (RFC 6052).
func embedded(a netip.Addr) netip.Addr {
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.Unmap()
}

// reserved returns the prefixes of the IANA special-purpose address registries, IPv4 and IPv6 (RFC 6890), that no
// webhook receiver has and that no other rule of notPublic covers.
func reserved() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", // this network; shared between a provider and its customers
		"192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // protocols, AS112, AMT, AS112
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
		"192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4", // relays of 6to4, benchmarks, future use and broadcast
		"2001::/23", "2001:db8::/32", "3fff::/20", // protocols (Teredo, ORCHID, benchmarks, ...), documentation
		"2002::/16", "2620:4f:8000::/48", // 6to4, which embeds an IPv4 address; AS112
	} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// NewTransport returns the transport of a target. It fails if a certificate or a key of the target cannot be used.
func NewTransport(t Target) (http.RoundTripper, error) {
	by := func(dial dialFunc, proxy func(*http.Request) (*url.URL, error)) (http.RoundTripper, error) {
		return httpclient.Encrypted(t.TLS, func(cfg *tls.Config) http.RoundTripper { return transportBy(dial, proxy, cfg) })
	}
	direct, err := by(dialer(t.AllowPrivate), nil)
	if err != nil {
		return nil, err
	}
	proxied, err := by(dialer(true), http.ProxyFromEnvironment)
	return guarded{proxy: http.ProxyFromEnvironment, direct: direct, proxied: proxied}, err
}

// guarded checks the addresses that it connects to itself. Through a proxy it only sees the proxy's address, which is
// usually private: the proxy decides where such requests may go.
type guarded struct {
	proxy           func(*http.Request) (*url.URL, error)
	direct, proxied http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if by, err := g.proxy(req); err != nil || by != nil {
		return g.proxied.RoundTrip(req) // which returns the error
	}
	return g.direct.RoundTrip(req)
}

// transportBy returns a transport that connects for each attempt: deliveries are rare, and a kept connection would be
// dead by the next one.
func transportBy(dial dialFunc, proxy func(*http.Request) (*url.URL, error), encryption *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		Proxy:                  proxy,
		TLSClientConfig:        encryption,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
	}
}
