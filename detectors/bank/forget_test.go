package bank

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// unusedRig is a bank of groups without a clock, with what has been saved of it.
type unusedRig struct {
	*Policy
	t     *testing.T
	saved ingest.Parts
	a     *agent
}

func newUnusedRig(t *testing.T, clock bool) *unusedRig {
	r := &unusedRig{Policy: newBank(watch.DefaultConfig()), t: t, saved: ingest.Parts{}, a: newAgent(95)}
	r.a.edit = func(u *ingest.Unit) {
		if !clock {
			u.StartTS, u.EndTS = 0, 0
		}
	}
	return r
}

// observe observes a unit of a group, and saves as the service does.
func (r *unusedRig) observe(env string, now time.Time) {
	u := r.a.unit()
	u.Group = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env})
	r.Observe(u, now)
	r.save()
}

// save returns the names of the parts that were written.
func (r *unusedRig) save() []string {
	r.t.Helper()
	changed, gone, err := r.Changes()
	if err != nil {
		r.t.Fatal(err)
	}
	maps.Copy(r.saved, changed)
	for _, part := range gone {
		delete(r.saved, part)
	}
	r.Saved()
	return slices.Sorted(maps.Keys(changed))
}

func (r *unusedRig) restart(now time.Time, most int64) {
	r.t.Helper()
	r.Policy = newBank(watch.DefaultConfig())
	r.Keep(capacity.NewResidents(most))
	if err := r.Resume(r.saved, now); err != nil {
		r.t.Fatal(err)
	}
}

// names returns the environments of groups.
func names(groups []ingest.Group) (out []string) {
	for _, g := range groups {
		out = append(out, g.Map()["env"])
	}
	return out
}

// Groups without a clock counted as just used after each restart, so a service that was restarted every day never
// removed them.
func TestUnusedGroupsWithoutAClockAreKnownAfterRestarts(t *testing.T) {
	const day = 24 * time.Hour
	begin := time.Date(2026, 11, 20, 8, 10, 0, 0, time.UTC)
	for what, most := range map[string]int64{"in memory": 1 << 40, "evicted": 0} {
		r := newUnusedRig(t, false)
		r.observe("old", begin)
		r.observe("young", begin)
		for hours := range 4 { // the service is restarted every six hours
			now := begin.Add(time.Duration(6*(hours+1)) * time.Hour)
			r.restart(now, most)
			if unused := names(r.Unused(now, 30*day, day)); hours < 3 && len(unused) > 0 {
				t.Errorf("%s: after %v %q are unused", what, now.Sub(begin), unused)
			}
			for _, g := range r.groups {
				if parts := r.Absent(g.Key); len(parts) > 0 && g.Key.Map()["env"] == "young" {
					if err := r.Return(g.Key, r.saved); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.observe("young", now)
		}
		now := begin.Add(day + time.Hour)
		r.restart(now, most)
		if unused := names(r.Unused(now, 30*day, day)); !slices.Equal(unused, []string{"old"}) {
			t.Errorf("%s: a day later %q are unused", what, unused)
		}
	}
}

// The hours are only written if they have changed, and never if there is a clock.
func TestLastUsesAreSeldomWritten(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 10, 0, 0, time.UTC)
	r := newUnusedRig(t, false)
	write := func(now time.Time) bool {
		r.Observe(r.a.unit(), now)
		return slices.Contains(r.save(), usedPart)
	}
	if !write(now) || write(now.Add(time.Minute)) || !write(now.Add(time.Hour)) {
		t.Error("they are not written once an hour")
	}
	r.Lost()
	if !slices.Contains(r.save(), usedPart) {
		t.Error("what is lost is not written")
	}
	delete(r.saved, usedPart) // as saved by an older build
	r.restart(now, 1<<40)
	if used := r.groups[0].lastUsed(); !used.Equal(now) {
		t.Errorf("without the part it was used at %v", used)
	}
	if r = newUnusedRig(t, true); write(now) {
		t.Error("they are written of groups with a clock")
	}
}
