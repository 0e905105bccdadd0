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
)

// capped is a listener that closes connections beyond the limits.
type capped struct {
	net.Listener
	mu   sync.Mutex
	open map[netip.Prefix]int
	all  int
}

func newCapped(l net.Listener) *capped {
	return &capped{Listener: l, open: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := clientOf(conn.RemoteAddr().String())
		if c.take(from) {
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

func (c *capped) take(from netip.Prefix) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= connectionsOfAll || c.open[from] >= connectionsOfOne {
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
