package cli

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// newApartStall makes a stall whose decisions have no key, and whose clicks are in a topic with another number of
// partitions and in other ones than their decisions. They are sent on by their key.
func newApartStall(t *testing.T, broker string) *stall {
	s := newStallWith(t, broker, stallPartitions+1)
	s.apart, s.joinedBy = true, "joined"
	return s
}

func TestWhatIsSentOnIsJudgedOnceWhenKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testTwoTopics(t, newApartStall(t, startBroker(t, 1)), 2).interrupt(t)
}

// Without a checkpoint in time, all is sent on again after a kill. It is judged once.
func TestWhatIsSentOnAgainIsJudgedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	s := newApartStall(t, startBroker(t, 1))
	s.every = "1h"
	p := testTwoTopics(t, s, 1)
	_, text := p.fetch(t, "/metrics")
	sent := regexp.MustCompile(`rewardwatch_repartitioned_events_total\{by="partition"\} (\d+)`).FindStringSubmatch(text)
	if len(sent) == 0 || sent[1] != strconv.Itoa(s.decisions) {
		t.Errorf("%v episodes sent on after the kill, want all %d", sent, s.decisions)
	}
	p.interrupt(t)
}

// All clicks find their decisions.
func TestFeedbackOfOtherPartitionsIsSentOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	s, start := newApartStall(t, startBroker(t, 1)), opened()
	s.decide(start, 3000)
	s.end(start)
	p := startService(t, s.config())
	testkit.Eventually(t, "all decisions", func() bool { return p.unitsByPolicy()["shop"] >= 3000 })
	_, text := p.fetch(t, "/metrics")
	for _, want := range []string{
		`rewardwatch_feedback_total\{result="matched"\} 1000\n`,
		`rewardwatch_feedback_lost_total\{decision="other_partition"\} 0\n`,
		`rewardwatch_repartitioned_events_total\{by="key"\} 4020\n`,
		`rewardwatch_repartitioned_events_total\{by="partition"\} 3000\n`,
		`rewardwatch_events_total\{result="accepted"\} 7020\n`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, regexp.MustCompile(`(?m)^rewardwatch_(feedback|repart|events|decisions).*$`).FindAllString(text, -1))
		}
	}
	if p.said("different numbers")+p.said("in another partition") > 0 {
		t.Error("what is sent on is told to be apart")
	}
	p.interrupt(t)
}

// Two instances share what is sent on. The one that sends it leaves in the midst of it.
func TestTwoInstancesShareWhatIsSentOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testTwoInstances(t, newApartStall(t, startBroker(t, 1)))
}
