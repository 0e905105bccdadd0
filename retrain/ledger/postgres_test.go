package ledger

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A server that does not answer is given up, earlier if the statement has an earlier deadline.
func TestServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"no deadline": 0, "a later one": time.Hour, "one that is over": -time.Second} {
		client, server := net.Pipe()
		conn := &boundedConn{Conn: client, most: 20 * time.Millisecond}
		if deadline != 0 {
			check(t, conn.SetDeadline(time.Now().Add(deadline)))
		}
		answer := make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			answer <- err
		}()
		select {
		case err := <-answer:
			if !errors.Is(err, os.ErrDeadlineExceeded) || !isOutage(err) {
				t.Errorf("%s: %v, want an outage", name, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: still waiting", name)
		}
		check(t, errors.Join(client.Close(), server.Close()))
	}
}
