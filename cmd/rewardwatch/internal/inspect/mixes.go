package inspect

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Limits on the data that is kept per group to find out whether the mix of strata has changed a mean.
const (
	splitDimensions = 6  // labels, and observations of single decisions
	splitValues     = 15 // values of a dimension; all others are counted together
	splitSignals    = 8
	splitUnits      = 2048 // units that have ended, evenly spread
)

// certainMix is the number of standard errors by which a mix must differ from 0 to be noted. It is larger than for an
// alarm, because all signals and all labels are tried.
const certainMix = 4

const observationPrefix = "observation."

// splits is a sample of the units of a group with their labels.
type splits struct {
	names   []string   // of dimensions, such as labels.segment
	values  [][]string // by dimension, the values that are counted separately
	signals []string
	rows    []splitRow
	every   int64 // one of every so many units is kept
	seen    int64
}

// splitRow is one unit: the index of its value in each dimension, and the mean of each signal, or NaN if it has none.
type splitRow struct {
	place [splitDimensions]uint8
	x     [splitSignals]float32
}

// settingsFor returns the settings of the first stage for one policy. If the configuration names no labels to keep,
// units keep those of the policy's first event.
func settingsFor(cfg *config.Config, e *ingest.Event) *engine.Settings {
	s := cfg.Settings()
	c, watched := s.Policy(e.Policy)
	if !watched || len(c.Causes.SplitBy) > 0 {
		return s
	}
	for _, l := range e.Labels[:min(len(e.Labels), splitDimensions)] {
		if by := "labels." + l.Name; !slices.Contains(c.GroupBy, by) {
			c.Causes.SplitBy = append(c.Causes.SplitBy, strings.Clone(by))
		}
	}
	s.Policies = []engine.PolicyConfig{{Match: "*", Config: c, Feedback: s.Feedback(e.Policy)}}
	return s
}

// add adds a unit.
func (s *splits) add(u *ingest.Unit) {
	if u.End == ingest.EndBlock {
		return // blocks have no labels
	}
	s.every = max(1, s.every)
	if s.seen++; (s.seen-1)%s.every != 0 {
		return
	}
	if len(s.rows) == splitUnits {
		for i := range splitUnits / 2 {
			s.rows[i] = s.rows[2*i]
		}
		s.rows, s.every = s.rows[:splitUnits/2], 2*s.every
	}
	row := splitRow{}
	for i := range row.place {
		row.place[i] = splitValues
	}
	for i := range row.x {
		row.x[i] = float32(math.NaN())
	}
	for _, l := range u.Labels {
		if l.Name == "env" || strings.HasPrefix(l.Name, "labels.") { // not the rater of an outcome
			s.place(&row, l.Name, l.Value)
		}
	}
	if u.HasReturn {
		s.note(&row, "return", u.Return)
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		switch {
		case strings.HasPrefix(n.Signal, "outcome."):
			s.note(&row, n.Signal, n.Mean)
		case strings.HasPrefix(n.Signal, observationPrefix) && u.Length == 1:
			s.place(&row, n.Signal, strconv.FormatFloat(n.Mean, 'g', -1, 64))
		}
	}
	s.rows = append(s.rows, row)
}

// place records the value of a unit in a dimension. Rows before the first with that dimension count as having another
// value.
func (s *splits) place(row *splitRow, name, value string) {
	d := slices.Index(s.names, name)
	if d < 0 {
		if len(s.names) == splitDimensions {
			return
		}
		d, s.names, s.values = len(s.names), append(s.names, strings.Clone(name)), append(s.values, nil)
	}
	at := slices.Index(s.values[d], value)
	if at < 0 && len(s.values[d]) < splitValues {
		at, s.values[d] = len(s.values[d]), append(s.values[d], strings.Clone(value))
	}
	if at >= 0 {
		row.place[d] = uint8(at)
	}
}

// note records the mean of a signal over a unit.
func (s *splits) note(row *splitRow, signal string, x float64) {
	k := slices.Index(s.signals, signal)
	if k < 0 && len(s.signals) < splitSignals {
		k, s.signals = len(s.signals), append(s.signals, strings.Clone(signal))
	}
	if k >= 0 && !math.IsInf(x, 0) {
		row.x[k] = float32(x)
	}
}

// of splits the change of a signal's mean from the first half of the units to the second, by the dimension whose mix
// explains it, or else contributes. It returns nil if none certainly does. factor is the dependence factor of the
// units.
func (s *splits) of(signal string, factor float64) (best *mix.Split) {
	k := slices.Index(s.signals, signal)
	if k < 0 {
		return nil
	}
	for d := range s.names {
		split, told := s.by(d, k, max(1, factor))
		if !told || !split.Contributes() || math.Abs(split.Mix) < certainMix*split.MixError {
			continue
		}
		if best == nil || split.Explained() && !best.Explained() ||
			split.Explained() == best.Explained() && math.Abs(split.Within) < math.Abs(best.Within) {
			best = &split
		}
	}
	return best
}

// by splits a change by one dimension, and reports whether its values distinguish most units.
func (s *splits) by(d, k int, factor float64) (split mix.Split, told bool) {
	before, after := make([]mix.Cell, splitValues+1), make([]mix.Cell, splitValues+1)
	others := 0
	for i := range s.rows {
		r := &s.rows[i]
		if math.IsNaN(float64(r.x[k])) {
			continue
		}
		if r.place[d] == splitValues {
			others++
		}
		half := before
		if 2*i >= len(s.rows) {
			half = after
		}
		half[r.place[d]].Add(float64(r.x[k]))
	}
	if len(s.values[d]) < 2 || 2*others > len(s.rows) {
		return split, false
	}
	split, most := mix.Of(before, after, factor)
	split.Quantity, split.By = signals.MainQuantity(s.signals[k]), s.names[d]
	if most >= 0 && most < len(s.values[d]) {
		split.Stratum = s.values[d][most]
	}
	return split, true
}

// mixNote describes how the mix has changed a signal over the telemetry.
func mixNote(signal string, s *mix.Split, known []string) string {
	note := "from the first half to the second, " + strings.Join(alerts.MixWords(signal, s, "SD"), "")
	if strings.HasPrefix(s.By, observationPrefix) || slices.Contains(known, s.By) {
		return note
	}
	return note + fmt.Sprintf("; if %s identifies the kind of user or task, set causes.split_by: [%s]", s.By, s.By)
}

// splitSignals splits the changes of a group's signals, and returns a note on the first signal, by rank, to which a mix
// contributes. known are the labels of causes.split_by.
func (g *inspectedGroup) splitSignals(r *GroupInspection, known []string) []string {
	var first *SignalJSON
	var of *mix.Split
	for i := range r.Signals {
		s := &r.Signals[i]
		factor := 1.
		if s.Factor != nil {
			factor = float64(*s.Factor)
		}
		split := g.splits.of(s.Signal, factor)
		if s.Mix = wire.MixOf(split); split != nil && (first == nil || signals.Rank(s.Signal) < signals.Rank(first.Signal)) {
			first, of = s, split
		}
	}
	if of == nil {
		return nil
	}
	return []string{mixNote(first.Signal, of, known)}
}

// isMixed reports whether the mix alone explains how a signal changed over the telemetry.
func (r *GroupInspection) isMixed(signal string) bool {
	i := slices.IndexFunc(r.Signals, func(s SignalJSON) bool { return s.Signal == signal })
	return i >= 0 && r.Signals[i].Mix != nil && r.Signals[i].Mix.Shown == wire.MixExplains
}
