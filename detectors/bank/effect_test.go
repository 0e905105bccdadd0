package bank

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/trail"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// drifted feeds a bank 700 healthy units, then n changed ones, and returns the first finding of a drift of a signal.
func drifted(t *testing.T, p *Policy, a *agent, signal string, n int, change func()) finding.Finding {
	t.Helper()
	a.feed(p, 700)
	change()
	found := a.feed(p, n)
	i := slices.IndexFunc(found, func(f finding.Finding) bool {
		return f.Kind == finding.StreamChanged && f.To == finding.Drift && f.Signal == signal
	})
	if i < 0 {
		t.Fatalf("no alarm of %s within %d units", signal, n)
	}
	return found[i]
}

// about reports whether got is within margin of want.
func about(got, want, margin float64) bool { return math.Abs(got-want) <= margin }

func TestEffectSizesOfAMovedReward(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(200)
	f := drifted(t, p, a, "reward", 200, func() { a.mean -= .5 })
	e := f.Effect
	if e.Quantity != "mean" {
		t.Fatalf("effect %+v, want one of the mean", e)
	}
	margin := 3 * e.BaselineSD / math.Sqrt(float64(e.CurrentUnits))
	for name, got := range map[string]float64{
		"mean": e.MeanShift, "median": e.MedianShift, "q10": e.Q10Shift, "q90": e.Q90Shift, "Wasserstein": -e.Wasserstein,
	} {
		if !about(got, -.5, 2*margin) {
			t.Errorf("%s moved by %v, want -0.5 within %v", name, got, 2*margin)
		}
	}
	if !about(e.SpreadRatio, e.CurrentSD/e.BaselineSD, 1e-12) {
		t.Errorf("ratio of spread %v, want %v", e.SpreadRatio, e.CurrentSD/e.BaselineSD)
	}
	if !about(e.StandardShift, e.MeanShift/e.BaselineSD, 1e-12) || e.CurrentUnits != int(f.At.Ordinal-f.Onset.Ordinal+1) {
		t.Errorf("effect %+v from unit %d to %d", e, f.Onset.Ordinal, f.At.Ordinal)
	}
}

// healthySnapshot returns the snapshot of a bank after 700 healthy units.
func healthySnapshot(t *testing.T, seed uint64) []byte {
	t.Helper()
	p := newBank(episodes(20_000))
	newAgent(seed).feed(p, 700)
	var buf bytes.Buffer
	if err := p.Snapshot(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestSimOnsetHasAnInterval(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const baselines, perBaseline = 4, 15
	held, runs := 0.0, float64(baselines*perBaseline)
	for b := range baselines {
		snapshot := healthySnapshot(t, uint64(300+b))
		for run := range perBaseline {
			p := newBank(episodes(20_000))
			if err := p.Restore(bytes.NewReader(snapshot), time.Time{}); err != nil {
				t.Fatal(err)
			}
			a := newAgent(uint64(400 + perBaseline*b + run))
			a.made = 700
			f := drifted(t, p, a, "reward", 300, func() { a.mean -= a.sd / math.Sqrt(20) })
			if f.OnsetFrom.Ordinal > f.Onset.Ordinal || f.Onset.Ordinal > f.OnsetTo.Ordinal || f.OnsetTo.Ordinal > f.At.Ordinal {
				t.Errorf("onset %d in %d to %d, seen at %d", f.Onset.Ordinal, f.OnsetFrom.Ordinal, f.OnsetTo.Ordinal, f.At.Ordinal)
			}
			if f.OnsetFrom.Ordinal <= 1400 && f.OnsetTo.Ordinal >= 1400 {
				held++
			}
			if first := f.Offsets[0].First; first != f.Onset.First.Offset {
				t.Errorf("offsets from %d, the onset lies at %d", first, f.Onset.First.Offset)
			}
		}
	}
	if least := .9 - 3*math.Sqrt(.9*.1/runs); held/runs < least {
		t.Errorf("the interval holds the onset in %v of %v alarms", held, runs)
	}
}

func TestSimCertificateGrowsWithTheEvidence(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(210)
	a.feed(p, 700)
	a.mean -= 2 * a.sd / math.Sqrt(20) // two standard deviations of the mean reward: F moves by .68
	last := 0.0
	for _, f := range a.feed(p, 301) {
		if f.Signal != "reward" || f.To != finding.Drift {
			continue
		}
		d := f.Effect.AtLeast
		if f.Kind == finding.StreamChanged && d > .2 || d > .68 {
			t.Errorf("%v is certain at unit %d", d, f.At.Ordinal)
		}
		last = d
	}
	if last < .3 {
		t.Errorf("%v is certain after 300 units, want at least 0.3", last)
	}
}

func certificateOf(t *testing.T, p *Policy, signal string) (seen int64, traced int) {
	t.Helper()
	g := p.groups[0]
	i, found := g.Find(signal)
	if !found {
		t.Fatalf("no stream of %s", signal)
	}
	q := g.Streams[i].Find(signals.MainQuantity(signal))
	values, _ := q.Trace.Since(0)
	return q.Certificate.Seen, len(values)
}

func TestSimCertificateSeesWhatTheTestsSee(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(220)
	a.feed(p, 500)
	if seen, traced := certificateOf(t, p, "reward"); seen != 0 || traced != 0 {
		t.Errorf("%d values certified and %d traced of the baseline", seen, traced)
	}
	a.feed(p, 100)
	a.edit = func(u *ingest.Unit) { u.Reward.NonFinite = u.Reward.N }
	a.feed(p, 10)
	if s := stateOf(t, p, "reward"); s.State != finding.TelemetryFault {
		t.Fatalf("reward is %s, want a fault", s.State)
	}
	if seen, traced := certificateOf(t, p, "reward"); seen < 100 || seen > 103 || int(seen) != traced {
		t.Errorf("%d values certified and %d traced after 100 and 10 in a fault", seen, traced)
	}
	if seen, _ := certificateOf(t, p, "episode_length"); seen != 110 {
		t.Errorf("%d lengths certified of 110", seen)
	}
}

func TestSimCertificateRestartsWhenAnIncidentCloses(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(230)
	drifted(t, p, a, "reward", 100, func() { a.mean -= 1 })
	a.mean++
	for range 400 {
		if found := a.feed(p, 1); slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Kind == finding.GroupQuiet }) {
			if seen, traced := certificateOf(t, p, "reward"); seen != 0 || traced != 0 {
				t.Errorf("%d values certified and %d traced when the incident closed", seen, traced)
			}
			return
		}
	}
	t.Error("the incident did not close")
}

// A walk may begin before the oldest unit that is recorded individually.
func TestSimOnsetOfASlowAlarmIsTheStartOfItsWalk(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(240)
	a.feed(p, 2000)
	g := p.groups[0]
	i, _ := g.Find("reward")
	q := g.Streams[i].Find("mean")
	g.Trail = trail.Trail{}
	for o := range int64(2000) {
		if o == 900 { // the only unit before the most recent ones that is recorded
			b := &q.Rank().Branches[0]
			b.Walk, b.StartedAt = b.Height/2, o
		}
		g.Trail.Add(finding.UnitRef{Ordinal: o}, &ingest.Unit{})
		g.Trail.Prune([]*stream.Stream{{Quantities: []*stream.Quantity{q}}})
	}
	top := stream.Branch{Quantity: q, Started: 900}
	for range 3 * stream.TrailUnits {
		q.Trace.Add(-2.2, g.Seen) // about one standard deviation below the mean, in all units
		g.Seen++
	}
	at, from, to := g.onset(top)
	if at.Ordinal != 900 || from.Ordinal != 900 || to.Ordinal < 900 {
		t.Errorf("onset %d in %d to %d, want 900", at.Ordinal, from.Ordinal, to.Ordinal)
	}
}
