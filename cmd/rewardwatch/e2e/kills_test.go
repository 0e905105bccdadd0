//go:build e2e

package e2e

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var kills = flag.Int("kills", 10, "how often the service is killed at random moments")

// killedWithin is the maximum time between two kills. It is shorter than a session of the consumer group, so many kills
// happen while the service waits to join.
const killedWithin = 8 * time.Second

// killed kills the service with -9 at random times under load. Half of the time, the broker still waits for the dead
// member when the next one joins, as after a crash; the other half, it knows immediately, so more kills happen while
// the service is reading. Half of the kills that are in time for it happen while a webhook is being sent.
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
