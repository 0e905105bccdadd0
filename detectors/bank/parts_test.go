package bank

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// ofGroups returns a bank with frozen baselines of two groups, group/1 and group/2, and their agents.
func ofGroups(t testing.TB) (*Policy, map[string]*agent) {
	t.Helper()
	p, agents := newBank(watch.DefaultConfig()), map[string]*agent{}
	for i, env := range []string{"eu", "us"} {
		a := newAgent(uint64(130 + i))
		a.edit = func(u *ingest.Unit) {
			u.Group, u.Pos.Partition = ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env}), ingest.Partition(i)
		}
		agents[env] = a
	}
	for range 110 {
		for _, env := range []string{"eu", "us"} {
			agents[env].feed(p, 1)
		}
	}
	return p, agents
}

// Only what has changed is written, and what is frozen is written once.
func TestChangesFollowTheChange(t *testing.T) {
	p, agents := ofGroups(t)
	wants := func(what string, want ...string) ingest.Parts {
		t.Helper()
		parts, gone, err := p.Changes()
		if got := slices.Sorted(maps.Keys(parts)); err != nil || !slices.Equal(got, want) || gone != nil || p.Changed() != (len(want) > 0) {
			t.Fatalf("%s: %q, gone %q, %v, want %q", what, got, gone, err, want)
		}
		return parts
	}
	all := []string{"group/1/frozen", "group/1/running", "group/2/frozen", "group/2/running", "policy"}
	wants("at first", all...)
	whole := wants("not saved yet", all...)
	p.Saved()
	wants("saved")
	agents["us"].feed(p, 1)
	wants("a unit of one group", "group/2/running", "policy")
	p.Saved()
	if err := p.Promote(ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "eu"}), "why"); err != nil {
		t.Fatal(err)
	}
	wants("a promotion", "group/1/running", "policy")
	p.Saved()
	if _, err := p.Restart(p.groups[0].Key, "why", time.Time{}); err != nil {
		t.Fatal(err)
	}
	wants("a new baseline", "group/1/frozen", "group/1/running", "policy")
	p.Saved()
	p.groups[1].arrived = time.Now()
	p.Tick(time.Now().AddDate(10, 0, 0))
	wants("silence", "group/2/running", "policy")
	p.Lost()
	wants("lost", all...)

	if len(whole["group/1/frozen"]) < 5*100*8 { // several quantities of 100 values
		t.Errorf("what is frozen takes %d bytes", len(whole["group/1/frozen"]))
	}
	resumed := newBank(watch.DefaultConfig())
	if err := resumed.Resume(whole, time.Time{}); err != nil {
		t.Fatal(err)
	}
	p = resumed
	wants("resumed")
	agents["eu"].feed(p, 1)
	wants("a unit after it was resumed", "group/1/running", "policy")
}

// Groups that are removed are removed from the checkpoint with the next save.
func TestGroupsWithOtherLabelsAreGone(t *testing.T) {
	p, _ := ofGroups(t)
	parts, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	cfg := watch.DefaultConfig()
	cfg.GroupBy = []string{"labels.region"}
	q := newBank(cfg)
	if err := q.Resume(parts, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, gone, err := q.Changes()
	slices.Sort(gone)
	if want := []string{"group/1/frozen", "group/1/running", "group/2/frozen", "group/2/running"}; err != nil || !slices.Equal(gone, want) {
		t.Errorf("gone %q, %v", gone, err)
	}
}

// A checkpoint with a part that is missing, truncated, from another group, or of another version is refused.
func TestPartsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	p, _ := ofGroups(t)
	whole, _, err := p.Changes()
	if err != nil {
		t.Fatal(err)
	}
	resume := func(what, why string, change func(ingest.Parts)) {
		t.Helper()
		parts := maps.Clone(whole)
		change(parts)
		if err := newBank(watch.DefaultConfig()).Resume(parts, time.Time{}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for part, data := range whole {
		for _, n := range []int{0, 1, 10, len(data) / 2, len(data) - 1} {
			resume("cut short", "", func(parts ingest.Parts) { parts[part] = data[:n] })
		}
	}
	resume("no frozen part", "part group/1: it is missing", func(parts ingest.Parts) { delete(parts, "group/1/frozen") })
	resume("a group of another number", stream.ErrPartsDoNotMatch.Error(), func(parts ingest.Parts) {
		parts["group/3/running"], parts["group/3/frozen"] = parts["group/1/running"], parts["group/1/frozen"]
	})
	resume("nothing frozen", stream.ErrPartsDoNotMatch.Error(), func(parts ingest.Parts) {
		parts["group/1/frozen"], err = frozenFormat.Encode(&frozenWire{})
		if err != nil {
			t.Fatal(err)
		}
	})
	resume("too old a version", "its format is 6, but this build reads formats from 7", func(parts ingest.Parts) {
		parts["policy"] = append([]byte{6}, parts["policy"][1:]...)
	})
	before := maps.Clone(whole)
	for part, data := range before {
		before[part] = append([]byte{8}, data[1:]...)
	}
	if err := newBank(watch.DefaultConfig()).Resume(before, time.Time{}); err != nil {
		t.Errorf("the version before: %v", err)
	}
	resume("a version to come", saved.ErrNewer.Error(), func(parts ingest.Parts) {
		parts["policy"] = append([]byte{10}, parts["policy"][1:]...)
	})
}

// FuzzResume looks for state that makes a bank panic instead of returning an error.
func FuzzResume(f *testing.F) {
	p := newBank(watch.DefaultConfig())
	newAgent(130).feed(p, 30)
	parts, _, err := p.Changes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts["policy"], parts["group/1/running"], parts["group/1/frozen"])
	f.Fuzz(func(_ *testing.T, policy, running, frozen []byte) {
		p := newBank(watch.DefaultConfig())
		if p.Resume(ingest.Parts{"policy": policy, "group/1/running": running, "group/1/frozen": frozen}, time.Time{}) == nil {
			_, _, _ = p.Changes()
		}
	})
}
