package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// slowDisk delays each save.
type slowDisk struct{ *ingesttest.Store }

func (s slowDisk) Save(name string, changed ingest.Parts, gone []string) error {
	time.Sleep(20 * time.Millisecond)
	return s.Store.Save(name, changed, gone)
}

// A stop ends in time even if the disk is too slow for all saves: what was not saved is judged again.
func TestStopOfManyPoliciesEndsInTime(t *testing.T) {
	const policies = 1000
	m := newMemory()
	start := func() (*alone, *PartitionFeed) {
		cfg := DefaultSettings()
		p := newAlone(t.Context(), &cfg, slowDisk{m.Store}, m, prometheus.NewRegistry())
		var saved []string
		for i := range policies {
			name := fmt.Sprint(BankPrefix, "policy-", i)
			if _, err := m.Load(name); err == nil {
				saved = append(saved, name)
			}
		}
		if err := p.workers.Restore(t.Context(), saved); err != nil {
			t.Fatal(err)
		}
		return p, p.Feed(0)
	}
	var image strings.Builder
	p, f := start()
	for i := range int64(policies) {
		if err := f.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, i, fmt.Sprint("policy-", i), time.Now())}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Snapshot(&image); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := p.StopBy(ctx); err != nil {
		t.Errorf("the stop gives %v", err)
	}
	if took := time.Since(began); took > 15*time.Second { // all saves take 20 s
		t.Errorf("the stop took %s", took)
	}
	if n := m.Saves(); n >= policies {
		t.Fatalf("all %d policies were saved: the disk was not slow", n)
	}
	p, f = start()
	if err := f.Restore(strings.NewReader(image.String())); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == policies })
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// A service that is stopped while it restores does not restore the rest.
func TestStopWhileRestoring(t *testing.T) {
	m := newMemory()
	p := newTestPipeline(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.workers.Restore(ctx, []string{BankPrefix + "a", BankPrefix + "b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("restoring gives %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
