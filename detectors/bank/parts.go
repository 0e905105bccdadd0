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
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The parts of a bank's checkpoint: one for the policy, and three for each group. State that is frozen with a baseline
// has its own part, so that it is written once instead of after every unit.
const (
	policyPart  = "policy"
	groupPrefix = "group/"
	runningPart = "/running"
	frozenPart  = "/frozen"
	gatesPart   = "/gates"    // exists from the first unit after the baseline on; older checkpoints lack it
	usedPart    = "last_uses" // exists if groups have no clock; older checkpoints lack it
)

// The formats of the parts. In format 7, fields had names. In format 8, units were never blocks of decisions: a build
// that only reads formats up to 8 would judge decisions against a baseline of blocks.
var (
	policyFormat  = format[policyWire]()
	usedFormat    = saved.Format[usedWire]{Version: 9, Before: map[byte]saved.Migration[usedWire]{7: bareHours, 8: saved.Same[usedWire]}}
	runningFormat = packedFormat[groupWire]()
	frozenFormat  = format[frozenWire]()
	gatesFormat   = packedFormat[gate.Wire]()
)

func format[Wire any]() saved.Format[Wire] {
	return saved.Format[Wire]{Version: 9, Before: map[byte]saved.Migration[Wire]{7: saved.Named[Wire], 8: saved.Same[Wire]}}
}

// packedFormat returns a format whose version 10 stores traces, trails and actions in their in-memory form.
func packedFormat[Wire any]() saved.Format[Wire] {
	f := format[Wire]()
	f.Version, f.Before[9] = 10, saved.Same[Wire]
	return f
}

// frozen is the part of a group that only changes with its baseline. It is never modified, so comparing addresses is
// enough to compare it with what is saved.
type frozen struct {
	Before  []finding.QuantitySample
	Samples []frozenSample
	Laws    *factor.Model // nil if there are none
}

type frozenSample struct {
	Signal, Quantity string
	Ranks            *detectors.Ranks
	Season           *season.Season
}

func (g *group) frozen() *frozen {
	f := &frozen{Before: g.Line.Before, Laws: g.Laws.Model}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Ranks != nil {
				f.Samples = append(f.Samples, frozenSample{s.Signal, q.Name, q.Ranks, q.Season})
			}
		}
	}
	return f
}

// of reports whether f, which may be nil, holds the current baselines of the group, by their addresses.
func (f *frozen) of(g *group) bool {
	if f == nil || f.Laws != g.Laws.Model || len(f.Before) != len(g.Line.Before) || len(f.Before) > 0 && &f.Before[0] != &g.Line.Before[0] {
		return false
	}
	n := 0
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Ranks == nil {
				continue
			}
			if n >= len(f.Samples) || f.Samples[n] != (frozenSample{s.Signal, q.Name, q.Ranks, q.Season}) {
				return false
			}
			n++
		}
	}
	return n == len(f.Samples)
}

func (f *frozen) sample() []finding.QuantitySample {
	var out []finding.QuantitySample
	for _, s := range f.Samples {
		out = append(out, finding.QuantitySample{Signal: s.Signal, Quantity: s.Quantity, Values: s.Ranks.Sample()})
	}
	return out
}

// running returns a copy of the group without its frozen part.
func (g *group) running() *group {
	out := *g
	out.Line.Before = nil
	out.Streams = g.BareStreams()
	out.Laws = g.Laws.Bare()
	return &out
}

// Changed reports whether anything has changed since the bank was created, resumed or last Saved.
func (p *Policy) Changed() bool { return p.changed }

// Changes returns the parts of the bank's checkpoint that have changed since then, and the names of those that were
// removed. Unchanged groups are not encoded. No group may be Missing.
func (p *Policy) Changes() (changed ingest.Parts, gone []string, err error) {
	changed = ingest.Parts{}
	if p.changed {
		if changed[policyPart], err = policyFormat.Encode(p.wire()); err != nil {
			return nil, nil, fmt.Errorf("write the state of policy %q: %w", p.name, err)
		}
		if p.told = p.lastUses(); !maps.Equal(p.told, p.uses) {
			if changed[usedPart], err = usedFormat.Encode(&usedWire{p.told}); err != nil {
				return nil, nil, fmt.Errorf("write the state of policy %q: %w", p.name, err)
			}
		}
	}
	for _, g := range p.groups {
		if err := g.changes(changed); err != nil {
			return nil, nil, fmt.Errorf("write group %s: %w", g.Key, err)
		}
	}
	return changed, p.gone, nil
}

func (g *group) changes(changed ingest.Parts) (err error) {
	if !g.changed {
		return nil
	}
	if g.away != nil {
		return errEvicted
	}
	part := g.part()
	if !g.saved.of(g) {
		wire := g.frozen().wire()
		if changed[part+frozenPart], err = frozenFormat.Encode(&wire); err != nil {
			return err
		}
		g.frozenBytes = len(changed[part+frozenPart])
	}
	running := g.running().wire()
	changed[part+runningPart], err = runningFormat.Encode(&running)
	if err == nil && g.hasGates() {
		gates := g.gates.Bare()
		wire := gates.Wire()
		changed[part+gatesPart], err = gatesFormat.Encode(&wire)
	}
	g.runningBytes = len(changed[part+runningPart]) + len(changed[part+gatesPart])
	return err
}

var errEvicted = errors.New("the group was evicted, and its saved state is not reliable")

// Saved marks the result of the last Changes as durable.
func (p *Policy) Saved() {
	if p.changed {
		p.uses = p.told
	}
	p.changed, p.gone = false, nil
	for _, g := range p.groups {
		if !g.changed {
			continue
		}
		if !g.saved.of(g) {
			g.saved = g.frozen()
		}
		g.changed, g.gatesSaved = false, g.hasGates()
		p.residents.Weigh(g.resident, g.weight())
	}
}

// Lost marks the saved parts as unreliable: Changes returns all parts until the next Saved.
func (p *Policy) Lost() {
	p.changed, p.uses = true, nil
	for _, g := range p.groups {
		g.changed, g.saved = true, nil
	}
}

// Resume reads the parts of a checkpoint into a new bank. now restarts the clock that detects silence. Groups with
// other group_by labels are removed: their units now belong to other groups. Groups that do not fit into memory are
// evicted immediately. Resume does not publish a summary. After an error, the bank must not be used.
func (p *Policy) Resume(parts ingest.Parts, now time.Time) (err error) {
	defer recovered(&err)
	state, err := policyFormat.Decode(parts[policyPart])
	if err != nil {
		return fmt.Errorf("read the state of policy %q: %w", p.name, err)
	}
	p.granted, p.even, p.among = state.Granted, state.Even, state.Among
	p.later, p.numbers = state.Later, state.Numbers
	for _, wire := range state.Applied {
		p.applied.Set(wire.Live())
	}
	if part, has := parts[usedPart]; has {
		used, err := usedFormat.Decode(part)
		if err != nil {
			return fmt.Errorf("read the state of policy %q: part %s: %w", p.name, usedPart, err)
		}
		p.uses = used.Hours
	}
	groups, err := p.resumeGroups(parts, now)
	if err != nil {
		return fmt.Errorf("read the state of policy %q: %w", p.name, err)
	}
	for _, g := range groups {
		if hour, has := p.uses[g.Number]; has {
			g.used = time.Unix((hour+1)*3600, 0)
		}
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

// resumeGroup reads one group; nil if it is removed.
func (p *Policy) resumeGroup(name string, parts ingest.Parts, now time.Time) (_ *group, err error) {
	defer recovered(&err)
	g, err := decodeGroup(parts[name+runningPart])
	if err != nil {
		return nil, err
	}
	if !p.cfg.Groups(g.Key) {
		return nil, nil
	}
	f, err := decodeFrozen(parts[name+frozenPart])
	if err != nil {
		return nil, err
	}
	if err := g.thaw(f); err != nil {
		return nil, err
	}
	if name != g.part() {
		return nil, stream.ErrPartsDoNotMatch
	}
	g.runningBytes, g.frozenBytes = len(parts[name+runningPart])+len(parts[name+gatesPart]), len(parts[name+frozenPart])
	p.shareEvenly(g)
	if err := g.restore(&p.cfg, p.limit, p.calibrations, now); err != nil {
		return nil, err
	}
	if _, g.gatesSaved = parts[name+gatesPart]; !g.gatesSaved {
		return g, nil
	}
	gates, err := gatesFormat.Decode(parts[name+gatesPart])
	if err != nil {
		return nil, err
	}
	g.gates = gates.Live()
	return g, g.gates.Attach(&g.Battery, g.BaseActions)
}

func decodeGroup(part []byte) (*group, error) {
	wire, err := runningFormat.Decode(part)
	if err != nil {
		return nil, err
	}
	g := wire.live()
	return &g, nil
}

func decodeFrozen(part []byte) (*frozen, error) {
	wire, err := frozenFormat.Decode(part)
	if err != nil {
		return nil, err
	}
	f := wire.live()
	return &f, nil
}

// recovered turns a panic into an error. State that was not written by this program can cause a panic anywhere.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("not the state of a bank: %v", r)
	}
}

// thaw restores what running has omitted.
func (g *group) thaw(f *frozen) error {
	g.Line.Before, g.Laws.Model, g.saved = f.Before, f.Laws, f
	for _, sample := range f.Samples {
		i, found := g.Find(sample.Signal)
		if !found || sample.Ranks == nil {
			return stream.ErrPartsDoNotMatch
		}
		q := g.Streams[i].Find(sample.Quantity)
		if q == nil {
			return stream.ErrPartsDoNotMatch
		}
		q.Ranks, q.Season = sample.Ranks, sample.Season
	}
	return nil
}

// restore computes the fields that are not saved.
func (g *group) restore(cfg *watch.Config, limit *capacity.StreamLimit, calibrations *budget.Calibrations, now time.Time) error {
	g.cfg, g.limit, g.calibrations, g.arrived = cfg, limit, calibrations, now
	if cfg.OnNewVersion != watch.OnNewVersionRebaseline {
		g.Line.Versions = succession{}
	}
	if next := g.Line.Versions.Next; next != nil {
		next.History = g.History
		if err := next.restore(cfg, limit.Successor(), calibrations, now); err != nil {
			return err
		}
	}
	if l := g.LikeActions; l != nil {
		if l.Ranks == nil {
			return stream.ErrPartsDoNotMatch
		}
		l.Ranks.Prepare()
	}
	if !g.Strata.Valid() {
		return stream.ErrPartsDoNotMatch
	}
	for _, q := range g.Quantities() {
		if err := q.Attach(g.BaseActions); err != nil {
			return err
		}
	}
	g.Attach()
	g.SetLaws(&g.Laws)
	limit.Add(len(g.Streams))
	return nil
}
