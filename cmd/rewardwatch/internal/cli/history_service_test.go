package cli

import (
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

// past returns the history of the return.
func (p *process) past(t *testing.T) (h wire.History) {
	t.Helper()
	if !p.get("/api/v1/policies/ranker/history?signal=return&label=env%3Dprod", &h) || len(h.Spans) == 0 {
		t.Fatalf("no history: %+v", h)
	}
	return h
}

// age returns how long before the newest unit a span ended.
func age(h wire.History, s wire.HistorySpan) time.Duration {
	return time.Duration(*h.Spans[len(h.Spans)-1].To - *s.To)
}

// The history of a signal is the same after a restart. It reaches a week back over several restarts, even after a kill,
// and is coarser the older it is.
func TestHistoryGoesBackAWeekOverRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	broker := startBroker(t, 1)
	config := serviceConfig(t, broker)
	now, f := time.Now().UTC().Truncate(time.Second), newFleet(41, 5)
	f.ts = now.Add(-10 * 24 * time.Hour)
	sent := 0
	send := func(until time.Time) {
		t.Helper()
		for f.ts.Before(until) {
			f.episodes(5)
			f.ts = f.ts.Add(30 * time.Minute)
		}
		f.produce(t, broker, sent, len(f.lines))
		sent = len(f.lines)
	}
	read := func(p *process) {
		t.Helper()
		testkit.Eventually(t, "all units", func() bool { return p.units() == int64(f.ended) })
	}

	send(now.Add(-4 * 24 * time.Hour))
	p := startService(t, config)
	read(p)
	before := p.past(t)
	p.interrupt(t)
	p = startService(t, config)
	read(p)
	if after := p.past(t); !reflect.DeepEqual(after, before) {
		t.Errorf("after a restart, the history is\n%+v\nwant\n%+v", after, before)
	}
	send(now.Add(-2 * 24 * time.Hour))
	read(p)
	p.kill()
	send(now.Add(-time.Hour))
	p = startService(t, config)
	read(p)

	h := p.past(t)
	first, last := h.Spans[0], h.Spans[len(h.Spans)-1]
	if a := age(h, first); a < 6*24*time.Hour || a > 7*24*time.Hour {
		t.Errorf("the history ends %s ago", a)
	}
	oldest, recent, next := int64(0), int64(0), first.FirstUnit
	for _, s := range h.Spans {
		if s.FirstUnit != next || int64(s.Values) != s.Units {
			t.Errorf("span %+v, want one from unit %d on", s, next)
		}
		next = s.FirstUnit + s.Units
		switch a := age(h, s); {
		case a > 5*24*time.Hour:
			oldest = max(oldest, s.Units)
		case a < 12*time.Hour:
			recent = max(recent, s.Units)
		}
	}
	if last.FirstUnit+last.Units != int64(f.ended) || recent == 0 || oldest < 3*recent {
		t.Errorf("%d of %d units; the largest span has %d units after five days and %d in the last hours", last.FirstUnit+last.Units, f.ended, oldest, recent)
	}
	t.Logf("%d spans: up to %d units older than five days, up to %d in the last 12 hours", len(h.Spans), oldest, recent)
}
