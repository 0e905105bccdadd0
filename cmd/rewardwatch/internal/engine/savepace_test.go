package engine

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

func TestPacedSave(t *testing.T) {
	for name, tt := range map[string]struct {
		every, total time.Duration
		cores        int
		want         time.Duration
	}{
		"nothing was saved yet":            {10 * time.Second, 0, 2, 10 * time.Second},
		"saves are quick":                  {10 * time.Second, 2 * time.Second, 2, 10 * time.Second},
		"a tenth of the cores":             {10 * time.Second, 6 * time.Second, 2, 30 * time.Second},
		"the same with more cores":         {10 * time.Second, 6 * time.Second, 8, 10 * time.Second},
		"no longer than that":              {10 * time.Second, time.Hour, 2, 2 * time.Minute},
		"a longer interval is left alone":  {time.Hour, time.Minute, 2, time.Hour},
		"a longer one than the most, too":  {time.Hour, 10 * time.Hour, 2, time.Hour},
		"a short interval is extended too": {time.Second, 2 * time.Second, 2, 10 * time.Second},
	} {
		if got := pacedSave(tt.every, tt.total, tt.cores); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The interval follows the last save of each policy, counts one that is gone no more, and is not for units in memory.
func TestSavesAreAsFarApartAsTheyTake(t *testing.T) {
	p := logging(t, t.TempDir())
	f := p.Feed(0)
	feedSummaries(t, f, 0, time.Minute, "one", "other")
	testkit.Eventually(t, "both units", func() bool { return p.judged() == 2 }) // else there is nothing to save
	p.saveWorkers(t, 1)
	total := func() (sum time.Duration) {
		for _, r := range p.All() {
			must(t, r.Ask(context.Background(), func(context.Context) error { sum += r.lastSave; return nil }))
		}
		return sum
	}
	if took := total(); took == 0 || took != time.Duration(p.pace.total.Load()) {
		t.Errorf("the saves took %s, and %s together", took, time.Duration(p.pace.total.Load()))
	}
	if want := min(total()*savesShare/time.Duration(runtime.GOMAXPROCS(0)), longestUnsaved); p.pace.after(0) != want {
		t.Errorf("the interval is %s, want %s", p.pace.after(0), want)
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
	if left := p.pace.total.Load(); left != 0 {
		t.Errorf("%d ns are counted of no policy", left)
	}
}

// A service that is killed between the saves of its policies, after several checkpoints of the partition, judges the units since
// the saves again, and has the same state byte for byte, but for the order of maps.
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
	disk = disk.Copy() // what the workers save while they stop does not reach it
	_ = p.Stop()
	must(t, logOf(f).close())

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
