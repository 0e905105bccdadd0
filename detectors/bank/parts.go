package bank

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The parts of a bank's checkpoint: one of the policy, and three of each group. What is frozen with a baseline is a part of
// its own, so that it is written once and not with every unit.
const (
	policyPart  = "policy"
	groupPrefix = "group/"
	runningPart = "/running"
	frozenPart  = "/frozen"
	gatesPart   = "/gates" // from the first unit after the baseline on; older checkpoints lack it
)

// snapshotVersion is the format of all parts: it goes up when a field of anything that is saved is added, dropped, moved or
// given another meaning. Another one is refused.
const snapshotVersion = 6

// policyState is what is saved of a policy beside its groups.
type policyState struct {
	Name    string
	Applied map[int32]AppliedUnit
	Granted bool
	Even    float64
	Among   int
	Later   int
	Numbers int
}

// frozen is what of a group changes only when its baseline does. Nothing in it is written to, so that what is saved can be
// told from what is there by the addresses.
type frozen struct {
	Before  []QuantitySample
	Samples []frozenSample
}

// frozenSample is the baseline of one quantity.
type frozenSample struct {
	Signal, Quantity string
	Ranks            *detectors.Ranks
	Season           *detectors.Season
}

func (g *group) frozen() *frozen {
	f := &frozen{Before: g.Line.Before}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Ranks != nil {
				f.Samples = append(f.Samples, frozenSample{s.Signal, q.Name, q.Ranks, q.Season})
			}
		}
	}
	return f
}

// is reports whether two hold the very same, by the addresses.
func (f *frozen) is(other *frozen) bool {
	return other != nil && len(f.Before) == len(other.Before) && (len(f.Before) == 0 || &f.Before[0] == &other.Before[0]) &&
		slices.Equal(f.Samples, other.Samples)
}

// running is a copy of the group without what is frozen, and with the values in the windows of its sliding tests.
func (g *group) running() *group {
	out := *g
	out.Line.Before = nil
	out.Streams = slices.Clone(g.Streams)
	for i, s := range g.Streams {
		stream := *s
		stream.Quantities = slices.Clone(s.Quantities)
		for k, q := range s.Quantities {
			quantity := *q
			quantity.Ranks, quantity.Season = nil, nil
			if q.Shape != nil {
				shape := *q.Shape
				shape.Held = shape.ks.Window()
				quantity.Shape = &shape
			}
			stream.Quantities[k] = &quantity
		}
		out.Streams[i] = &stream
	}
	return &out
}

// Changed reports whether anything has changed since the bank was made, resumed or last Saved.
func (p *Policy) Changed() bool { return p.changed }

// Changes gives the parts of the bank's checkpoint that have changed since then, and the names of those that are gone. A
// group that nothing has happened to costs nothing. None may be Missing.
func (p *Policy) Changes() (changed ingest.Parts, gone []string, err error) {
	changed = ingest.Parts{}
	if p.changed {
		state := policyState{p.name, p.Applied(), p.granted, p.even, p.among, p.later, p.numbers}
		if changed[policyPart], err = ingest.EncodeState(snapshotVersion, state); err != nil {
			return nil, nil, fmt.Errorf("write bank of policy %q: %w", p.name, err)
		}
	}
	for _, g := range p.groups {
		if err := g.changes(changed); err != nil {
			return nil, nil, fmt.Errorf("write group %s: %w", g.Key, err)
		}
	}
	return changed, p.gone, nil
}

// changes adds the parts of a group that have changed.
func (g *group) changes(changed ingest.Parts) (err error) {
	if !g.changed {
		return nil
	}
	if g.away != nil {
		return errEvicted
	}
	part := g.part()
	if f := g.frozen(); !f.is(g.saved) {
		if changed[part+frozenPart], err = ingest.EncodeState(snapshotVersion, f); err != nil {
			return err
		}
		g.frozenBytes = len(changed[part+frozenPart])
	}
	changed[part+runningPart], err = ingest.EncodeState(snapshotVersion, g.running())
	if err == nil && g.hasGates() {
		changed[part+gatesPart], err = ingest.EncodeState(snapshotVersion, g.gates.running())
	}
	g.runningBytes = len(changed[part+runningPart]) + len(changed[part+gatesPart])
	return err
}

var errEvicted = errors.New("it is evicted, and what was saved of it is not to be relied on")

// Saved says that what Changes gave last is durable.
func (p *Policy) Saved() {
	p.changed, p.gone = false, nil
	for _, g := range p.groups {
		if !g.changed {
			g.saves = min(g.saves+1, 2)
			continue
		}
		g.changed, g.saved, g.saves, g.gatesSaved = false, g.frozen(), 1, g.hasGates()
		p.residents.weigh(g.resident, g.weight())
	}
}

// Lost says that what was saved is not to be relied on: Changes gives all parts until the next Saved.
func (p *Policy) Lost() {
	p.changed = true
	for _, g := range p.groups {
		g.changed, g.saved = true, nil
	}
}

// Resume reads the parts of a checkpoint into a new bank. now restarts the clock of silence. Groups that were made with
// other group_by labels are left out: their units go to other groups from now on. Groups for which there is no room in memory
// are evicted at once. Nothing is published by it. After an error the bank is of no use.
func (p *Policy) Resume(parts ingest.Parts, now time.Time) (err error) {
	defer recovered(&err)
	var state policyState
	if err := ingest.DecodeState(parts[policyPart], snapshotVersion, &state); err != nil {
		return fmt.Errorf("read bank of policy %q: %w", p.name, err)
	}
	p.granted, p.even, p.among = state.Granted, state.Even, state.Among
	p.later, p.numbers = state.Later, state.Numbers
	for partition, a := range state.Applied {
		p.applied[partition] = &a
	}
	groups, err := p.resumeGroups(parts, now)
	if err != nil {
		return fmt.Errorf("read bank of policy %q: %w", p.name, err)
	}
	for _, g := range groups {
		p.groups = append(p.groups, g)
		p.byKey[g.Key] = g
	}
	slices.SortFunc(p.groups, func(a, b *group) int { return cmp.Compare(a.Number, b.Number) })
	return nil
}

// resumeGroups reads the groups on all cores, in any order.
func (p *Policy) resumeGroups(parts ingest.Parts, now time.Time) (groups []*group, err error) {
	names := make(chan string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for name := range names {
				g, failed := p.resumeGroup(name, parts, now)
				if g != nil && failed == nil {
					g = p.seat(g)
				}
				mu.Lock()
				switch {
				case failed != nil:
					err = errors.Join(err, fmt.Errorf("part %s: %w", name, failed))
				case g != nil:
					groups = append(groups, g)
				default:
					p.gone = append(p.gone, name+runningPart, name+frozenPart)
					if _, has := parts[name+gatesPart]; has {
						p.gone = append(p.gone, name+gatesPart)
					}
				}
				mu.Unlock()
			}
		})
	}
	for part := range maps.Keys(parts) {
		if name, running := strings.CutSuffix(part, runningPart); running && strings.HasPrefix(part, groupPrefix) {
			names <- name
		}
	}
	close(names)
	wg.Wait()
	return groups, err
}

var errPartsDoNotMatch = errors.New("its parts do not belong together")

// resumeGroup reads one group; nil where it is to be left out.
func (p *Policy) resumeGroup(name string, parts ingest.Parts, now time.Time) (_ *group, err error) {
	defer recovered(&err)
	g := &group{}
	if err := ingest.DecodeState(parts[name+runningPart], snapshotVersion, g); err != nil {
		return nil, err
	}
	if !p.cfg.groups(g.Key) {
		return nil, nil
	}
	f := &frozen{}
	if err := ingest.DecodeState(parts[name+frozenPart], snapshotVersion, f); err != nil {
		return nil, err
	}
	if err := g.thaw(f); err != nil {
		return nil, err
	}
	if name != g.part() {
		return nil, errPartsDoNotMatch
	}
	g.runningBytes, g.frozenBytes = len(parts[name+runningPart])+len(parts[name+gatesPart]), len(parts[name+frozenPart])
	p.shareEvenly(g)
	if err := g.restore(p.cfg, p.limit, p.calibrations, now); err != nil {
		return nil, err
	}
	if _, g.gatesSaved = parts[name+gatesPart]; !g.gatesSaved {
		return g, nil
	}
	if err := ingest.DecodeState(parts[name+gatesPart], snapshotVersion, &g.gates); err != nil {
		return nil, err
	}
	return g, g.attachGates()
}

// recovered makes an error of a panic, which state that this program has not written can lead to anywhere.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("it is no state of a bank: %v", r)
	}
}

// thaw puts back what running left out.
func (g *group) thaw(f *frozen) error {
	g.Line.Before, g.saved = f.Before, f
	for _, sample := range f.Samples {
		i, found := g.find(sample.Signal)
		if !found || sample.Ranks == nil {
			return errPartsDoNotMatch
		}
		q := g.Streams[i].find(sample.Quantity)
		if q == nil {
			return errPartsDoNotMatch
		}
		q.Ranks, q.Season = sample.Ranks, sample.Season
	}
	return nil
}

// restore makes what the parts leave out.
func (g *group) restore(cfg Config, limit *StreamLimit, calibrations *Calibrations, now time.Time) error {
	g.cfg, g.limit, g.calibrations, g.arrived = cfg, limit, calibrations, now
	if cfg.OnNewVersion != OnNewVersionRebaseline {
		g.Line.Versions = succession{}
	}
	if next := g.Line.Versions.Next; next != nil {
		if err := next.restore(cfg, limit, calibrations, now); err != nil {
			return err
		}
	}
	if g.LikeActions != nil && g.LikeActions.Ranks == nil {
		return errPartsDoNotMatch
	}
	g.shareScores()
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if err := q.attach(); err != nil {
				return err
			}
		}
	}
	g.actionShares = newActionShares(g.Categories)
	limit.add(len(g.Streams))
	return nil
}
