package engine

import (
	"reflect"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// The history of a signal, and its version changes, survive a restart, after which the history continues as if there
// had been none. A version that changes with the restart is one of the changes.
func TestPastOutlivesARestart(t *testing.T) {
	start := time.Now().Add(-2 * time.Hour)
	episodes := func(from, to int64) (out []ingest.Event) {
		for n := from; n < to; n++ {
			e := ingesttest.Episode(0, n, "p", start.Add(time.Duration(n)*10*time.Second))
			e.Versions = ingest.Versions{Policy: "v1", Env: "41"}
			if n >= 80 {
				e.Versions.Env = "42"
			}
			if n >= 200 {
				e.Versions.Policy = "v2"
			}
			out = append(out, e)
		}
		return out
	}
	group := ingest.NewGroup("p", ingest.Label{Name: "env"})
	read := func(p *alone, feed ingest.Processor, from, to int64) any {
		if err := feed.Process(t.Context(), episodes(from, to)); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "all units", func() bool { return p.judged() == to })
		past, err := History(t.Context(), p.Pipeline, group)
		if err != nil {
			t.Fatal(err)
		}
		return past
	}
	whole := newTestPipeline(t, newMemory())
	want := read(whole, whole.Feed(0), 0, 300)

	m := newMemory()
	before := newTestPipeline(t, m)
	saved := read(before, before.Feed(0), 0, 200)
	for _, p := range []*alone{whole, before} {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	after := newTestPipeline(t, m)
	if err := after.workers.Restore(t.Context(), []string{BankPrefix + "p"}); err != nil {
		t.Fatal(err)
	}
	restored, err := History(t.Context(), after.Pipeline, group)
	if err != nil || !reflect.DeepEqual(any(restored), saved) {
		t.Errorf("%v: restored\n%+v, want\n%+v", err, restored, saved)
	}
	got := read(after, after.Feed(0), 200, 300)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("after the restart\n%+v, want\n%+v", got, want)
	}
	past, err := History(t.Context(), after.Pipeline, group)
	if err != nil || len(past.Of("return")) == 0 || len(past.Changes) != 2 || past.Changes[0].Unit != 80 || past.Changes[1].Unit != 200 || past.Changes[1].To.Policy != "v2" {
		t.Errorf("%v: %+v", err, past)
	}
	if err := after.Stop(); err != nil {
		t.Fatal(err)
	}
}
