package engine

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// heard is what a tenant's people are notified of, in order, and the units that end.
type heard struct {
	*memory
	mu      sync.Mutex
	changes map[string][]string // by policy, each of which has a goroutine
}

// Changed stores the changes.
func (h *heard) Changed(_ context.Context, changes []alerts.Change) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		switch {
		case c.Alarm != nil:
			h.changes[c.Alarm.Group.Policy] = append(h.changes[c.Alarm.Group.Policy], fmt.Sprintf("alarm %s of %s in %s at %+v, resolved %t", c.Alarm.ID, c.Alarm.Signal, c.Alarm.Incident, c.Alarm.At, c.Alarm.Resolved))
		case c.Incident != nil:
			h.changes[c.Incident.Group.Policy] = append(h.changes[c.Incident.Group.Policy], fmt.Sprintf("incident %s, closed %t", c.Incident.ID, c.Incident.Closed))
		}
	}
	return nil
}

// house is an instance with little room that two tenants share.
type house struct {
	*alone
	*heard
	t    *testing.T
	cfg  *Settings
	reg  *prometheus.Registry
	feed *PartitionFeed
}

// houseOf returns the settings of a house, with or without tenants.
func houseOf(divided bool) *Settings {
	cfg := DefaultSettings()
	cfg.Limits.Streams, cfg.Limits.OpenEpisodes, cfg.Limits.OpenDecisions = 300, 60, 60
	episodes := PolicyConfig{Match: "*", Config: watch.DefaultConfig()}
	episodes.Baseline.Units = 50
	decisions := episodes
	decisions.Match = "*offers"
	decisions.Feedback.Key, decisions.Feedback.Window = "episode_id", model.Duration(time.Hour)
	cfg.Policies = []PolicyConfig{decisions, episodes}
	if divided {
		cfg.Tenants = tenant.List{
			{Name: "quiet", Policies: []string{"quiet*"}, Quota: tenant.Quota{Streams: 100, OpenEpisodes: 20, OpenDecisions: 20}},
			{Name: "noisy", Policies: []string{"noisy*"}, Quota: tenant.Quota{Policies: 5, UnitsPerSecond: .5}},
		}
	}
	return &cfg
}

func (h *house) begin(policies []string, saved []byte) {
	h.reg = prometheus.NewRegistry()
	h.alone = newAlone(h.t.Context(), h.cfg, h.memory, h.heard, h.reg)
	must(h.t, h.workers.Restore(h.t.Context(), policies))
	h.Begin(1)
	h.feed = h.Feed(0)
	if saved != nil {
		must(h.t, h.feed.Restore(bytes.NewReader(saved)))
	}
}

// restart saves the partition and the workers, and restores them.
func (h *house) restart() {
	must(h.t, h.Stop())
	var policies []string
	for name := range h.names {
		policies = append(policies, BankPrefix+name)
	}
	var saved bytes.Buffer
	must(h.t, h.feed.Snapshot(&saved))
	h.Revoke(0)
	h.begin(policies, saved.Bytes())
}

// week returns the events of the quiet tenant in a week: episodes of two agents with five steps, whose rewards rise in
// the middle, and decisions with later feedback, each of which is sent twice.
func week() (out []ingest.Event) {
	rng := rand.New(rand.NewPCG(7, 7))
	const hours = 24 * 7
	from := time.Now().Add(-hours * time.Hour).Truncate(time.Hour)
	for n := range hours * 4 {
		at := from.Add(time.Duration(n) * 15 * time.Minute)
		shift := 0.
		if n > hours*3 {
			shift = 4
		}
		for step := range 5 {
			for _, agent := range []string{"a", "b"} {
				out = append(out, ingest.Event{
					TS: at.Add(time.Duration(step) * time.Minute).UnixNano(), Policy: "quiet-ranker", AgentID: agent, Step: int64(step), Length: -1,
					Reward: rng.NormFloat64() + shift, HasReward: true, Terminated: step == 4,
				})
			}
		}
		key := fmt.Sprint("d", n)
		decision := ingest.Event{
			TS: at.Add(6 * time.Minute).UnixNano(), Policy: "quiet-offers", EpisodeID: key, Step: -1, Length: -1,
			Action: ingest.Action{Kind: ingest.ActionCategory, Category: "x"},
		}
		feedback := ingest.Event{TS: at.Add(8 * time.Minute).UnixNano(), Policy: "quiet-offers", EpisodeID: key, Step: -1, Length: -1, Reward: rng.NormFloat64() + shift, HasReward: true}
		out = append(out, decision, feedback)
		if n > 20 { // again, after it is over
			decision.EpisodeID = fmt.Sprint("d", n-20)
			decision.TS = at.Add(-20*15*time.Minute + 6*time.Minute).UnixNano()
			out = append(out, decision)
		}
	}
	return out
}

// written appends a value to a text, for any type: unknown numbers are NaN, which JSON lacks. Times of the test's own
// clock are omitted; event times are numbers.
func written(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		written(b, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		b.WriteString("{")
		for i := range v.NumField() {
			b.WriteString(" " + v.Type().Field(i).Name + ":")
			written(b, v.Field(i))
		}
		b.WriteString("}")
	case reflect.Slice, reflect.Array:
		b.WriteString("[")
		for i := range v.Len() {
			b.WriteString(" ")
			written(b, v.Index(i))
		}
		b.WriteString("]")
	default:
		fmt.Fprintf(b, "%v", v) // the keys of a map are sorted
	}
}

// live feeds the quiet tenant's events, each after a number of events of the noise, and returns what is known about
// that tenant in the end. With restarts, much of the noise has been judged before the tenant's first event.
func (h *house) live(events []ingest.Event, noise func(i int, ts int64) ingest.Event, each int, restarts bool) string {
	made := 0
	if restarts && each > 0 {
		for ; made < 400; made++ {
			n := noise(made, events[0].TS)
			n.Pos = ingest.Position{Offset: int64(made)}
			must(h.t, h.feed.Process(h.t.Context(), []ingest.Event{n}))
		}
		h.restart()
	}
	for i, e := range events {
		var batch []ingest.Event
		for range each {
			n := noise(made, e.TS)
			n.Pos = ingest.Position{Offset: int64(1000 + i*100 + len(batch))}
			batch = append(batch, n)
			made++
		}
		e.Pos = ingest.Position{Offset: int64(1000 + i*100 + 99)}
		must(h.t, h.feed.Process(h.t.Context(), append(batch, e)))
		if restarts && i%(len(events)/3) == 1000 {
			h.restart()
		}
	}
	must(h.t, h.Stop())
	var known []string
	for _, s := range h.Summaries() {
		if strings.HasPrefix(s.Policy, "quiet") {
			var groups strings.Builder
			written(&groups, reflect.ValueOf(s.Groups))
			known = append(known, groups.String())
		}
	}
	for _, policy := range []string{"quiet-offers", "quiet-ranker"} {
		known = append(known, h.changes[policy]...)
	}
	return strings.Join(known, "\n")
}

func enter(t *testing.T, divided bool) *house {
	h := &house{t: t, heard: &heard{memory: newMemory(), changes: map[string][]string{}}, cfg: houseOf(divided)}
	h.begin(nil, nil)
	return h
}

// A tenant that floods the service with policies, groups, agents, units or decisions changes nothing for another one:
// no number of a stream, and neither the ID nor the order of an alarm, with and without restarts. Without tenants, some
// of it does.
func TestANoisyTenantChangesNothingForAnother(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	silence := func(int, int64) ingest.Event { return ingest.Event{} }
	step := func(i int, ts int64) ingest.Event {
		return ingest.Event{TS: ts, Policy: "noisy", AgentID: fmt.Sprint(i), Step: 0, Length: -1, Reward: float64(i % 7), HasReward: true}
	}
	events := week()
	want := enter(t, true).live(events, silence, 0, false)
	if n := strings.Count(want, "alarm "); n < 2 || !strings.Contains(want, "quiet-offers") {
		t.Fatalf("%d changes of alarms in\n%s", n, want)
	}
	for name, c := range map[string]struct {
		noise    func(i int, ts int64) ingest.Event
		kind     string
		restarts bool
		harms    bool // without tenants
	}{
		"silence, with restarts": {noise: silence, restarts: true},
		"policies": {kind: "policies", restarts: true, harms: true, noise: func(i int, ts int64) ingest.Event {
			e := step(i, ts)
			e.Policy, e.Terminated = fmt.Sprint("noisy-", i), true
			return e
		}},
		"policies that decide": {kind: "policies", restarts: true, noise: func(i int, ts int64) ingest.Event {
			return ingest.Event{
				TS: ts, Policy: fmt.Sprint("noisy-", i, "-offers"), EpisodeID: "x", Step: -1, Length: -1,
				Action: ingest.Action{Kind: ingest.ActionCategory, Category: "x"},
			}
		}},
		"groups": {kind: "groups", noise: func(i int, ts int64) ingest.Event {
			e := step(i, ts)
			e.Env, e.Terminated = fmt.Sprint(i), true
			return e
		}},
		"agents": {kind: "open_episodes", restarts: true, noise: step},
		"units": {kind: "units", noise: func(i int, ts int64) ingest.Event {
			e := step(i, ts)
			e.AgentID, e.Terminated = "a", true
			return e
		}},
		"decisions": {kind: "open_decisions", restarts: true, harms: true, noise: func(i int, ts int64) ingest.Event {
			return ingest.Event{
				TS: ts, Policy: "noisy-offers", EpisodeID: fmt.Sprint(i), Step: -1, Length: -1,
				Action: ingest.Action{Kind: ingest.ActionCategory, Category: "x"},
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			each := 3
			if c.kind == "" {
				each = 0
			}
			h := enter(t, true)
			if got := h.live(events, c.noise, each, c.restarts); got != want {
				t.Errorf("with the neighbor\n%s", difference(want, got))
			}
			if c.kind != "" && refusedOf(t, h.reg, "noisy", c.kind) == 0 {
				t.Error("what the neighbor had beyond its quota is not counted")
			}
			for _, kind := range []string{"policies", "groups", "streams", "open_episodes", "open_decisions", "units"} {
				if n := refusedOf(t, h.reg, "quiet", kind); n != 0 {
					t.Errorf("%v of kind %s are counted for the tenant within its quota", n, kind)
				}
			}
			if c.harms && enter(t, false).live(events, c.noise, each, c.restarts) == want {
				t.Error("without tenants, the neighbor changes nothing either")
			}
		})
	}
}

// difference returns the first lines that differ, with some context before.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		at := 0
		for at < min(len(a[i]), len(b[i])) && a[i][at] == b[i][at] {
			at++
		}
		from := max(0, at-200)
		return fmt.Sprintf("%s\nbut\n%s", a[i][from:min(len(a[i]), at+200)], b[i][from:min(len(b[i]), at+200)])
	}
	return fmt.Sprintf("%d lines, want %d", len(b), len(a))
}

// refusedOf returns the amount that a tenant had beyond its quota, as exported.
func refusedOf(t *testing.T, reg *prometheus.Registry, name, kind string) (n float64) {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == names.MetricTenantRefused && labels["tenant"] == name && labels["kind"] == kind {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no %s of kind %s for %q", names.MetricTenantRefused, kind, name)
	return 0
}

// Without tenants, there are no metrics of tenants.
func TestNoTenantsNoMetrics(t *testing.T) {
	h := enter(t, false)
	if n, err := testutil.GatherAndCount(h.reg, names.MetricTenantQuota, names.MetricTenantUsed, names.MetricTenantRefused); n != 0 || err != nil {
		t.Errorf("%d metrics of tenants, %v", n, err)
	}
	must(t, h.Stop())
}

// If several partitions bring new policies of a tenant at the same time, the quota limits their total.
func TestQuotaOfPoliciesOfSeveralPartitions(t *testing.T) {
	for range 20 {
		h := enter(t, true)
		var at sync.WaitGroup
		begin := make(chan struct{})
		for i := range 32 {
			at.Go(func() {
				<-begin
				_, _ = h.workers.Worker(t.Context(), fmt.Sprint("noisy-", i)) // most are refused
			})
		}
		close(begin)
		at.Wait()
		if n := len(h.workers.List()); n != 5 {
			t.Fatalf("%d policies are judged", n)
		}
		must(t, h.Stop())
	}
}
