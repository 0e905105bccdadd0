package bank

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/held"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A bank that calibrates in the background has the same findings, in the same order, as one that waits for
// calibrations, regardless of what its owner does in the meantime.
func TestBackgroundFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	run := func(background bool) (found []finding.Finding) {
		p := newBank(rebaselining())
		if background {
			p.InBackground()
		}
		r := newRelease(180)
		r.edit = func(u *ingest.Unit) {
			if r.made < 620 {
				return
			}
			m := ingest.NamedMoments{Signal: "outcome.sale"}
			for range u.Length {
				m.Add(float64(r.rng.IntN(2)))
			}
			u.Numeric = append(u.Numeric, m)
		}
		feed := func(n int, version string) {
			for i := range n {
				found = append(found, r.run(p, 1, version)...)
				if i%10 == 0 {
					p.Publish()
					p.Changed()
					p.Applied()
					found = append(found, p.Tick(time.Time{})...)
				}
			}
		}
		feed(1200, "p1")
		r.means["p1"] = -3
		feed(60, "p1")
		feed(700, "p2")
		found = append(found, p.Settle()...)
		return found
	}
	want, got := run(false), run(true)
	if len(alarmsIn(want)) == 0 {
		t.Fatal("no alarm")
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("finding %d of %d differs:\n%+v\n%+v", i, len(got), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d findings, want %d", len(got), len(want))
	}
}

// If many baselines freeze at the same time, at most one per core is calibrated at a time.
func TestBackgroundCalibrationsTakeTurns(t *testing.T) {
	shared := budget.NewCalibrations()
	var running, most atomic.Int32
	var policies []*Policy
	for i := range 20 * runtime.GOMAXPROCS(0) {
		p := NewPolicy(strconv.Itoa(i), watch.DefaultConfig(), capacity.NewStreamLimit(1000))
		p.Share(shared)
		p.InBackground()
		p.calibrate(p.group(ingest.NewGroup("a")), 100, freezing(func() []finding.Finding {
			now := running.Add(1)
			for have := most.Load(); now > have && !most.CompareAndSwap(have, now); have = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
			return nil
		}))
		policies = append(policies, p)
	}
	for _, p := range policies {
		p.Settle()
	}
	if got := int(most.Load()); got > runtime.GOMAXPROCS(0) {
		t.Errorf("%d calibrations ran at once on %d cores", got, runtime.GOMAXPROCS(0))
	}
}

// freezing returns a begin function for a freeze that does not share any resources.
func freezing(freeze held.Freeze) func() held.Freeze {
	return func() held.Freeze { return freeze }
}

// fleet makes the units of many groups of a policy, in a random order.
type fleet struct {
	rng    *rand.Rand
	agents []*agent
	made   int64
}

func newFleet(groups int) *fleet {
	f := &fleet{rng: rand.New(rand.NewPCG(1, 77))}
	for i := range groups {
		a := newAgent(uint64(900 + i))
		if i%4 == 1 { // a late signal
			a.edit = func(u *ingest.Unit) {
				if a.made < 300 {
					return
				}
				m := ingest.NamedMoments{Signal: "outcome.sale"}
				for range u.Length {
					m.Add(float64(a.rng.IntN(2)))
				}
				u.Numeric = append(u.Numeric, m)
			}
		}
		f.agents = append(f.agents, a)
	}
	return f
}

// unit returns the next unit, which belongs to one of the first groups.
func (f *fleet) unit(groups int) *ingest.Unit {
	i := f.rng.IntN(groups)
	a := f.agents[i]
	switch {
	case i%5 == 2 && a.made > 400 && a.rng.IntN(2) == 0:
		a.versions.Policy = "p2"
	case i%5 == 3 && a.made > 450:
		a.mean = -4
	default:
		a.versions.Policy = "p1"
	}
	u := a.unit()
	u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: strconv.Itoa(i)})
	f.made++
	u.Pos = ingest.Position{Offset: f.made}
	u.First, u.Last = u.Pos, u.Pos
	return u
}

// result holds the outcome of a fleet's units.
type result struct {
	found map[ingest.Group][]finding.Finding
	shown []finding.GroupSummary
	state map[string]int // sizes of the parts of the checkpoint
}

// judge judges the given number of units.
func (f *fleet) judge(t *testing.T, units int, background, oneByOne bool) result {
	t.Helper()
	cfg := rebaselining()
	cfg.Baseline.Units = 250
	p := newBank(cfg)
	if background {
		p.InBackground()
	}
	p.OneByOne(oneByOne)
	groups, most, atOnce := len(f.agents), 0, 0
	out := result{found: map[ingest.Group][]finding.Finding{}, state: map[string]int{}}
	take := func(found []finding.Finding) {
		for _, one := range found {
			out.found[one.Group] = append(out.found[one.Group], one)
		}
	}
	for i := range units {
		known := groups
		if i < units/4 {
			known = groups - 3 // the last ones appear after the budget has been divided
		}
		take(p.Observe(f.unit(known), time.Time{}))
		switch {
		case i%7 == 0:
			take(p.Proceed())
		case i%50 == 1:
			p.Publish()
			p.Applied()
			take(p.Tick(time.Time{}))
		case i == units/2:
			p.Drain(true)
		case i == units/2+units/8:
			p.Drain(false)
		}
		most = max(most, len(p.held))
		run := 0
		for _, h := range p.held {
			if h.Runs() {
				run++
			}
		}
		atOnce = max(atOnce, run)
	}
	take(p.Settle())
	for _, g := range p.groups {
		if bound := g.mostBranches(); g.branchCount() > bound {
			t.Errorf("%s has %d branches, expected at most %d", g.Key, g.branchCount(), bound)
		}
	}
	if background && !oneByOne && (most < 3 || atOnce < 2) {
		t.Errorf("at most %d groups waited at once, %d of them calibrated", most, atOnce)
	}
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range parts {
		out.state[name] = len(part)
	}
	p.Publish()
	out.shown = p.Summary().Groups
	return out
}

var addresses = regexp.MustCompile("0x[0-9a-f]{6,}")

// textOf returns a summary as text, in which NaNs are equal.
func textOf(g finding.GroupSummary) string {
	return addresses.ReplaceAllString(fmt.Sprintf("%+v", g), "")
}

// Groups of a policy that are calibrated concurrently have the same findings as if calibrated one after the other: with
// more branches than a policy may have, with groups that use the reserve of its budget, late signals, and new versions.
func TestSimGroupsAreCalibratedBesideEachOther(t *testing.T) {
	if branches := besideEachOther(t, 14, false, true); branches < stream.MaxBranches-50 {
		t.Errorf("%d branches: too few to compare", branches)
	}
}

// A few groups, for the race detector.
func TestGroupsAreCalibratedBesideEachOther(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	besideEachOther(t, 8, false)
}

// besideEachOther compares the findings of groups that are calibrated one after the other with those of groups
// calibrated in the background, with each value of oneByOne. It returns the number of their branches.
func besideEachOther(t *testing.T, groups int, oneByOnes ...bool) (branches int) {
	t.Helper()
	units := groups * 640
	want, alarms := newFleet(groups).judge(t, units, false, false), 0
	for _, found := range want.found {
		alarms += len(alarmsIn(found))
	}
	for _, g := range want.shown {
		for _, s := range g.Streams {
			branches += s.Branches
		}
	}
	if alarms == 0 {
		t.Error("no alarms to compare")
	}
	for _, oneByOne := range oneByOnes {
		got := newFleet(groups).judge(t, units, true, oneByOne)
		for group, found := range want.found {
			if !reflect.DeepEqual(got.found[group], found) {
				t.Errorf("one by one %v: %s has %d findings, want %d, or they differ", oneByOne, group, len(got.found[group]), len(found))
			}
		}
		for i, g := range want.shown {
			if got, want := textOf(got.shown[i]), textOf(g); got != want {
				at := 0
				for got[at] == want[at] {
					at++
				}
				t.Errorf("one by one %v: %s is ... %.200s\nwant ... %.200s", oneByOne, g.Group, got[at:], want[at:])
			}
		}
		if !maps.Equal(got.state, want.state) {
			t.Errorf("one by one %v: parts of the state have %v bytes, want %v", oneByOne, got.state, want.state)
		}
	}
	return branches
}

// The room left for a freeze that waits for another one is that at the time it became due, even if later units have
// changed it: the duration of a calibration must not affect which branches are armed.
func TestRoomOfAFreezeIsThatOfItsUnit(t *testing.T) {
	p := newBank(episodes(2000))
	p.InBackground()
	units := newAgent(990)
	unit := func(env string) *ingest.Unit {
		u := units.unit()
		u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env})
		return u
	}
	groups := map[string]*group{}
	for _, env := range []string{"armed", "first", "second"} {
		u := unit(env)
		p.Observe(u, time.Time{})
		groups[env] = p.byKey[u.Group]
	}
	armed := stream.MaxBranches - 2*groups["first"].mostBranches() + 1 // too many for both at the same time
	ends := make(chan struct{})
	p.calibrate(groups["first"], 100, freezing(func() []finding.Finding { <-ends; return nil }))
	groups["armed"].branches, groups["armed"].counted = armed, true
	room := -1
	p.calibrate(groups["second"], 100, func() held.Freeze {
		room = p.room(groups["second"])
		return func() []finding.Finding { return nil }
	})
	if room >= 0 {
		t.Fatalf("the second freeze begins while the first one runs, with room for %d branches", room)
	}
	for range 3 { // after the first unit, the group has no branches
		p.Observe(unit("armed"), time.Time{})
	}
	if groups["armed"].branchCount() != 0 {
		t.Fatal("the group still has branches")
	}
	if p.proceed(); room >= 0 {
		t.Errorf("the second freeze begins while the first one runs, with room for %d branches", room)
	}
	close(ends)
	p.Settle()
	if want := stream.MaxBranches - armed; room != want {
		t.Errorf("room for %d branches, want %d, as when the freeze was due", room, want)
	}
}
