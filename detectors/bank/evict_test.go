package bank

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// evicting is a bank together with its last save and a memory limit.
type evicting struct {
	t         *testing.T
	cfg       watch.Config
	share     *budget.Calibrations
	bank      *Policy
	saved     ingest.Parts
	limit     *capacity.StreamLimit
	residents *capacity.Residents
}

func (e *evicting) open(most int64) {
	e.limit, e.residents = capacity.NewStreamLimit(1000), capacity.NewResidents(most)
	e.bank = NewPolicy("ranker", e.cfg, e.limit)
	e.bank.Share(e.share)
	e.bank.Keep(e.residents)
}

func (e *evicting) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// comeBack restores a group if it is evicted.
func (e *evicting) comeBack(key ingest.Group) (returned bool) {
	names := e.bank.Absent(key)
	if len(names) == 0 {
		return false
	}
	parts := ingest.Parts{}
	for _, name := range names {
		parts[name] = e.saved[name]
	}
	e.must(e.bank.Return(key, parts))
	return true
}

func (e *evicting) save() {
	for _, key := range e.bank.Missing() {
		e.comeBack(key)
	}
	parts, gone, err := e.bank.Changes()
	e.must(err)
	if len(gone) > 0 {
		e.t.Fatal("parts are gone: ", gone)
	}
	maps.Copy(e.saved, parts)
	e.bank.Saved()
}

// evict evicts what it can of the least recently used groups that take the given number of bytes.
func (e *evicting) evict(bytes int64) (evicted int) {
	chosen := e.residents.Choose(bytes)
	evicted, unsaved := e.bank.Evict(chosen)
	if len(unsaved) > 0 {
		e.save()
		more, unsaved := e.bank.Evict(unsaved)
		if evicted += more; len(unsaved) > 0 {
			e.t.Fatal("saved, and not so: ", unsaved)
		}
	}
	return evicted
}

// crash starts again from the save, with little memory.
func (e *evicting) crash(most int64, now time.Time) {
	e.open(most)
	e.must(e.bank.Resume(e.saved, now))
}

// Regardless of which groups are evicted and restored, and when the bank is restarted with hardly any memory, the
// findings and the state of all streams are the same as without evictions.
func TestSimEvictionChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for name, adapt := range map[string]func(*watch.Config){
		"one baseline":        func(*watch.Config) {},
		"one of each version": func(c *watch.Config) { c.OnNewVersion = watch.OnNewVersionRebaseline },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := episodes(20_000)
			cfg.Signals, cfg.Baseline.Units = []string{"return", "action"}, 120
			adapt(&cfg)
			share := budget.NewCalibrations()
			plain := &evicting{t: t, cfg: cfg, share: share}
			plain.open(math.MaxInt64)
			tight := &evicting{t: t, cfg: cfg, share: share, saved: ingest.Parts{}}
			tight.open(math.MaxInt64)
			evictAtRandom(t, plain, tight)
		})
	}
}

// evictAtRandom compares a bank whose groups are evicted and restored with one whose groups stay.
func evictAtRandom(t *testing.T, plain, tight *evicting) {
	const groups, units, kilobytes = 6, 2000, 300
	rng, now := rand.New(rand.NewPCG(3, 14)), time.Unix(1_800_000_000, 0)
	agents := make([]*agent, groups)
	for i := range agents {
		agents[i] = newAgent(uint64(i))
		agents[i].edit = func(u *ingest.Unit) {
			u.Group, u.Pos.Partition = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: fmt.Sprint(i)}), ingest.Partition(i)
			u.Pos.Offset, u.First, u.Last = agents[i].made, u.Pos, u.Pos
		}
	}
	evicted, returned, alarms := 0, 0, 0
	same := func(what string, a, b any) {
		t.Helper()
		if allOf(t, a) != allOf(t, b) {
			t.Fatalf("%s: %.2000s, want %.2000s", what, fmt.Sprintf("%+v", b), fmt.Sprintf("%+v", a))
		}
	}
	both := func(key ingest.Group, do func(*Policy) []finding.Finding) {
		t.Helper()
		if tight.comeBack(key) {
			returned++
		}
		want := do(plain.bank)
		alarms += len(alarmsIn(want))
		same("findings", want, do(tight.bank))
	}
	shown := func() {
		t.Helper()
		plain.bank.Publish()
		tight.bank.Publish()
		same("summary", *plain.bank.Summary(), *tight.bank.Summary())
	}
	for n := range units {
		now = now.Add(time.Second)
		i := min(rng.IntN(groups), rng.IntN(groups+n/200)) // at first only some of them
		a := agents[i]
		if n > units/2 && rng.IntN(50) == 0 {
			a.mean += 2 * rng.NormFloat64()
		}
		if rng.IntN(400) == 0 {
			a.versions.Policy += "'"
		}
		key := ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: fmt.Sprint(i)})
		u := a.unit()
		both(key, func(p *Policy) []finding.Finding { return p.Observe(u, now) })
		switch rng.IntN(60) {
		case 0, 1, 2, 3, 4:
			evicted += tight.evict(kilobytes << 10)
		case 5:
			tight.save()
		case 6:
			tight.bank.Lost()
		case 7:
			tight.save()
			tight.crash(kilobytes<<10, now)
			for _, g := range plain.bank.groups {
				g.arrived = now
			}
		case 8:
			if rng.IntN(10) == 0 {
				both(key, func(p *Policy) []finding.Finding {
					found, err := p.Restart(key, "why", now)
					plain.must(err)
					return found
				})
			}
		case 9:
			now = now.Add(time.Duration(rng.Int64N(int64(5 * time.Minute))))
			for _, key := range tight.bank.Silent(now) {
				tight.comeBack(key)
			}
			same("silence", plain.bank.Tick(now), tight.bank.Tick(now))
		}
		if n%100 == 0 {
			shown()
		}
		if a, b := plain.limit.Taken(), tight.limit.Taken(); a != b {
			t.Fatalf("%d streams are counted, want %d", b, a)
		}
	}
	for _, g := range tight.bank.groups {
		tight.comeBack(g.Key)
	}
	shown()
	if tight.residents.Evicted() != 0 {
		t.Errorf("%d evicted groups are counted, when all are back", tight.residents.Evicted())
	}
	t.Logf("%d left and %d came back, and there were %d alarms", evicted, returned, alarms)
	if evicted < 100 || returned < 100 || alarms < 3 {
		t.Error("too few to tell")
	}
}

// allOf returns a complete dump of a value, including what pointers refer to.
func allOf(t *testing.T, value any) string {
	t.Helper()
	return string(bits(t, value))
}

// The least recently used groups are evicted; those that users look at stay.
func TestTheLeastRecentlyUsedLeave(t *testing.T) {
	p, agents := ofGroups(t)
	r := capacity.NewResidents(math.MaxInt64)
	whole, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	p = newBank(watch.DefaultConfig())
	p.Keep(r)
	if err := p.Resume(whole, time.Time{}); err != nil {
		t.Fatal(err)
	}
	eu, us := p.groups[0].Key, p.groups[1].Key
	agents["eu"].feed(p, 1)
	r.Age() // otherwise it is not known whether a group is used before or after another
	chosen := r.Choose(1)
	if !slices.Equal(chosen, []ingest.Group{us}) || r.Choose(1) != nil {
		t.Fatalf("chosen %v", chosen)
	}
	p.groups[1].touch()
	if evicted, unsaved := p.Evict(chosen); evicted != 0 || len(unsaved) != 1 {
		t.Errorf("%d left that the last save does not have", evicted)
	}
	p.Stay(chosen) // the save failed
	if again := r.Choose(1); !slices.Equal(again, chosen) {
		t.Errorf("chosen again: %v", again)
	}
	p.Saved()
	p.groups[1].Incident = true
	if evicted, unsaved := p.Evict(chosen); evicted+len(unsaved) != 0 {
		t.Error("one with an incident left")
	}
	p.groups[1].Incident = false
	before := r.Bytes()
	if chosen = r.Choose(1); !slices.Equal(chosen, []ingest.Group{eu}) {
		t.Fatalf("chosen %v", chosen)
	}
	if evicted, unsaved := p.Evict([]ingest.Group{us}); evicted != 1 || len(unsaved) != 0 || r.Bytes() >= before || r.Evicted() != 1 {
		t.Errorf("%d left, %d bytes of %d", evicted, r.Bytes(), before)
	}
	if err := p.Return(us, ingest.Parts{"group/2/running": whole["group/1/running"], "group/2/frozen": whole["group/1/frozen"]}); err == nil {
		t.Error("another group came back in its place")
	}
	if err := p.Return(us, nil); err == nil || !strings.Contains(err.Error(), "it is missing") || len(p.Absent(us)) != 2 {
		t.Errorf("it came back from nothing: %v", err)
	}
	p.Lost()
	if _, _, err := p.Changes(); err == nil || !slices.Equal(p.Missing(), []ingest.Group{us}) {
		t.Errorf("all was to be written, and was without a group that is in the checkpoint alone: %v", err)
	}
	if err := p.Return(us, whole); err != nil {
		t.Fatal(err)
	}
	if parts, _, err := p.Changes(); err != nil || len(parts["group/2/running"]) == 0 || len(parts["group/2/frozen"]) == 0 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}

// The memory of an evicted group is limited, and the weight of a group is close to its memory.
func TestSimMemoryOfAnEvictedGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const banks = 40
	for _, c := range []struct{ actions, units, after int }{{4, 500, 1000}, {17, 500, 1000}, {4, 500, -200}} {
		a, cfg := newTypical(c.actions), episodes(20_000)
		cfg.Baseline.Units = c.units
		p := newBank(cfg)
		for range c.units + c.after {
			p.Observe(a.unit(), time.Time{})
		}
		streams := int64(len(p.groups[0].Streams))
		p.Lost()
		parts, _, err := p.Changes()
		if err != nil {
			t.Fatal(err)
		}
		p = nil
		resumed := func(most int64) (bytes, weight int64) {
			before, share := heap(), budget.NewCalibrations()
			r, all := capacity.NewResidents(most), make([]*Policy, banks)
			for i := range all {
				all[i] = NewPolicy("ranker", cfg, capacity.NewStreamLimit(1000))
				all[i].Share(share)
				all[i].Keep(r)
				if err := all[i].Resume(parts, time.Time{}); err != nil {
					t.Fatal(err)
				}
				all[i].Publish()
			}
			bytes, weight = (heap()-before)/banks, r.Bytes()/banks
			for _, p := range all {
				runtime.KeepAlive(p)
			}
			return bytes, weight
		}
		bytes, weight := resumed(math.MaxInt64)
		evicted, _ := resumed(0)
		t.Logf("%d actions, baseline of %d units: %d bytes a stream, by its weight %d, evicted %d", c.actions, c.units, bytes/streams, weight/streams, evicted/streams)
		if float64(weight) < .75*float64(bytes) || float64(weight) > 1.33*float64(bytes) {
			t.Errorf("%d actions, baseline of %d units: a group of %d bytes is taken for %d", c.actions, c.units, bytes, weight)
		}
	}
}
