package bank

import (
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// BenchmarkChanges encodes a group that has judged a unit since the last save.
func BenchmarkChanges(b *testing.B) {
	p := newBank(watch.DefaultConfig())
	newAgent(140).feed(p, 1100)
	g := p.groups[0]
	if _, _, err := p.Changes(); err != nil {
		b.Fatal(err)
	}
	p.Saved()
	b.ReportAllocs()
	size, begun := 0, cpu(b)
	for b.Loop() {
		g.changed = true
		parts, _, err := p.Changes()
		if err != nil {
			b.Fatal(err)
		}
		size = len(parts[g.part()+runningPart])
		p.Saved()
	}
	b.ReportMetric(float64(size), "bytes")
	b.ReportMetric(float64((cpu(b)-begun).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkSummary summarizes a group that has judged a unit since it was last shown.
func BenchmarkSummary(b *testing.B) {
	p := newBank(watch.DefaultConfig())
	newAgent(140).feed(p, 1100)
	g := p.groups[0]
	b.ReportAllocs()
	begun := cpu(b)
	for b.Loop() {
		g.shown = nil
		p.Publish()
	}
	b.ReportMetric(float64((cpu(b)-begun).Microseconds())/float64(b.N), "cpu-us/op")
}

// BenchmarkResume restores a group that has judged units from its parts, and summarizes it.
func BenchmarkResume(b *testing.B) {
	p := newBank(watch.DefaultConfig())
	newAgent(140).feed(p, 1100)
	parts, _, err := p.Changes()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begun := cpu(b)
	for b.Loop() {
		p = newBank(watch.DefaultConfig())
		if err := p.Resume(parts, time.Time{}); err != nil {
			b.Fatal(err)
		}
		p.Publish()
	}
	b.ReportMetric(float64((cpu(b)-begun).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(len(p.groups[0].Streams)), "streams")
}
