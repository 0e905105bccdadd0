//go:build e2e

package e2e

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var kills = flag.Int("kills", 10, "how often the service is killed at random moments")

// killedWithin is the longest time between two kills. It is shorter than a session of the consumer group: many fall while
// the service waits to join.
const killedWithin = 8 * time.Second

// killed kills the service with -9 at random moments under load. Half of the times the broker still waits for the dead
// member when the next one joins, as after a crash; the other half it knows at once, so that more kills find the service
// reading. Some kills fall while a webhook is on its way.
func (s setting) killed(t *testing.T) {
	d := s.disturb(t, "killed", s.broker.address, 1)
	rng := rand.New(rand.NewPCG(2, 2))
	for range *kills {
		d.killAt(t, time.Duration(rng.Int64N(int64(killedWithin))))
		if rng.IntN(2) == 0 {
			s.broker.bury(t, d.topic)
		}
		d.service.launch(t)
	}
	d.judged(t, soundFirst+spoiltFor+soundAgain/2)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

// killAt kills the service after a time, or in the middle of the next webhook.
func (d *disturbed) killAt(t *testing.T, after time.Duration) {
	t.Helper()
	select {
	case <-time.After(after):
	case <-d.trainer.arrived:
	}
	d.service.kill(t)
}
