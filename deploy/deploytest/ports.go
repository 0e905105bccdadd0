// Package deploytest helps tests to start the servers in deploy/local.
package deploytest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The range of ports of FreePorts. Linux uses the ports from portsBelow on for outgoing connections.
const (
	lowestPort = 20_000
	portsBelow = 32_768
)

// FreePorts returns n ports of 127.0.0.1 that were unused a moment ago. They are outside of the range that the system
// uses for outgoing connections, which could take a port before its server starts, or while the server is down.
func FreePorts(t testing.TB, n int) []string {
	t.Helper()
	var ports []string
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(lowestPort + rand.IntN(portsBelow-lowestPort))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		switch {
		case err == nil:
			defer l.Close()
			ports = append(ports, port)
		case tries > 100*n:
			t.Fatal(err)
		}
	}
	return ports
}
