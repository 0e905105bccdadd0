// Package gate compares other versions of a policy with the accepted baseline of production. It runs the same tests
// with the same thresholds, starting at zero, and compares the means. It does not affect how production itself is
// judged: units of a version that serves are judged with those of production as well, and units in shadow only belong
// to their gate.
package gate

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// KeptTrials is the number of versions compared at a time; a further version replaces the one whose last unit is
// the oldest. The same number of ended gates is shown. Of the older ones, the last KeptWorse with the verdict worse
// are kept.
const (
	KeptTrials = 4
	KeptWorse  = 64
)

// Gates are the gates of a group. Exported fields are saved.
type Gates struct {
	Baseline   string // id of the baseline that versions are compared with, "" before the first unit after it
	Production string // policy_version of that baseline
	Seen       int64  // units of other versions
	Trials     []*trial
	Ended      []finding.Gate // oldest first
}

// trial is the comparison of one version. Exported fields are saved.
type trial struct {
	Version  string
	Shadow   bool
	Units    int64
	Last     int64            // Gates.Seen at its last unit
	Other    string           // rule by which its last unit is of another kind than the baseline's, "" for none
	Tests    *battery.Battery // those of the baseline that apply to the version
	Compared []comparedStream // by stream of Tests
	Worse    string           // why the version was found to be worse, which is final; "" if it was not
	Earned   *earned          // nil if the baseline has no action probabilities
}

// earned sums up what the accepted policy would have earned on the units of a trial, and on those of the baseline.
type earned struct{ Before, Now offpolicy.Running }

// comparedStream holds the observations of one stream of a trial.
type comparedStream struct {
	Each    []compared // by quantity
	AlarmAt int64      // unit of the trial, from 1, at which a test first reached its threshold; 0 for none
	Alarm   string     // name of that test
}

// compared holds the values of one quantity, with the season removed.
type compared struct {
	New ingest.Moments // of the version
	Now ingest.Moments // of units of production since the trial began; only for a stream's main quantity
}

// Standard is what versions are compared with: the accepted baseline of production.
type Standard struct {
	Baseline   string // its id
	Production string // its policy_version
	Tests      *battery.Battery
	Config     *watch.Config
	OffPolicy  *offpolicy.Follower // nil if there are no off-policy estimates
}

// ProductionOf returns the policy_version of a baseline, and whether versions have been compared with it.
func (all *Gates) ProductionOf(baseline string) (version string, known bool) {
	return all.Production, all.Baseline == baseline
}

// Try compares a unit with the standard if it is of another version, or in shadow.
func (all *Gates) Try(u *ingest.Unit, to Standard) {
	all.Baseline, all.Production = to.Baseline, to.Production
	version := u.Versions.Policy
	if version == all.Production && !u.Shadow {
		return
	}
	if t := all.trial(version, u.Shadow, to); t != nil {
		all.Seen++
		t.Last = all.Seen
		t.observe(u, to)
	}
}

// trial returns the trial of a version. It starts the trial if there is none, and restarts it if the version was in
// shadow and begins to serve. It returns nil for units in shadow of a version that serves, which add nothing.
func (all *Gates) trial(version string, shadow bool, to Standard) *trial {
	i := slices.IndexFunc(all.Trials, func(t *trial) bool { return t.Version == version })
	switch {
	case i >= 0 && all.Trials[i].Shadow == shadow:
		return all.Trials[i]
	case i >= 0 && shadow:
		return nil
	case i >= 0:
		all.Trials = slices.Delete(all.Trials, i, i+1)
	case len(all.Trials) == KeptTrials:
		i = oldest(all.Trials)
		all.retire(all.gate(all.Trials[i], to.Config), "newer versions have replaced it")
		all.Trials = slices.Delete(all.Trials, i, i+1)
	}
	t := &trial{Version: version, Shadow: shadow, Tests: to.Tests.Again()}
	if to.OffPolicy != nil {
		t.Earned = &earned{Before: to.OffPolicy.Baseline}
	}
	if i := slices.IndexFunc(all.Ended, func(e finding.Gate) bool { return e.Version == version }); i >= 0 {
		if e := &all.Ended[i]; e.Verdict == finding.Worse && e.Baseline == all.Baseline && e.Shadow == shadow {
			t.Worse = e.Why
		}
		all.Ended = slices.Delete(slices.Clone(all.Ended), i, i+1)
	}
	for _, s := range t.Tests.Streams {
		t.Compared = append(t.Compared, comparedStream{Each: make([]compared, len(s.Quantities))})
	}
	all.Trials = append(all.Trials, t)
	return t
}

// oldest returns the index of the trial with the oldest last unit.
func oldest(trials []*trial) int {
	at := 0
	for i, t := range trials {
		if t.Last < trials[at].Last {
			at = i
		}
	}
	return at
}

// observe adds a unit of the version.
func (t *trial) observe(u *ingest.Unit, to Standard) {
	tests := t.Tests
	if t.Other = tests.OtherUnits(u); t.Other != "" {
		return
	}
	if u = tests.Join(u); u == nil {
		return
	}
	t.Units++
	rules := tests.Faults(u)
	if tests.Newcomers.Patience > 0 && tests.Newcomers.Early(u) {
		return
	}
	if t.Earned != nil && to.OffPolicy != nil && tests.EarnedSoundly(rules) {
		o := offpolicy.Of(u)
		t.Earned.Now.Add(to.OffPolicy.Reference.Samples(&o))
	}
	t.each(tests.Readings(u, nil), func(stream, quantity int, q *stream.Quantity, r stream.Reading) {
		if rules[stream] == "" && tests.Sound(q, rules) {
			r = q.Read(r)
			q.Test(r, t.Units, false)
			t.Compared[stream].Each[quantity].New.Add(q.Adjusted(r))
		}
	})
	t.conclude(to.Config)
}

// each calls visit for each reading that is compared, with its place.
func (t *trial) each(values []stream.Reading, visit func(stream, quantity int, q *stream.Quantity, r stream.Reading)) {
	for _, r := range values {
		i, found := t.Tests.Find(r.Signal)
		if !found {
			continue
		}
		s := t.Tests.Streams[i]
		k := slices.IndexFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Name == r.Quantity })
		if k >= 0 {
			visit(i, k, s.Quantities[k], r)
		}
	}
}

// Witness adds a unit of production to the concurrent trials, as the behavior of production meanwhile. rules holds
// the fault rule in force for each stream of production.
func (all *Gates) Witness(u *ingest.Unit, values []stream.Reading, production *battery.Battery, rules []string) {
	if v := u.Versions.Policy; v != "" && v != all.Production {
		return
	}
	for _, t := range all.Trials {
		t.each(values, func(stream, quantity int, q *stream.Quantity, r stream.Reading) {
			i, found := production.Find(r.Signal)
			if found && rules[i] == "" && r.Quantity == signals.MainQuantity(r.Signal) {
				t.Compared[stream].Each[quantity].Now.Add(q.Adjusted(r))
			}
		})
	}
}

// End returns the gates in their final state when the baseline ends.
func (all *Gates) End(why string, cfg *watch.Config) Gates {
	ended := Gates{Ended: all.Ended}
	for _, t := range all.Trials {
		ended.retire(all.gate(t, cfg), why)
	}
	return ended
}

// retire adds another ended gate. Of gates older than the last KeptTrials, only those with the verdict worse are
// kept.
func (all *Gates) retire(last finding.Gate, why string) {
	last.Ended = why
	whole := append(slices.Clone(all.Ended), last)
	older := max(0, len(whole)-KeptTrials)
	var worse []finding.Gate
	for _, e := range whole[:older] {
		if e.Verdict == finding.Worse {
			e.Signals = nil
			worse = append(worse, e)
		}
	}
	all.Ended = append(worse[max(0, len(worse)-KeptWorse):], whole[older:]...)
}

// Empty reports whether no version was ever compared with a baseline.
func (all *Gates) Empty() bool { return all.Baseline == "" && len(all.Ended) == 0 }

// Bare returns a copy of the gates without the state that they share with production.
func (all *Gates) Bare() Gates {
	out := *all
	out.Trials = slices.Clone(all.Trials)
	for i, t := range all.Trials {
		bare, tests := *t, *t.Tests
		tests.Streams = tests.BareStreams()
		for _, s := range tests.Streams {
			s.Fault = s.Fault.Unlearnt()
			for _, q := range s.Quantities {
				q.Learnt = nil
			}
		}
		bare.Tests = &tests
		out.Trials[i] = &bare
	}
	return out
}

// Attach restores what Bare left out, and the fields that snapshots do not contain. baseActions counts the actions
// of the baseline by category.
func (all *Gates) Attach(production *battery.Battery, baseActions map[string]int64) error {
	for _, t := range all.Trials {
		if err := t.attach(production, baseActions); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) attach(production *battery.Battery, baseActions map[string]int64) error {
	if t.Tests == nil || len(t.Compared) != len(t.Tests.Streams) {
		return stream.ErrPartsDoNotMatch
	}
	for i, s := range t.Tests.Streams {
		at, found := production.Find(s.Signal)
		if !found || len(t.Compared[i].Each) != len(s.Quantities) {
			return stream.ErrPartsDoNotMatch
		}
		s.Fault.LearnFrom(&production.Streams[at].Fault)
		for _, q := range s.Quantities {
			of := production.Streams[at].Find(q.Name)
			if of == nil || of.Ranks == nil {
				return stream.ErrPartsDoNotMatch
			}
			q.Ranks, q.Season, q.Learnt = of.Ranks, of.Season, of.Learnt
			if err := q.Attach(baseActions); err != nil {
				return err
			}
		}
	}
	return nil
}
