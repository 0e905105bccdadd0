package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwarded sets the address of requests from trusted proxies to that of their client. Otherwise, throttling and the
// audit log could not distinguish the clients of a proxy. Each proxy appends the address that it sees to
// X-Forwarded-For. Anything to the left of the first untrusted address may be forged.
func (s *Server) forwarded(next http.Handler) http.Handler {
	if len(s.cfg.TrustedProxies) == 0 {
		return next
	}
	trusted := s.trusts()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !trusted(from.Addr()) {
			next.ServeHTTP(w, r)
			return
		}
		client := from.Addr()
		for _, hop := range slices.Backward(strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")) {
			at, valid := hopOf(hop)
			if !valid {
				break
			}
			if client = at; !trusted(at) {
				break
			}
		}
		if client != from.Addr() {
			r = r.WithContext(r.Context()) // a copy, with its own address
			r.RemoteAddr = net.JoinHostPort(client.String(), "0")
		}
		next.ServeHTTP(w, r)
	})
}

// trusts returns a function that reports whether an address is that of a trusted proxy.
func (s *Server) trusts() func(netip.Addr) bool {
	proxies := networksOf(s.cfg.TrustedProxies)
	return func(at netip.Addr) bool {
		return slices.ContainsFunc(proxies, func(n netip.Prefix) bool { return n.Contains(at.Unmap()) })
	}
}

// hopOf returns the address of one proxy or client. Some proxies add the port.
func hopOf(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap(), true
	}
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return at.Unmap(), err == nil
}

// networksOf returns the networks and addresses in a valid list.
func networksOf(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if n, valid := networkOf(text); valid {
			out = append(out, n)
		}
	}
	return out
}

// networkOf returns a network, or the network of a single address.
func networkOf(text string) (netip.Prefix, bool) {
	if n, err := netip.ParsePrefix(text); err == nil {
		return n.Masked(), true
	}
	at, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()), true
}
