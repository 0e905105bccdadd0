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
// reading. Half of those that come in time for it fall while a webhook is on its way.
func (s setting) killed(t *testing.T) {
	d := s.disturb(t, "killed", s.broker.address, 1)
	rng := rand.New(rand.NewPCG(2, 2))
	for range *kills {
		webhook := d.trainer.arrived
		if rng.IntN(2) == 0 {
			webhook = nil
		}
		select {
		case <-time.After(time.Duration(rng.Int64N(int64(killedWithin)))):
		case <-webhook:
		}
		d.service.kill(t)
		if rng.IntN(2) == 0 {
			s.broker.bury(t, d.topic)
		}
		d.service.launch(t)
	}
	d.judged(t, soundFirst+spoiltFor+soundAgain/2)
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}
