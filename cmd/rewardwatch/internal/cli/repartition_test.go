package cli

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// newApartStall returns a stall whose decisions have no key, and whose clicks are in a topic with another number of
// partitions and in other partitions than their decisions. They are forwarded by their key.
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

// Without a recent checkpoint, everything is forwarded again after a kill, but judged once.
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

// Telemetry that was judged without forwarding is now forwarded by its key. A kill before any regular checkpoint counts
// nothing twice, and no earlier log of units remains.
func TestWhatIsSentOnFromNowOnIsJudgedOnceWhenKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	s, start := newStall(t, startBroker(t, 1)), opened()
	s.every = "1h"
	judged := func(p *process, least int) {
		t.Helper()
		testkit.Eventually(t, "episodes", func() bool { return p.unitsByPolicy()["robot"] >= int64(least) })
	}
	logs := func() []string {
		found, err := filepath.Glob(filepath.Join(s.checkpoints(), "*decisions*.units"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	s.decide(start, 200)
	p := startService(t, s.config())
	judged(p, 200)
	p.interrupt(t)
	if len(logs()) == 0 {
		t.Error("there is no log of units that could be left")
	}
	s.joinedBy = "joined"
	s.decide(start, 200)
	p = startService(t, s.config())
	judged(p, 300)
	p.killMember(t, "decisions", "joined")
	p = startService(t, s.config())
	s.decide(start, 200)
	s.end(start)
	testkit.Eventually(t, "the last decisions", func() bool { return p.unitsByPolicy()["shop"] >= 400 })
	judged(p, s.decisions)
	if n := p.unitsByPolicy()["robot"]; n != int64(s.decisions) {
		t.Errorf("%d episodes are judged, want %d", n, s.decisions)
	}
	if left := logs(); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	p.interrupt(t)
}

// A telemetry topic gets more partitions than the topic that it is forwarded to, while the service is running and
// killed.
func TestWhatIsSentOnMayGetMorePartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	s, start := newApartStall(t, startBroker(t, 1)), opened()
	s.decide(start, 200)
	p := startService(t, s.config())
	testkit.Eventually(t, "the first decisions", func() bool { return p.unitsByPolicy()["shop"] > 100 })
	s.more = 3
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "decisions", Count: stallPartitions + s.more}}
	if _, err := grow.RequestWith(t.Context(), s.client); err != nil {
		t.Fatal(err)
	}
	s.client.PurgeTopicsFromClient("decisions") // otherwise it would not know the new partitions for a while
	s.decide(start, 200)
	testkit.Eventually(t, "more decisions", func() bool { return p.unitsByPolicy()["shop"] > 300 })
	p.killMember(t, "decisions", "joined")
	p = startService(t, s.config())
	s.decide(start, 200)
	s.end(start)
	want := int64(s.decisions)
	testkit.Eventually(t, "all units", func() bool { n := p.unitsByPolicy(); return n["shop"] >= want && n["robot"] >= want })
	if n := p.unitsByPolicy(); n["shop"] != want || n["robot"] != want {
		t.Errorf("%v units, want %d of each", n, want)
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

// Two instances share the forwarded telemetry. The one that forwards it leaves in between.
func TestTwoInstancesShareWhatIsSentOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	testTwoInstances(t, newApartStall(t, startBroker(t, 1)))
}
