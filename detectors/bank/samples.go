package bank

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// samples holds the values of the baselines of all groups of a bank, for readers that must not block it. The values are
// never modified.
type samples struct {
	mu      sync.Mutex
	byGroup map[ingest.Group]*groupSamples
}

// groupSamples holds the values of a group's current and previous baseline, or the names of their checkpoint parts.
type groupSamples struct {
	present, past string   // IDs; empty if there is none
	values        *frozen  // nil if the group is evicted
	parts         []string // names of the parts of the checkpoint, if the group is evicted
}

// Sample returns the values of a baseline of a group, sorted by signal. Any goroutine may call it; it never waits for
// the bank. Values are kept for a group's current and previous baseline; for others, known is false. For an evicted
// group, it instead returns the names of the parts of the checkpoint to pass to ReadSample.
func (p *Policy) Sample(key ingest.Group, id string) (sample []finding.QuantitySample, parts []string, known bool) {
	p.samples.mu.Lock()
	s := p.samples.byGroup[key]
	p.samples.mu.Unlock()
	if s == nil {
		return nil, nil, false
	}
	if s.values == nil {
		return nil, s.parts, false
	}
	sample, known = s.of(id)
	return sample, nil, known
}

func (s *groupSamples) of(id string) ([]finding.QuantitySample, bool) {
	switch id {
	case "":
		return nil, false
	case s.present:
		return s.values.sample(), true
	case s.past:
		return slices.Clone(s.values.Before), true
	}
	return nil, false
}

// ReadSample is like Sample, for an evicted group. It reads the parts of the checkpoint that Sample has named.
func ReadSample(parts ingest.Parts, key ingest.Group, id string) (sample []finding.QuantitySample, known bool, err error) {
	defer recovered(&err)
	g, f := &group{}, &frozen{}
	for name, part := range parts {
		switch {
		case strings.HasSuffix(name, runningPart):
			g, err = decodeGroup(part)
		case strings.HasSuffix(name, frozenPart):
			f, err = decodeFrozen(part)
		}
		if err != nil {
			return nil, false, fmt.Errorf("read part %s of group %s: %w", name, key, err)
		}
	}
	if g.Key != key { // the number now belongs to another group
		return nil, false, nil
	}
	s := groupSamples{present: g.Baseline.ID, past: g.pastID(), values: f}
	sample, known = s.of(id)
	return sample, known, nil
}

// offer publishes the current values of a group's baselines to readers, if they have changed.
func (p *Policy) offer(g *group) {
	if g.offered {
		return
	}
	g.offered = true
	p.samples.mu.Lock()
	defer p.samples.mu.Unlock()
	if g.away != nil {
		p.samples.byGroup[g.Key] = &groupSamples{parts: []string{g.part() + runningPart, g.part() + frozenPart}}
		return
	}
	had, present, past := p.samples.byGroup[g.Key], g.Baseline.ID, g.pastID()
	if had != nil && had.present == present && had.past == past && had.values.of(g) {
		return
	}
	values := g.saved
	if !values.of(g) {
		values = g.frozen()
	}
	p.samples.byGroup[g.Key] = &groupSamples{present: present, past: past, values: values}
}

func (p *Policy) withhold(key ingest.Group) {
	p.samples.mu.Lock()
	defer p.samples.mu.Unlock()
	delete(p.samples.byGroup, key)
}

// pastID returns the ID of the previous baseline; empty if there was none.
func (g *group) pastID() string {
	if past := g.Line.Past; len(past) > 0 {
		return past[len(past)-1].ID
	}
	return ""
}
