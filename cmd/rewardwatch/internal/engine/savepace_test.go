package engine

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// A save that fails is soon repeated, but rarely while the disk remains full. Once it has succeeded, the interval is as
// long as before.
func TestAFailedPacedSaveIsTriedAgainSoon(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg, store := DefaultSettings(), &timed{memory: newMemory()}
		store.Fill()
		p := newAlone(t.Context(), &cfg, store, store.memory, prometheus.NewRegistry())
		p.logTo(dir)
		others := p.pace.Policy()
		others.Ended(time.Now().Add(-time.Hour), nil) // of a large fleet
		f, offset := p.Feed(0), int64(0)
		live := func(long time.Duration) {
			for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(time.Second) {
				offset = feedSummaries(t, f, offset, 0, "one")
				must(t, f.Idle(t.Context(), time.Now()))
				p.Confirm(time.Now())
			}
		}
		live(11 * time.Minute)
		store.Free()
		live(7 * time.Minute)
		store.Fill()
		live(2 * time.Minute)
		var apart []time.Duration
		for i := range store.at[1:] {
			apart = append(apart, store.at[i+1].Sub(store.at[i]).Round(10*time.Second))
		}
		want := []time.Duration{10, 20, 40, 80, 120, 120, 120, 120, 120, 120, 120, 10, 20, 40}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(apart, want) {
			t.Errorf("the saves are %v apart, want %v", apart, want)
		}
		store.Free()
		must(t, p.Stop())
		must(t, logOf(f).Close())
	})
}

// timed records when policies are saved, or should have been.
type timed struct {
	*memory
	at []time.Time
}

func (s *timed) Save(name string, changed ingest.Parts, gone []string) error {
	if strings.HasPrefix(name, BankPrefix) {
		s.at = append(s.at, time.Now())
	}
	return s.memory.Save(name, changed, gone)
}

// The interval depends on the last save of each policy, no longer on policies that are gone, and does not apply to
// units in memory.
func TestSavesAreAsFarApartAsTheyTake(t *testing.T) {
	p := logging(t, t.TempDir())
	f := p.Feed(0)
	feedSummaries(t, f, 0, time.Minute, "one", "other")
	testkit.Eventually(t, "both units", func() bool { return p.judged() == 2 }) // otherwise there is nothing to save
	p.saveWorkers(t, 1)
	total := func() (sum time.Duration) {
		for _, r := range p.All() {
			must(t, r.Ask(context.Background(), func(context.Context) error { sum += r.saves.Last(); return nil }))
		}
		return sum
	}
	if took := total(); took == 0 || took != p.pace.Total() {
		t.Errorf("the saves took %s, and %s together", took, p.pace.Total())
	}
	if !p.kept.inLogs() {
		t.Error("units in logs delay no save")
	}
	inMemory := NewDelivery(p.workers, p.Log, nil)
	if p.kept.inLogs() {
		t.Error("units in memory delay saves")
	}
	p.kept.remove(inMemory)
	must(t, p.Stop())
	if left := p.pace.Total(); left != 0 {
		t.Errorf("%s are counted of no policy", left)
	}
}

// A service that is killed between the saves of its policies, after several checkpoints of the partition, judges the
// units since the saves again. It then has the same state byte for byte, except for the order of maps.
func TestUnitsSinceALongSaveAreJudgedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const early, late = 1200, 3000 // with baselines from the first
	disk, dir := ingesttest.NewSegments(), t.TempDir()
	open := func() *alone {
		cfg, reg := DefaultSettings(), prometheus.NewRegistry()
		cfg.Checkpoint.Every = 1 << 60
		p := newAlone(t.Context(), &cfg, checkpoint.NewStore(disk, zerolog.Nop(), reg), newMemory(), reg)
		p.logTo(dir)
		return p
	}
	p := open()
	f, start, image := p.Feed(0), time.Now().Add(-time.Hour), []byte(nil)
	for n := int64(0); n < late; n++ {
		e := ingesttest.Episode(0, n, []string{"one", "other"}[n%2], start.Add(time.Duration(n)*time.Second))
		must(t, f.Process(t.Context(), []ingest.Event{e}))
		if (n+1)%300 != 0 {
			continue
		}
		must(t, f.Idle(t.Context(), time.Now()))
		testkit.Eventually(t, "the units so far", func() bool { return p.judged() == n+1 })
		if n+1 == early {
			p.saveWorkers(t, 2)
		}
		image = saveFeed(t, f)
	}
	want := p.states(t)
	disk = disk.Copy() // saves of workers during the stop do not reach it
	_ = p.Stop()
	must(t, logOf(f).Close())

	p = open()
	must(t, p.workers.Restore(t.Context(), []string{BankPrefix + "one", BankPrefix + "other"}))
	if n := p.judged(); n != early {
		t.Fatalf("the saves have %d units, want %d", n, early)
	}
	must(t, p.Feed(0).Restore(bytes.NewReader(image)))
	testkit.Eventually(t, "all units again", func() bool { return p.judged() == late })
	got := p.states(t)
	must(t, p.Stop())
	if len(want) != 2*len([]string{"policy", "running", "frozen"}) || len(got) != len(want) {
		t.Errorf("there are %d parts, and were %d", len(got), len(want))
	}
	for name, part := range want {
		if !bytes.Equal(part, got[name]) {
			t.Errorf("part %s is another one", name)
		}
	}
}

// states returns the parts of all banks, with sorted maps.
func (a *alone) states(t *testing.T) map[string][]byte {
	t.Helper()
	sorted, err := cbor.EncOptions{Sort: cbor.SortCanonical, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	must(t, err)
	out := map[string][]byte{}
	for _, r := range a.All() {
		var parts ingest.Parts
		must(t, r.Ask(context.Background(), func(context.Context) (err error) {
			r.Policy.Lost() // so that all parts have changed
			parts, _, err = r.Policy.Changes()
			return err
		}))
		for name, part := range parts {
			var content any
			must(t, cbor.Unmarshal(part[1:], &content))
			bytes, err := sorted.Marshal(content)
			must(t, err)
			out[r.Name+"/"+name] = bytes
		}
	}
	return out
}
