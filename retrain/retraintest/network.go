package retraintest

import (
	"context"
	"net"
)

// Network is a network without sockets, so that a real client and server run on the fake clock of a synctest bubble.
type Network struct {
	conns  chan net.Conn
	closed chan struct{}
}

// NewNetwork returns a network on which one server listens.
func NewNetwork() *Network {
	return &Network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Network) Close() error { close(n.closed); return nil }

// Addr implements net.Listener.
func (n *Network) Addr() net.Addr { return &net.UnixAddr{Name: "network", Net: "pipe"} }

// Dial connects to the server, whatever the address.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
