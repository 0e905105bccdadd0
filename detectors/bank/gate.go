package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A gate holds another version of a policy to the accepted baseline of production, beside what is judged of production
// itself, which it does not touch: the same tests with the same thresholds, begun at zero, and the means. Units of the
// version that serve are judged with those of production as well; units in shadow are part of nothing but their gate.

// keptTrials is how many versions are compared at a time; another one takes the place of the one whose last unit is the
// oldest. So many gates that have ended are shown, too; of keptWorse older ones, that the version was worse.
const (
	keptTrials = 4
	keptWorse  = 64
)

// gates are those of a group. Exported fields are its snapshot.
type gates struct {
	Baseline   string // id of the baseline that versions are held to, "" before there was a unit after it
	Production string // policy_version of that baseline
	Seen       int64  // units of other versions
	Trials     []*trial
	Ended      []Gate // the oldest first
}

// trial is a version that is compared. Exported fields are its snapshot.
type trial struct {
	Version  string
	Shadow   bool
	Units    int64
	Last     int64            // of gates.Seen, at its last unit
	Other    string           // the rule by which its last unit is of another kind than those of the baseline, "" for none
	Tests    *group           // of the baseline, as far as it is followed: only its tests and fault rules are in use
	Compared []comparedStream // by stream of Tests
	Worse    string           // why it was found to be worse, which stays; "" where it was not
}

// comparedStream is what was seen of one stream of a trial.
type comparedStream struct {
	_       struct{}   `cbor:",toarray"`
	Each    []compared // by quantity
	AlarmAt int64      // unit of the trial, counted from 1, at which a test first reached its threshold; 0 for none
	Alarm   string     // which test
}

// compared are the values of one quantity, with the season taken out.
type compared struct {
	_   struct{}       `cbor:",toarray"`
	New ingest.Moments // of the version
	Now ingest.Moments // of units of production since the trial began; of a stream's main quantity alone
}

// try holds a unit to the baseline where it is of another version than that, or in shadow.
func (g *group) try(u *ingest.Unit) {
	version := u.Versions.Policy
	if version == "" || g.Baseline.ID == "" || g.Baseline.Provisional {
		return
	}
	if g.gates.Baseline != g.Baseline.ID {
		g.gates.Baseline, g.gates.Production = g.Baseline.ID, g.production()
	}
	if version == g.gates.Production && !u.Shadow {
		return
	}
	if t := g.trial(version, u.Shadow); t != nil {
		g.gates.Seen++
		t.Last = g.gates.Seen
		t.observe(u, &g.cfg)
	}
}

// production is the policy_version that the baseline is of: that of its last unit.
func (g *group) production() string {
	switch {
	case g.gates.Baseline == g.Baseline.ID:
		return g.gates.Production
	case g.Line.Versions.Known:
		return g.Line.Versions.Version
	}
	return g.Versions.Policy.Value
}

// trial finds the trial of a version, or begins it: anew where it was in shadow and begins to serve. nil means that the
// version serves, and what it does in shadow tells nothing more.
func (g *group) trial(version string, shadow bool) *trial {
	all := &g.gates.Trials
	i := slices.IndexFunc(*all, func(t *trial) bool { return t.Version == version })
	switch {
	case i >= 0 && (*all)[i].Shadow == shadow:
		return (*all)[i]
	case i >= 0 && shadow:
		return nil
	case i >= 0:
		*all = slices.Delete(*all, i, i+1)
	case len(*all) == keptTrials:
		i = oldest(*all)
		g.gates.Ended = retire(g.gates.Ended, g.gate((*all)[i]), "other versions have come since")
		*all = slices.Delete(*all, i, i+1)
	}
	t := &trial{Version: version, Shadow: shadow, Tests: g.testsAgain()}
	if i := slices.IndexFunc(g.gates.Ended, func(e Gate) bool { return e.Version == version }); i >= 0 {
		if e := &g.gates.Ended[i]; e.Verdict == Worse && e.Baseline == g.gates.Baseline && e.Shadow == shadow {
			t.Worse = e.Why
		}
		g.gates.Ended = slices.Delete(slices.Clone(g.gates.Ended), i, i+1)
	}
	for _, s := range t.Tests.Streams {
		t.Compared = append(t.Compared, comparedStream{Each: make([]compared, len(s.Quantities))})
	}
	*all = append(*all, t)
	return t
}

// oldest is the place of the trial whose last unit is.
func oldest(trials []*trial) int {
	at := 0
	for i, t := range trials {
		if t.Last < trials[at].Last {
			at = i
		}
	}
	return at
}

// testsAgain gives a group with the tests and fault rules of this one's baseline, at zero.
func (g *group) testsAgain() *group {
	out := newGroup(g.Key, g.cfg, g.limit, g.calibrations)
	out.Baseline.ID, out.Warmup.Done = g.Baseline.ID, true
	out.Blocks = blocks{Size: g.Blocks.Size, Mixed: g.Blocks.Mixed}
	out.Newcomers = newcomers{Patience: g.Newcomers.Patience, Agents: g.Newcomers.Agents}
	out.Delivery = g.Delivery.again()
	out.ActionKind, out.Categories = g.ActionKind, g.Categories
	out.actionShares = newActionShares(g.Categories)
	for _, s := range g.Streams {
		again := &stream{Signal: s.Signal, Fault: s.Fault.again()}
		for _, q := range s.Quantities {
			if q.Ranks != nil && !q.proving() {
				test := q.again()
				test.Mean, test.SD, test.Learnt = q.Mean, q.SD, q.Learnt
				again.Quantities = append(again.Quantities, test)
			}
		}
		if len(again.Quantities) > 0 {
			out.Streams = append(out.Streams, again)
		}
	}
	return out
}

// observe folds in a unit of the version.
func (t *trial) observe(u *ingest.Unit, cfg *Config) {
	g := t.Tests
	if t.Other = g.otherUnits(u); t.Other != "" {
		return
	}
	if u = g.unit(u); u == nil {
		return
	}
	t.Units++
	rules := g.faults(u)
	if g.Newcomers.Patience > 0 && g.Newcomers.early(u) {
		return
	}
	t.each(g.readings(u, &g.scratch), func(stream, quantity int, q *quantity, r reading) {
		if rules[stream] == "" && g.sound(q, rules) {
			q.test(r, t.Units, false)
			t.Compared[stream].Each[quantity].New.Add(q.adjusted(r))
		}
	})
	t.conclude(cfg)
}

// each visits those of the readings that are compared, with their places.
func (t *trial) each(values []reading, visit func(stream, quantity int, q *quantity, r reading)) {
	for _, r := range values {
		i, found := t.Tests.find(r.signal)
		if !found {
			continue
		}
		s := t.Tests.Streams[i]
		k := slices.IndexFunc(s.Quantities, func(q *quantity) bool { return q.Name == r.quantity })
		if k >= 0 {
			visit(i, k, s.Quantities[k], r)
		}
	}
}

// witness folds a unit of production into the trials that go on beside it, as what production does meanwhile.
func (g *group) witness(u *ingest.Unit, values []reading, rules []string) {
	if v := u.Versions.Policy; v != "" && v != g.gates.Production {
		return
	}
	for _, t := range g.gates.Trials {
		t.each(values, func(stream, quantity int, q *quantity, r reading) {
			i, found := g.find(r.signal)
			if found && rules[i] == "" && r.quantity == mainQuantity(r.signal) {
				t.Compared[stream].Each[quantity].Now.Add(q.adjusted(r))
			}
		})
	}
}

// adjusted is a reading with the season taken out.
func (q *quantity) adjusted(r reading) float64 {
	if q.Season == nil {
		return r.x
	}
	return q.Season.Adjusted(r.x, r.ts)
}

// endGates gives the gates as they stand when the baseline ends.
func (g *group) endGates(why string) gates {
	ended := g.gates.Ended
	for _, t := range g.gates.Trials {
		ended = retire(ended, g.gate(t), why)
	}
	return gates{Ended: ended}
}

// retire gives the gates that have ended with one more. Of older ones than keptTrials nothing is left but that a version was worse.
func retire(ended []Gate, last Gate, why string) []Gate {
	last.Ended = why
	whole := append(slices.Clone(ended), last)
	older := max(0, len(whole)-keptTrials)
	var worse []Gate
	for _, e := range whole[:older] {
		if e.Verdict == Worse {
			e.Signals = nil
			worse = append(worse, e)
		}
	}
	return append(worse[max(0, len(worse)-keptWorse):], whole[older:]...)
}

// hasGates reports whether the checkpoint is to have a part of the gates: once it has one, it keeps it.
func (g *group) hasGates() bool {
	return g.gatesSaved || g.gates.Baseline != "" || len(g.gates.Ended) > 0
}

// running is a copy of the gates without what they have in common with the group.
func (all *gates) running() gates {
	out := *all
	out.Trials = slices.Clone(all.Trials)
	for i, t := range all.Trials {
		trial := *t
		trial.Tests = t.Tests.running()
		for _, s := range trial.Tests.Streams {
			s.Fault = s.Fault.unlearnt()
			for _, q := range s.Quantities {
				q.Learnt = nil
			}
		}
		out.Trials[i] = &trial
	}
	return out
}

// attachGates attaches the trials of a group that was restored.
func (g *group) attachGates() error {
	for _, t := range g.gates.Trials {
		if err := t.attach(g); err != nil {
			return err
		}
	}
	return nil
}

// attach puts back into a restored trial what running left out, and makes what no snapshot has.
func (t *trial) attach(g *group) error {
	if t.Tests == nil || len(t.Compared) != len(t.Tests.Streams) {
		return errPartsDoNotMatch
	}
	tests := t.Tests
	tests.cfg, tests.limit, tests.calibrations = g.cfg, g.limit, g.calibrations
	tests.actionShares = newActionShares(tests.Categories)
	for i, s := range tests.Streams {
		at, found := g.find(s.Signal)
		if !found || len(t.Compared[i].Each) != len(s.Quantities) {
			return errPartsDoNotMatch
		}
		s.Fault.learnFrom(&g.Streams[at].Fault)
		for _, q := range s.Quantities {
			of := g.Streams[at].find(q.Name)
			if of == nil || of.Ranks == nil {
				return errPartsDoNotMatch
			}
			q.Ranks, q.Season, q.Learnt = of.Ranks, of.Season, of.Learnt
			if err := q.attach(); err != nil {
				return err
			}
		}
	}
	return nil
}

// again gives the rules once more, with what they have learnt of the baseline and nothing else.
func (f *fault) again() fault {
	out := fault{Constant: f.Constant, Clipped: f.Clipped, Scale: f.Scale, Missing: missing{Usual: f.Missing.Usual}}
	out.Constant.Run, out.Constant.Varied = 0, false
	out.Clipped.Upper.Units, out.Clipped.Lower.Units = 0, 0
	out.Scale.Run, out.Scale.Changed, out.Scale.Fits = 0, false, false
	return out
}

// unlearnt leaves out what is large of what the rules have learnt, which learnFrom puts back.
func (f *fault) unlearnt() fault {
	out := *f
	out.learnFrom(&fault{})
	return out
}

func (f *fault) learnFrom(other *fault) {
	f.Clipped.Upper.Warm, f.Clipped.Lower.Warm = other.Clipped.Upper.Warm, other.Clipped.Lower.Warm
	f.Constant.Ends, f.Constant.Runs, f.Constant.Steps = other.Constant.Ends, other.Constant.Runs, other.Constant.Steps
	f.Scale.Scales, f.Scale.Shapes = other.Scale.Scales, other.Scale.Shapes
}

// again gives the rules once more, with the limits that follow from the baseline.
func (d *delivery) again() delivery {
	return delivery{
		Duplicates: marks{Limit: d.Duplicates.Limit}, Skewed: marks{Limit: d.Skewed.Limit}, Abandoned: marks{Limit: d.Abandoned.Limit},
	}
}
