package api

import (
	"net"
	"net/netip"
	"sync"
)

// Limits on open connections: per client, so that no client can use up all of them, and for all clients together.
const (
	connectionsOfOne = 64
	connectionsOfAll = 512
	// Trusted proxies have connections for many clients: for each agent that waits for a guard, for example. The limit is
	// for all proxies together, as the rest is for programs that do not use them, such as Prometheus.
	connectionsOfProxies = 384
)

// capped is a listener that closes connections beyond the limits.
type capped struct {
	net.Listener
	proxy func(netip.Addr) bool // reports whether an address is that of a trusted proxy

	mu   sync.Mutex
	open map[netip.Prefix]int // by client, see clientOf
	all  int
}

func newCapped(l net.Listener, proxy func(netip.Addr) bool) *capped {
	return &capped{Listener: l, proxy: proxy, open: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, most := c.limit(conn.RemoteAddr().String())
		if c.take(from, most) {
			return &cappedConn{Conn: conn, leave: sync.OnceFunc(func() { c.give(from) })}, nil
		}
		_ = conn.Close() // no data has been exchanged
	}
}

// clientOf returns the client behind an address with a port. For IPv6 this is the 64-bit network, since one client
// has all of its addresses. Clients without an address share the zero prefix.
func clientOf(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	a, bits := at.Addr().Unmap().WithZone(""), 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // fits the address
	return p
}

// proxies stands for all trusted proxies among the clients. No other client has it, as it is longer than a network.
var proxies = netip.MustParsePrefix("::/128")

// limit returns the client at an address, and how many connections it may have. All trusted proxies are one client, apart
// from others in their networks.
func (c *capped) limit(address string) (from netip.Prefix, most int) {
	if at, err := netip.ParseAddrPort(address); err == nil && c.proxy(at.Addr()) {
		return proxies, connectionsOfProxies
	}
	return clientOf(address), connectionsOfOne
}

func (c *capped) take(from netip.Prefix, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= connectionsOfAll || c.open[from] >= most {
		return false
	}
	c.all++
	c.open[from]++
	return true
}

func (c *capped) give(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.open[from]--; c.open[from] == 0 {
		delete(c.open, from)
	}
}

// cappedConn frees its place when it is closed.
type cappedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *cappedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
